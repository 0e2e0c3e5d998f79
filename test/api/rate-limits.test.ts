import type { ServerResponse } from 'node:http';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Redis } from 'ioredis';
import { loadSettings } from '../../src/platform/config/settings';
import { Measurements } from '../../src/platform/observability/measurements';
import { LocalCounters } from '../../src/platform/rate-limits/rate-limits.service';
import { RateLimitsService } from '../../src/platform/rate-limits/rate-limits.service';
import { SharedCounters } from '../../src/platform/rate-limits/shared-counters';
import { TestRedis, withRedis } from '../support/redis';
import {
  type Actor,
  type Environment,
  databaseUrl,
  failure,
  logged,
  make,
  openApp,
  sql,
  useStore,
} from '../support/store';
import { moment, until } from '../support/time';

// What is promised in milliseconds is measured here, on machines that others use too.
jest.retryTimes(2);

useStore();

const LIMITS = 'credential=5/20s,address=4/20s,misses=2/20s,sign-in=1/20s';
const tooMuch = failure(429, 'rate limit exceeded');

let app: NestExpressApplication;
let url: string;

/** A replica with tight limits, behind a proxy that it trusts: X-Forwarded-For says who asks. */
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

const answer = async (...request: Parameters<typeof ask>) => {
  const { status, body } = await ask(...request);
  return { status, body };
};

const statuses = (answers: { status: number }[]) => answers.map(({ status }) => status).sort();
const times = <T>(n: number, work: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: n }, (_, i) => work(i)));

