import { once } from 'node:events';
import { Logger } from '@nestjs/common';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { MetricsRegistry } from '../../src/platform/observability/metrics-registry';
import { MemoryStorage } from '../../src/platform/limits/memory-storage';
import { RedisStorage } from '../../src/platform/limits/redis-storage';
import { TestClock } from '../support/clock';
import { TestRedis, withRedis } from '../support/redis';
import { type Actor } from '../support/actor';
import { type Environment, databaseUrl, logged, openApp, theClock, useStore } from '../support/app';
import { failure } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useStore();

const LIMITS = 'credential=5/20s,address=4/20s,misses=2/20s,sign-in=1/20s';
const tooMuch = failure(429, 'rate limit exceeded');

let app: NestExpressApplication;
let url: string;

/** A replica with low limits behind a trusted proxy, so that X-Forwarded-For contains the client's IP address. */
async function open(environment: Environment = {}): Promise<NestExpressApplication> {
  return openApp({
    DATABASE_URL: databaseUrl(),
    RATE_LIMIT: LIMITS,
    TRUSTED_PROXIES: 'loopback',
    ...environment,
  });
}

async function ask(
  path: string,
  { key, from = '192.0.2.1', at = url }: { key?: string; from?: string; at?: string } = {},
) {
  const response = await fetch(at + path, {
    headers: { 'x-forwarded-for': from, ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
  });
  return { status: response.status, body: (await response.json()) as unknown, headers: response.headers };
}

const response = async (...request: Parameters<typeof ask>) => {
  const { status, body } = await ask(...request);
  return { status, body };
};

const statuses = (responses: { status: number }[]) => responses.map(({ status }) => status).sort();
const times = <T>(n: number, work: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: n }, (_, i) => work(i)));

