import { Controller, Get, Module, type Type } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { SkipThrottle, Throttle } from '@nestjs/throttler';
import { AnyCredential, Public } from '../../src/auth/access/access';
import { RequestCost } from '../../src/platform/limits/rate-limits.decorators';
import { TestRedis, withRedis } from '../support/redis';
import { databaseUrl, type Environment, openApp, useStore } from '../support/app';
import { failure } from '../support/http';
import { make } from '../support/make';
import { until } from '../support/time';

// An extension by a developer who knows @nestjs/throttler but not this service.
useStore();

@Controller('extension')
class ExtensionController {
  @Get('open')
  @Public()
  @Throttle({ default: { limit: 2, ttl: 900_000 } })
  open() {
    return { found: true };
  }

  @Get('other')
  @Public()
  @Throttle({ default: { limit: 2, ttl: 900_000 } })
  other() {
    return { found: true };
  }

  @Get('mine')
  @AnyCredential()
  @Throttle({ default: { limit: 2, ttl: 900_000 } })
  mine() {
    return { found: true };
  }

  @Get('dear')
  @Public()
  @Throttle({ address: { limit: 1, ttl: 900_000 } })
  dear() {
    return { found: true };
  }

  @Get('cheap')
  @AnyCredential()
  @RequestCost(0.1)
  cheap() {
    return { found: true };
  }

  @Get('free')
  @Public()
  @SkipThrottle()
  free() {
    return { found: true };
  }

  @Get('by-credential-alone')
  @AnyCredential()
  @SkipThrottle({ user: true })
  byCredentialAlone() {
    return { found: true };
  }
}

@SkipThrottle()
@Controller('extension/skipped')
class SkippedController {
  @Get('again')
  @Public()
  @SkipThrottle({ default: false })
  again() {
    return { found: true };
  }
}

@Module({ controllers: [ExtensionController, SkippedController] })
class ExtensionModule {}

const apps: NestExpressApplication[] = [];

async function open(environment: Environment = {}, extension: Type = ExtensionModule): Promise<string> {
  const app = await openApp(
    {
      DATABASE_URL: databaseUrl(),
      RATE_LIMIT: 'credential=5/900s,user=6/900s,address=4/900s',
      TRUSTED_PROXIES: 'loopback',
      ...environment,
    },
    { imports: [extension] },
  );
  apps.push(app);
  return app.getUrl();
}

afterEach(async () => {
  for (const app of apps.splice(0)) await app.close();
});

async function ask(
  url: string,
  path: string,
  { key, from = '192.0.2.1' }: { key?: string; from?: string } = {},
) {
  const response = await fetch(`${url}/extension/${path}`, {
    headers: { 'x-forwarded-for': from, ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
  });
  return { status: response.status, body: (await response.json()) as unknown, headers: response.headers };
}

const statuses = async (n: number, work: (i: number) => Promise<{ status: number }>) => {
  const found = [];
  for (let i = 0; i < n; i++) found.push((await work(i)).status);
  return found;
};

test('@Throttle: limits a handler per IP address', async () => {
  const url = await open();
  expect(await statuses(3, () => ask(url, 'open'))).toEqual([200, 200, 429]);
  const { status, body, headers } = await ask(url, 'open');
  expect({ status, body }).toEqual(failure(429, 'rate limit exceeded'));
  expect(headers.get('x-ratelimit-limit')).toBe('2');
  expect(Number(headers.get('retry-after'))).toBeGreaterThan(8);
  expect((await ask(url, 'other')).status).toBe(200);
  expect((await ask(url, 'open', { from: '192.0.2.2' })).status).toBe(200);
});

test('@Throttle: limits per user where a credential is required', async () => {
  const url = await open();
  const user = await make.user();
  const keys = [user.key!, await make.key({ owner: user })];
  expect(await statuses(3, (i) => ask(url, 'mine', { key: keys[i % 2], from: `192.0.2.${i}` }))).toEqual([
    200, 200, 429,
  ]);
  expect((await ask(url, 'mine', { key: (await make.user()).key })).status).toBe(200);
});

test('@Throttle: replaces a limit of the service for the handler', async () => {
  const url = await open();
  expect(await statuses(2, () => ask(url, 'dear'))).toEqual([200, 429]);
  expect((await ask(url, 'other')).status).toBe(200);
});

test('@SkipThrottle: skips all limits, one of them, or none', async () => {
  const url = await open();
  expect(new Set(await statuses(10, () => ask(url, 'free')))).toEqual(new Set([200]));
  const user = await make.user();
  const keys = [user.key!, await make.key({ owner: user })];
  for (const key of keys)
    expect(await statuses(6, () => ask(url, 'by-credential-alone', { key }))).toEqual([
      200, 200, 200, 200, 200, 429,
    ]);
  expect(await statuses(5, () => ask(url, 'skipped/again', { from: '192.0.2.9' }))).toEqual([
    200, 200, 200, 200, 429,
  ]);
});

test('@RequestCost: counts a request as a fraction, also in the headers', async () => {
  const url = await open();
  const { key } = await make.user();
  await ask(url, 'mine', { key });
  const first = await ask(url, 'cheap', { key });
  expect(first.headers.get('x-ratelimit-limit')).toBe('50');
  expect(first.headers.get('x-ratelimit-remaining')).toBe('39');
  const responses = await statuses(40, () => ask(url, 'cheap', { key }));
  expect(responses.filter((status) => status === 200)).toHaveLength(39);
  expect(responses.at(-1)).toBe(429);
  expect((await ask(url, 'mine', { key })).status).toBe(429);
});

test.each([
  ['@Throttle', Throttle({ sing_in: { limit: 2, ttl: 1000 } }), 'sing_in'],
  ['@SkipThrottle', SkipThrottle({ users: true }), 'users'],
])("%s: fails at startup with the handler's name for an unknown limit", async (_, decorator, name) => {
  @Controller('wrong')
  class WrongController {
    @Get()
    @Public()
    @(decorator as MethodDecorator)
    list() {
      return {};
    }
  }
  @Module({ controllers: [WrongController] })
  class WrongModule {}
  await expect(open({}, WrongModule)).rejects.toThrow(`${name} in WrongController.list`);
});

withRedis.test('@Throttle: replicas share the limit through Redis', async () => {
  const redis = await TestRedis.start();
  try {
    const urls = [await open({ REDIS_URL: redis.url }), await open({ REDIS_URL: redis.url })];
    for (const url of urls)
      await until(async () => {
        await ask(url, 'other', { from: '198.51.100.1' });
        return (await redis.keys()).length > 0;
      });
    let n = 0;
    // If Redis does not respond in time on a busy machine, each replica may count separately for a moment.
    await until(async () => {
      const from = `192.0.2.${++n}`;
      return String(await statuses(3, (i) => ask(urls[i % 2]!, 'open', { from }))) === '200,200,429';
    });
    expect(await redis.keys()).toContain('gamewharf:limit:ExtensionController.open:default:192.0.2.1');
  } finally {
    for (const app of apps.splice(0)) await app.close();
    await redis.stop();
  }
});