describe('in one process', () => {
  let user: Actor;

  beforeEach(async () => {
    app = await open();
    url = await app.getUrl();
    user = await make.user();
  });
  afterEach(() => app.close());

  test('an address starts at most 60 device grants in their lifetime', async () => {
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

  test('a credential has its share, wherever it asks from, and is told how much is left', async () => {
    const first = await ask('/profile', { key: user.key });
    expect(first.status).toBe(200);
    expect(first.headers.get('x-ratelimit-limit')).toBe('5');
    expect(first.headers.get('x-ratelimit-remaining')).toBe('4');
    expect(first.headers.get('x-ratelimit-reset')).toBe('4');
    expect(first.headers.get('retry-after')).toBeNull();

    expect(statuses(await times(5, (i) => ask('/profile', { key: user.key, from: `192.0.2.${i}` })))).toEqual(
      [200, 200, 200, 200, 429],
    );
    const refused = await ask('/profile', { key: user.key, from: '192.0.2.9' });
    expect({ status: refused.status, body: refused.body }).toEqual(tooMuch);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThanOrEqual(3);
    expect(Number(refused.headers.get('retry-after'))).toBeLessThanOrEqual(4);
    expect(refused.headers.get('x-ratelimit-remaining')).toBe('0');

    const other = await make.user();
    expect((await ask('/profile', { key: other.key })).status).toBe(200);
  });

  test('two keys of one user are counted apart, two spellings of one key together', async () => {
    const other = await make.key({ owner: user });
    // Once it is known, it no longer competes for its address's share.
    await ask('/profile', { key: user.key });
    await times(4, () => ask('/profile', { key: user.key }));
    expect((await ask('/profile', { key: other })).status).toBe(200);
    const bare = await fetch(`${url}/profile`, { headers: { authorization: user.key! } });
    expect(bare.status).toBe(429);
  });

  test('without a credential the address counts, an IPv6 address by its network', async () => {
    const latest = '/wharf/latest?game_id=1&channel_name=windows';
    const from = (address: string) => ask(latest, { from: address });
    expect(statuses(await times(5, () => from('192.0.2.7')))).toEqual([404, 404, 404, 404, 429]);
    expect((await from('192.0.2.8')).status).toBe(404);
    const network = await times(5, (i) => from(`2001:db8:0:1::${i}`));
    expect(statuses(network)).toEqual([404, 404, 404, 404, 429]);
    expect((await from('2001:db8:0:2::1')).status).toBe(404);
  });

  test('what no route takes counts for the address too', async () => {
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

  describe('of the routes whose path holds the credential', () => {
    test('it is the one in the path that counts, whatever else a header says', async () => {
      const other = await make.user();
      await ask('/profile', { key: other.key });
      await ask(`/api/1/${user.key}/me`);
      const answers = await times(5, () => ask(`/api/1/${user.key}/me`, { key: other.key }));
      expect(statuses(answers)).toEqual([200, 200, 200, 200, 429]);
      expect((await ask('/profile', { key: other.key })).headers.get('x-ratelimit-remaining')).toBe('3');
    });

    test('a header that contradicts the path counts for the address', async () => {
      await ask('/profile', { key: user.key });
      const answers = await times(5, () => ask('/api/1/jwt/me', { key: user.key, from: '192.0.2.23' }));
      expect(statuses(answers)).toEqual([401, 401, 401, 401, 429]);
    });
  });

  test('credentials that are made up count for the address, and then cost no query', async () => {
    const guess = (i: number) => answer('/profile', { key: `guess-${i}` });
    const answers = await times(20, guess);
    expect(answers.filter(({ status }) => status === 401)).toHaveLength(4);
    expect(answers.filter(({ status }) => status === 429)).toHaveLength(16);
    expect(await answer('/profile')).toEqual(tooMuch);
  });

  test('one who is known is not shut out by others who guess at the same address', async () => {
    expect((await ask('/profile', { key: user.key })).status).toBe(200);
    await times(20, (i) => ask('/profile', { key: `guess-${i}` }));
    expect((await ask('/profile', { key: user.key })).status).toBe(200);
  });

  test('a good credential costs its address nothing', async () => {
    const users = await times(6, () => make.user());
    for (const each of users) expect((await ask('/profile', { key: each.key })).status).toBe(200);
  });

  test('a refused scope counts as well', async () => {
    const narrow = await make.key({ owner: user, scopes: ['profile:me'] });
    // Those that came before the key was known, four at most, were counted for the address.
    const answers = statuses(await times(4 + 5 + 1, () => ask('/profile/games', { key: narrow })));
    expect(new Set(answers)).toEqual(new Set([403, 429]));
  });

  test('an X-Forwarded-For that was sent from further away is ignored', async () => {
    const forged = (i: number) => ask('/wharf/latest', { from: `203.0.113.${i}, 192.0.2.7` });
    expect(statuses(await times(5, forged))).toEqual([400, 400, 400, 400, 429]);
  });

  test('health is never limited', async () => {
    expect(new Set(statuses(await times(20, () => ask('/health/live'))))).toEqual(new Set([200]));
  });

  describe('lookups that find nothing', () => {
    let game: { id: number };
    beforeEach(async () => {
      game = await make.game({ owner: user });
    });
    const lookUp = (parameters: string) => answer(`/games/${game.id}/${parameters}`, { key: user.key });

    test('are few, and then nothing is looked up', async () => {
      const { key } = await make.downloadKey({ game });
      expect(await lookUp('download_keys?download_key=wrong')).toEqual(failure(404, 'invalid download key'));
      expect(await lookUp('purchases?email=nobody@example.com')).toEqual({
        status: 200,
        body: { purchases: [] },
      });
      expect(await lookUp(`download_keys?download_key=${key}`)).toEqual(tooMuch);
      expect((await ask('/profile', { key: user.key })).status).toBe(200);
    });

    test('while those that find something are not counted', async () => {
      const { key } = await make.downloadKey({ game });
      for (let i = 0; i < 4; i++)
        expect((await lookUp(`download_keys?download_key=${key}`)).status).toBe(200);
    });
  });
});

describe('by setting', () => {
  afterEach(() => app.close());

  test('off: nothing is limited', async () => {
    app = await open({ RATE_LIMIT: 'off' });
    url = await app.getUrl();
    const answers = await times(50, () => ask('/wharf/latest'));
    expect(new Set(statuses(answers))).toEqual(new Set([400]));
    expect(answers[0]!.headers.get('x-ratelimit-limit')).toBeNull();
  });

  test('off: nobody warns of it, at a start or at a command', async () => {
    const before = logged.length;
    app = await open({ RATE_LIMIT: 'off' });
    // Lines are gathered for a second.
    await moment(1200);
    expect(logged.slice(before).filter((line) => line.includes('"level":"warn"'))).toEqual([]);
  });

  test('by default the official client, at its fastest, is never refused', async () => {
    app = await open({ RATE_LIMIT: '' });
    url = await app.getUrl();
    const user = await make.user();
    const { key } = user;
    const path = `/games/${(await make.game({ owner: user })).id}/download_keys?download_key=x`;
    // 20 at once and 8 a second for five seconds, all of them misses.
    expect(new Set(statuses(await times(60, () => ask(path, { key }))))).toEqual(new Set([404]));
  });

  test('what was spent comes back: after Retry-After, one more is allowed', async () => {
    app = await open({ RATE_LIMIT: 'address=2/2s' });
    url = await app.getUrl();
    await times(3, () => ask('/wharf/latest'));
    const refused = await ask('/wharf/latest');
    expect(refused.status).toBe(429);
    await moment(Number(refused.headers.get('retry-after')) * 1000);
    expect((await ask('/wharf/latest')).status).toBe(400);
  });

  test('without TRUSTED_PROXIES nobody is who a header says', async () => {
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
    const shared = { REDIS_URL: redis.url, RATE_LIMIT: 'credential=5/20s,address=50/20s' };
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

  test('one share for both', async () => {
    // On a machine too busy for Redis to answer in time each may count for itself, for a moment.
    await until(async () => {
      user = await make.user();
      return String(statuses(await spread(6))) === '200,200,200,200,200,429';
    });
  });

  test('what is answered from memory is counted there too', async () => {
    const owner = await make.user();
    const game = await make.game({ owner });
    await make.build({ game, user_version: '1' });
    const path = `/wharf/latest?game_id=${game.id}&channel_name=windows`;
    await until(async () => {
      const from = `192.0.2.${++lastAddress}`;
      const answers = await times(51, (i) => ask(path, { from, at: urls[i % 2] }));
      return answers.filter(({ status }) => status === 429).length === 1;
    });
  });

  test('what is kept there goes away by itself', async () => {
    await spread(3);
    const keys = await redis.keys();
    expect(keys).toContain(`gamewharf:limit:credential:key ${await keyId(user)}`);
    for (const key of keys) expect(await redis.lifetime(key)).toBeGreaterThan(0);
  });

  test('a Redis that hangs fails nothing, and each counts for itself', async () => {
    redis.hang();
    const latest = await times(12, () => ask('/wharf/latest?game_id=1&channel_name=x', { at: urls[0] }));
    for (const { status } of latest) expect([404, 429]).toContain(status);
    const here = { key: user.key, from: '192.0.2.200' };
    expect(statuses(await times(6, () => ask('/profile', { ...here, at: urls[0] })))).toEqual([
      200, 200, 200, 200, 200, 429,
    ]);
    expect((await ask('/profile', { ...here, at: urls[1] })).status).toBe(200);
  });

  test('a Redis that hangs adds at most 60 ms', async () => {
    const counters = await SharedCounters.open(redis.url);
    await until(() => counters.available);
    const { address } = serviceWith('address=5/1s').limits!;
    const ask = () => counters.count([address], { network: 'a' }, 1, 'refusable');
    expect([await ask(), Math.round((await ask())![0]! / 100)]).toEqual([[0], 2]);
    redis.hang();
    for (let i = 0; i < 20; i++) {
      // What a timer is late by on this machine now is nobody's fault.
      const [asked, late] = await Promise.all([
        timed(ask),
        timed(() => moment(30)).then(({ ms }) => ms - 30),
      ]);
      expect(asked.value).toBeUndefined();
      // Two such questions are the most that one request asks.
      expect(asked.ms - late).toBeLessThan(30);
    }
    counters.close();
  });

  test('control: a client that waits has no answer', async () => {
    const client = new Redis(redis.url);
    await client.ping();
    redis.hang();
    expect(await Promise.race([client.ping(), moment(300).then(() => 'no answer')])).toBe('no answer');
    client.disconnect();
  });

  test('a Redis that is gone changes nothing either, and counts for all again when it is back', async () => {
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

async function keyId({ id }: Actor): Promise<number> {
  const [key] = await sql<{ id: number }>('SELECT id FROM api_keys WHERE user_id = $1', [id]);
  return key!.id;
}

async function timed<T>(work: () => Promise<T>): Promise<{ value: T; ms: number }> {
  const started = performance.now();
  return { value: await work(), ms: performance.now() - started };
}

const serviceWith = (RATE_LIMIT: string) =>
  new RateLimitsService(loadSettings({ RATE_LIMIT }), new Measurements(), null);

describe('a limit of 10 a second', () => {
  let service: RateLimitsService;
  let now: number;
  const caller = { network: '192.0.2.1' };

  beforeEach(() => {
    service = serviceWith('address=10/1s');
    now = 5000;
    jest.spyOn(performance, 'now').mockImplementation(() => now);
  });
  afterEach(() => jest.restoreAllMocks());

  const isAllowed = () => {
    try {
      void service.spend(
        { setRateLimit: () => undefined } as unknown as ServerResponse,
        [service.limits!.address],
        caller,
      );
      return true;
    } catch {
      return false;
    }
  };
  const remaining = () => {
    const { address } = service.limits!;
    return address.remaining(address.counters.spent(caller.network, now));
  };

  test('allows no double share at the border of two periods', () => {
    let allowed = 0;
    for (now = 900; now < 1100; now++) if (isAllowed()) allowed++;
    expect(allowed).toBe(11);
  });

  test('gives back what it is told to, and never more than all', () => {
    const giveBack = () => service.add([service.limits!.address], caller, -1);
    isAllowed();
    expect(remaining()).toBe(9);
    for (let i = 0; i < 2; i++) {
      void giveBack();
      expect(remaining()).toBe(10);
    }
  });

  test('counts what failed also beyond what is left: many at once cost as much as one after the other', () => {
    for (let i = 0; i < 30; i++) void service.add([service.limits!.address], caller, 1);
    now += 1900;
    expect(isAllowed()).toBe(false);
    now += 200;
    expect(isAllowed()).toBe(true);
  });
});

describe('counters of a process', () => {
  test('are few, however many are asked for, and the last ones stay', () => {
    const counters = new LocalCounters(1000, 100);
    for (let i = 0; i < 10_000; i++) counters.of(`address ${i}`, 5000).full_at = 6000;
    expect(counters.size).toBe(100);
    expect(counters.spent('address 9999', 5000)).toBe(1000);
  });

  test('are forgotten when they tell nothing any more, and not while they are in use', () => {
    const counters = new LocalCounters(1000);
    const use = (name: string, now: number) => (counters.of(name, now).full_at = now + 900);
    for (let i = 0; i < 50; i++) use(`idle ${i}`, 0);
    for (let now = 0; now <= 600_000; now += 500) use('busy', now);
    for (let i = 0; i < 10; i++) use(`new ${i}`, 600_000);
    expect(counters.size).toBe(11);
    expect(counters.spent('busy', 600_000)).toBe(900);
  });
});