describe('with one process', () => {
  let user: Actor;

  beforeEach(async () => {
    theClock().stop();
    app = await open();
    url = await app.getUrl();
    user = await make.user();
  });
  afterEach(() => app.close());

  test('limits the active device grants of an IP address to 60', async () => {
    await sql(
      `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes)
       VALUES ('device-client', $1, 'Game', '{}', '{profile}') ON CONFLICT DO NOTHING`,
      [user.id],
    );
    const replica = await open({ RATE_LIMIT: 'address=1000/1s' });
    const at = await replica.getUrl();
    const start = async (from: string) => {
      const { status } = await fetch(`${at}/oauth/device`, {
        method: 'POST',
        headers: { 'x-forwarded-for': from },
        body: new URLSearchParams({ client_id: 'device-client', scope: 'profile:me' }),
      });
      return status;
    };
    const started = await times(61, () => start('192.0.2.1'));
    const rows = await sql('SELECT FROM oauth_device_requests');
    expect({ started: started.sort().slice(-2), rows: rows.length }).toEqual({
      started: [200, 429],
      rows: 60,
    });
    expect(await start('192.0.2.2')).toBe(200);
    await replica.close();
  });

  test('limits a credential across IP addresses and reports the remaining requests', async () => {
    const first = await ask('/profile', { key: user.key });
    expect(first.status).toBe(200);
    expect(first.headers.get('x-ratelimit-limit')).toBe('5');
    expect(first.headers.get('x-ratelimit-remaining')).toBe('4');
    expect(first.headers.get('x-ratelimit-reset')).toBe('4');
    expect(first.headers.get('retry-after')).toBeNull();

    expect(statuses(await times(5, (i) => ask('/profile', { key: user.key, from: `192.0.2.${i}` })))).toEqual(
      [200, 200, 200, 200, 429],
    );
    const rejected = await ask('/profile', { key: user.key, from: '192.0.2.9' });
    expect({ status: rejected.status, body: rejected.body }).toEqual(tooMuch);
    expect(rejected.headers.get('retry-after')).toBe('4');
    expect(rejected.headers.get('x-ratelimit-remaining')).toBe('0');

    const other = await make.user();
    expect((await ask('/profile', { key: other.key })).status).toBe(200);
  });

  test('counts two keys of one user separately and two spellings of one key together', async () => {
    const other = await make.key({ owner: user });
    // A known key has its own limit, and not that of its IP address.
    await ask('/profile', { key: user.key });
    await times(4, () => ask('/profile', { key: user.key }));
    expect((await ask('/profile', { key: other })).status).toBe(200);
    const bare = await fetch(`${url}/profile`, { headers: { authorization: user.key! } });
    expect(bare.status).toBe(429);
  });

  test('counts the IP address without a credential, and the network of an IPv6 address', async () => {
    const latest = '/wharf/latest?game_id=1&channel_name=windows';
    const from = (address: string) => ask(latest, { from: address });
    expect(statuses(await times(5, () => from('192.0.2.7')))).toEqual([404, 404, 404, 404, 429]);
    expect((await from('192.0.2.8')).status).toBe(404);
    const network = await times(5, (i) => from(`2001:db8:0:1::${i}`));
    expect(statuses(network)).toEqual([404, 404, 404, 404, 429]);
    expect((await from('2001:db8:0:2::1')).status).toBe(404);
  });

  test('counts unknown routes for the IP address', async () => {
    const call = async (method: string, path: string, from: string) => {
      const response = await fetch(url + path, { method, headers: { 'x-forwarded-for': from } });
      return { status: response.status, body: (await response.json()) as unknown };
    };
    const nowhere = await times(5, (i) => call('GET', `/nowhere/${i}`, '192.0.2.20'));
    expect(statuses(nowhere)).toEqual([404, 404, 404, 404, 429]);
    expect(await call('GET', '/nowhere', '192.0.2.20')).toEqual(tooMuch);
    expect(statuses(await times(5, () => call('DELETE', '/profile', '192.0.2.21')))).toEqual([
      405, 405, 405, 405, 429,
    ]);
    expect((await ask('/wharf/latest', { from: '192.0.2.21' })).status).toBe(429);
    expect((await ask('/nowhere', { from: '192.0.2.22' })).headers.get('x-ratelimit-remaining')).toBe('3');
  });

  describe('routes with the credential in the path', () => {
    test('count the credential in the path, whatever the header contains', async () => {
      const other = await make.user();
      await ask('/profile', { key: other.key });
      await ask(`/api/1/${user.key}/me`);
      const responses = await times(5, () => ask(`/api/1/${user.key}/me`, { key: other.key }));
      expect(statuses(responses)).toEqual([200, 200, 200, 200, 429]);
      expect((await ask('/profile', { key: other.key })).headers.get('x-ratelimit-remaining')).toBe('3');
    });

    test('count a header that contradicts the path for the IP address', async () => {
      await ask('/profile', { key: user.key });
      const responses = await times(5, () => ask('/api/1/jwt/me', { key: user.key, from: '192.0.2.23' }));
      expect(statuses(responses)).toEqual([401, 401, 401, 401, 429]);
    });
  });

  test('counts invalid credentials for the IP address, and then without a query', async () => {
    const guess = (i: number) => response('/profile', { key: `guess-${i}` });
    const responses = await times(20, guess);
    expect(responses.filter(({ status }) => status === 401)).toHaveLength(4);
    expect(responses.filter(({ status }) => status === 429)).toHaveLength(16);
    expect(await response('/profile')).toEqual(tooMuch);
  });

  test("does not reject a known client because of others' failed attempts from its IP address", async () => {
    expect((await ask('/profile', { key: user.key })).status).toBe(200);
    await times(20, (i) => ask('/profile', { key: `guess-${i}` }));
    expect((await ask('/profile', { key: user.key })).status).toBe(200);
  });

  test('does not count valid credentials for their IP address', async () => {
    const users = await times(6, () => make.user());
    for (const each of users) expect((await ask('/profile', { key: each.key })).status).toBe(200);
  });

  test('counts requests with a missing scope', async () => {
    const narrow = await make.key({ owner: user, scopes: ['profile:me'] });
    // Requests before the key was known, at most four, counted for the IP address.
    const responses = statuses(await times(4 + 5 + 1, () => ask('/profile/games', { key: narrow })));
    expect(new Set(responses)).toEqual(new Set([403, 429]));
  });

  test('ignores an X-Forwarded-For from beyond the trusted proxy', async () => {
    const forged = (i: number) => ask('/wharf/latest', { from: `203.0.113.${i}, 192.0.2.7` });
    expect(statuses(await times(5, forged))).toEqual([400, 400, 400, 400, 429]);
  });

  test.each([
    ['/uploads/1/download', '50'],
    ['/builds/1/download/archive/default', '50'],
    ['/api/1/key/upload/1/download', '50'],
    ['/files/token/game.zip', '40'],
    ['/games/1/uploads', '5'],
    ['/uploads/1', '5'],
    ['/api/1/key/game/1/uploads', '5'],
  ])('GET %s: allows %s requests at once', async (path, limit) => {
    const { headers } = await ask(path, { key: user.key });
    expect(headers.get('x-ratelimit-limit')).toBe(limit);
    expect(headers.get('x-ratelimit-remaining')).toBe(String(Number(limit) - 1));
  });

  test('never limits health checks', async () => {
    expect(new Set(statuses(await times(20, () => ask('/health/live'))))).toEqual(new Set([200]));
  });

  describe('failed lookups', () => {
    let game: { id: number };
    beforeEach(async () => {
      game = await make.game({ owner: user });
    });
    const lookUp = (parameters: string) => response(`/games/${game.id}/${parameters}`, { key: user.key });

    test('are limited, and then nothing is looked up', async () => {
      const { key } = await make.downloadKey({ game });
      expect(await lookUp('download_keys?download_key=wrong')).toEqual(failure(404, 'invalid download key'));
      expect(await lookUp('purchases?email=nobody@example.com')).toEqual({
        status: 200,
        body: { purchases: [] },
      });
      expect(await lookUp(`download_keys?download_key=${key}`)).toEqual(tooMuch);
      expect((await ask('/profile', { key: user.key })).status).toBe(200);
    });

    test('do not include successful ones', async () => {
      const { key } = await make.downloadKey({ game });
      for (let i = 0; i < 4; i++)
        expect((await lookUp(`download_keys?download_key=${key}`)).status).toBe(200);
    });
  });
});

describe('settings', () => {
  afterEach(() => app.close());

  test('off: limits nothing', async () => {
    app = await open({ RATE_LIMIT: 'off' });
    url = await app.getUrl();
    const responses = await times(50, () => ask('/wharf/latest'));
    expect(new Set(statuses(responses))).toEqual(new Set([400]));
    expect(responses[0]!.headers.get('x-ratelimit-limit')).toBeNull();
  });

  test('off: logs no warning for the service or a command', async () => {
    const before = logged.length;
    app = await open({ RATE_LIMIT: 'off' });
    await app.close();
    expect(logged.slice(before).filter((line) => line.includes('"level":"warn"'))).toEqual([]);
  });

  test('default: never rejects the official client at its fastest', async () => {
    app = await open({ RATE_LIMIT: '' });
    url = await app.getUrl();
    const user = await make.user();
    const { key } = user;
    const path = `/games/${(await make.game({ owner: user })).id}/download_keys?download_key=x`;
    // 20 at once and 8 per second for five seconds, all of them failed lookups.
    expect(new Set(statuses(await times(60, () => ask(path, { key }))))).toEqual(new Set([404]));
  });

  test('counts paths below /operator, which return 404 without a token', async () => {
    app = await open({ RATE_LIMIT: 'address=2/2s' });
    url = await app.getUrl();
    theClock().stop();
    const responses = await times(3, () => ask('/operator/none'));
    expect(responses.map(({ status }) => status)).toEqual([404, 404, 429]);
  });

  test('allows one more request after Retry-After', async () => {
    app = await open({ RATE_LIMIT: 'address=2/2s' });
    url = await app.getUrl();
    theClock().stop();
    await times(3, () => ask('/wharf/latest'));
    const rejected = await ask('/wharf/latest');
    expect(rejected.status).toBe(429);
    const wait = Number(rejected.headers.get('retry-after')) * 1000;
    theClock().advance(wait - 1);
    expect((await ask('/wharf/latest')).status).toBe(429);
    theClock().advance(1);
    expect((await ask('/wharf/latest')).status).toBe(400);
  });

  test('ignores X-Forwarded-For without TRUSTED_PROXIES', async () => {
    app = await open({ TRUSTED_PROXIES: '' });
    url = await app.getUrl();
    expect(statuses(await times(5, (i) => ask('/wharf/latest', { from: `192.0.2.${i}` })))).toEqual([
      400, 400, 400, 400, 429,
    ]);
  });
});

withRedis.describe('shared by replicas through Redis', () => {
  let redis: TestRedis;
  let apps: NestExpressApplication[];
  let urls: string[];
  let user: Actor;

  beforeEach(async () => {
    redis = await TestRedis.start();
    const shared = { REDIS_URL: redis.url, RATE_LIMIT: 'credential=5/900s,address=50/900s' };
    apps = await Promise.all([open(shared), open(shared)]);
    urls = await Promise.all(apps.map((one) => one.getUrl()));
    user = await make.user();
    for (const at of urls)
      await until(async () => {
        await ask('/wharf/latest', { at, from: '198.51.100.1' });
        return (await redis.keys()).length > 0;
      });
  });
  afterEach(async () => {
    await Promise.all(apps.map((one) => one.close()));
    await redis.stop();
  });

  let lastAddress = 0;
  const spread = (n: number) => times(n, (i) => ask('/profile', { key: user.key, at: urls[i % 2] }));

  test('shares one limit between replicas', async () => {
    // If Redis does not respond in time on a busy machine, each replica may count separately for a moment.
    await until(async () => {
      user = await make.user();
      return String(statuses(await spread(6))) === '200,200,200,200,200,429';
    });
  });

  test('counts responses from memory', async () => {
    const owner = await make.user();
    const game = await make.game({ owner });
    await make.build({ game, user_version: '1' });
    const path = `/wharf/latest?game_id=${game.id}&channel_name=windows`;
    await until(async () => {
      const from = `192.0.2.${++lastAddress}`;
      const responses = await times(51, (i) => ask(path, { from, at: urls[i % 2] }));
      return responses.filter(({ status }) => status === 429).length === 1;
    });
  });

  test('lets all Redis keys expire', async () => {
    await spread(3);
    const keys = await redis.keys();
    expect(keys).toContain(`gamewharf:limit:credential:key ${await keyId(user)}`);
    for (const key of keys) expect(await redis.lifetime(key)).toBeGreaterThan(0);
  });

  test('counts per replica without failures while Redis does not respond', async () => {
    redis.hang();
    const latest = await times(12, () => ask('/wharf/latest?game_id=1&channel_name=x', { at: urls[0] }));
    for (const { status } of latest) expect([404, 429]).toContain(status);
    const here = { key: user.key, from: '192.0.2.200' };
    expect(statuses(await times(6, () => ask('/profile', { ...here, at: urls[0] })))).toEqual([
      200, 200, 200, 200, 200, 429,
    ]);
    expect((await ask('/profile', { ...here, at: urls[1] })).status).toBe(200);
  });

  test('counts per replica while Redis is down, and together again afterwards', async () => {
    await redis.stop();
    expect(statuses(await times(6, () => ask('/profile', { key: user.key, at: urls[0] })))).toEqual([
      200, 200, 200, 200, 200, 429,
    ]);
    await redis.start();
    await until(async () => {
      await ask('/wharf/latest', { at: urls[0], from: '198.51.100.2' });
      await ask('/wharf/latest', { at: urls[1], from: '198.51.100.3' });
      return (await redis.keys()).length === 2;
    });
    expect(statuses(await spread(6))).toEqual([200, 200, 200, 200, 200, 429]);
  });
});

withRedis.test(
  'reports a Redis that rejects writes once, and that it is available when it counts',
  async () => {
    const redis = await TestRedis.start();
    const clock = new TestClock();
    const storage = await RedisStorage.open(redis.url, clock, new MetricsRegistry());
    const warn = jest.spyOn(Logger.prototype, 'warn').mockReturnValue();
    const log = jest.spyOn(Logger.prototype, 'log').mockReturnValue();
    try {
      await until(() => storage.isShared);
      const count = () => storage.increment('a', 900_000, 5, 0, 'address');
      await redis.rejectWrites(true);
      for (const _ of [1, 2]) {
        const reconnected = once(storage['redis'], 'ready');
        for (let i = 0; i < 3; i++) await count();
        await reconnected;
        clock.advance(1000);
      }
      expect([warn.mock.calls.length, log.mock.calls]).toEqual([1, []]);
      await redis.rejectWrites(false);
      await until(async () => {
        clock.advance(1000);
        await count();
        return log.mock.calls.length > 0;
      });
      expect(log.mock.calls).toEqual([['Redis is available again. Rate limits are shared.']]);
    } finally {
      jest.restoreAllMocks();
      storage.onApplicationShutdown();
      await redis.stop();
    }
  },
);

async function keyId({ id }: Actor): Promise<number> {
  const [key] = await sql<{ id: number }>('SELECT id FROM api_keys WHERE user_id = $1', [id]);
  return key!.id;
}

describe('counters of a process', () => {
  let clock: TestClock;
  let metrics: MetricsRegistry;
  const TEN_A_SECOND = { name: 'address', key: 'a', limit: 10, ttl: 1000 };

  beforeEach(() => {
    clock = new TestClock();
    clock.stop();
    metrics = new MetricsRegistry();
  });
  const remaining = async (storage: MemoryStorage, key = 'a') => {
    const { limit, ttl, name } = TEN_A_SECOND;
    const { isBlocked, totalHits } = await storage.increment(key, ttl, limit, 0, name);
    return isBlocked ? 'none' : limit - totalHits;
  };
  const size = async () =>
    Number(/^gamewharf_rate_limit_counters (\d+)$/m.exec(await metrics.registry.metrics())![1]);

  test('allow no double rate at the boundary of two periods', async () => {
    const storage = new MemoryStorage(clock, metrics);
    let allowed = 0;
    for (let i = 0; i < 200; i++) {
      if ((await remaining(storage)) !== 'none') allowed++;
      clock.advance(1);
    }
    expect(allowed).toBe(11);
  });

  test('are refunded up to the full limit', async () => {
    const storage = new MemoryStorage(clock, metrics);
    expect(await remaining(storage)).toBe(9);
    for (let i = 0; i < 3; i++) await storage.add(TEN_A_SECOND, -1);
    expect(await remaining(storage)).toBe(9);
  });

  test('count failed attempts beyond the limit, concurrent or sequential', async () => {
    const storage = new MemoryStorage(clock, metrics);
    for (let i = 0; i < 30; i++) await storage.add(TEN_A_SECOND, 1);
    clock.advance(2099);
    expect(storage.blocked(TEN_A_SECOND)).toMatchObject({ timeToBlockExpire: 1 });
    clock.advance(1);
    expect(storage.blocked(TEN_A_SECOND)).toBeUndefined();
    expect(await remaining(storage)).toBe(0);
  });

  test('are bounded in number and keep the most recent ones', async () => {
    const storage = new MemoryStorage(clock, metrics, [], 100);
    for (let i = 0; i < 10_000; i++) await remaining(storage, `address ${i}`);
    expect(await size()).toBeLessThanOrEqual(100);
    expect(await remaining(storage, 'address 9999')).toBe(8);
    expect(await remaining(storage, 'address 9951')).toBe(8);
  });
});
