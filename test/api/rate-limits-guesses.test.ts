import type { NestExpressApplication } from '@nestjs/platform-express';
import { Browser, PASSWORD, withPassword } from '../support/browser';
import { TestRedis, withRedis } from '../support/redis';
import { type Actor } from '../support/actor';
import { databaseUrl, type Environment, openApp, useStore } from '../support/app';
import { failure } from '../support/http';
import { make } from '../support/make';
import { until } from '../support/time';

useStore();

const tooMuch = failure(429, 'rate limit exceeded');

let app: NestExpressApplication;
let url: string;

async function open(environment: Environment): Promise<void> {
  app = await openApp({ DATABASE_URL: databaseUrl(), TRUSTED_PROXIES: 'loopback', ...environment });
  url = await app.getUrl();
}
afterEach(() => app.close());

async function ask(
  path: string,
  { key, from = '192.0.2.1', at = url }: { key?: string; from?: string; at?: string } = {},
) {
  const response = await fetch(at + path, {
    headers: { 'x-forwarded-for': from, ...(key === undefined ? {} : { authorization: `Bearer ${key}` }) },
  });
  return { status: response.status, body: (await response.json()) as unknown };
}

const allAtOnce = <T>(n: number, work: (i: number) => Promise<T>) =>
  Promise.all(Array.from({ length: n }, (_, i) => work(i)));
const count = (responses: { status: number }[], status: number) =>
  responses.filter((response) => response.status === status).length;

const makeKeys = (owner: Actor, n: number) => allAtOnce(n, () => make.key({ owner }));

describe('all credentials of a user together', () => {
  test('are limited to three times the limit of one', async () => {
    await open({ RATE_LIMIT: 'credential=5/900s,address=100/900s' });
    const [user, stranger] = [await make.user(), await make.user()];
    const keys = await makeKeys(user, 6);
    const responses = await allAtOnce(60, (i) => ask('/profile', { key: keys[i % 6] }));
    expect([count(responses, 200), count(responses, 429)]).toEqual([15, 45]);
    expect(await ask('/profile', { key: await make.key({ owner: user }) })).toEqual(tooMuch);
    expect((await ask('/profile', { key: stranger.key })).status).toBe(200);
  });

  test('are limited by a setting', async () => {
    await open({ RATE_LIMIT: 'credential=5/900s,user=7/900s,address=100/900s' });
    const keys = await makeKeys(await make.user(), 3);
    const responses = await allAtOnce(30, (i) => ask('/profile', { key: keys[i % 3] }));
    expect(count(responses, 200)).toBe(7);
  });

  test('are not charged for requests beyond the limit of one credential', async () => {
    await open({ RATE_LIMIT: 'credential=2/900s,user=4/800s,address=100/900s' });
    const [busy, other] = await makeKeys(await make.user(), 2);
    const responses = [];
    for (let i = 0; i < 10; i++) responses.push(await ask('/profile', { key: busy }));
    for (let i = 0; i < 2; i++) responses.push(await ask('/profile', { key: other }));
    expect(responses.map(({ status }) => status)).toEqual([
      200,
      200,
      ...Array<number>(8).fill(429),
      200,
      200,
    ]);
  });

  test('share the limit of failed lookups, also when all arrive at once', async () => {
    await open({ RATE_LIMIT: 'misses=4/900s' });
    const user = await make.user();
    const game = await make.game({ owner: user });
    const { key: found } = await make.downloadKey({ game });
    const keys = await makeKeys(user, 5);
    const lookUp = (download_key: string, i: number) =>
      ask(`/games/${game.id}/download_keys?download_key=${download_key}`, { key: keys[i % 5] });
    for (let i = 0; i < 20; i++) expect((await lookUp(found, i)).status).toBe(200);
    const responses = await allAtOnce(40, (i) => lookUp(`guess-${i}`, i));
    expect([count(responses, 404), count(responses, 429)]).toEqual([4, 36]);
    expect(await lookUp(found, 1)).toEqual(tooMuch);
    expect((await ask('/profile', { key: keys[0] })).status).toBe(200);
  });
});

describe.each([
  ['IPv4', (site: number, host: number) => `198.51.${site}.${host}`, '203.0.113.1'],
  ['IPv6', (site: number, host: number) => `2001:db8:${site}:${host}::1`, '2001:db9::1'],
])('%s: failed attempts at credentials', (_, address, elsewhere) => {
  const guess = (from: string) => ask('/profile', { key: `guess-${from}`, from });
  const guessMany = (n: number, site: (i: number) => number) =>
    Promise.all(Array.from({ length: n }, (_each, i) => guess(address(site(i), i + 1))));

  test('are limited per site, across its IP addresses', async () => {
    await open({ RATE_LIMIT: 'address=2/900s' });
    const user = await make.user();
    expect((await ask('/profile', { key: user.key, from: address(1, 200) })).status).toBe(200);
    expect(count(await guessMany(8, () => 1), 401)).toBe(8);
    expect(await guess(address(1, 100))).toEqual(tooMuch);
    // Control clients: a cached credential, an anonymous client, and another site.
    expect((await ask('/profile', { key: user.key, from: address(1, 200) })).status).toBe(200);
    expect((await ask('/.well-known/jwks.json', { from: address(1, 101) })).status).toBe(200);
    expect((await guess(address(2, 1))).status).toBe(401);
  });

  test('are limited per provider, across its sites', async () => {
    await open({ RATE_LIMIT: 'address=2/900s' });
    expect(count(await guessMany(40, (i) => 10 + (i % 10)), 401)).toBe(40);
    expect(await guess(address(30, 1))).toEqual(tooMuch);
    expect((await guess(elsewhere)).status).toBe(401);
  });
});

test('valid credentials are not counted for networks', async () => {
  await open({ RATE_LIMIT: 'address=2/900s' });
  for (let i = 0; i < 12; i++) {
    const { key } = await make.user();
    expect((await ask('/profile', { key, from: `198.51.100.${i}` })).status).toBe(200);
  }
});

test('failed lookups without a credential count as failed attempts', async () => {
  await open({ RATE_LIMIT: 'address=2/900s' });
  const games = await allAtOnce(2, async () => make.game({ owner: await make.user() }));
  for (const game of games) await make.build({ game, user_version: '1' });
  const latest = (game_id: number, from: string) =>
    ask(`/wharf/latest?game_id=${game_id}&channel_name=windows`, { from });
  for (let i = 0; i < 12; i++) expect((await latest(games[0]!.id, `198.51.100.${i}`)).status).toBe(200);
  for (let i = 0; i < 8; i++) expect((await latest(7_000_000 + i, `198.51.100.${20 + i}`)).status).toBe(404);
  expect(await latest(7_000_100, '198.51.100.99')).toEqual(tooMuch);
  expect(await ask('/wharf/latest?channel_name=windows&game_id=7000200', { from: '198.51.100.99' })).toEqual(
    tooMuch,
  );
  // A build that others requested isn't a failed lookup, so clients on the same network still get it.
  expect((await latest(games[0]!.id, '198.51.100.98')).status).toBe(200);
  expect((await latest(games[1]!.id, '203.0.113.1')).status).toBe(200);
});

describe('failed sign-ins', () => {
  const signIn = (name: string, password: string, from: string) =>
    new Browser({ 'x-forwarded-for': from }, () => url).signIn(name, password);

  test('are limited per site, and successful ones are not counted', async () => {
    await open({ RATE_LIMIT: 'sign-in=2/900s' });
    const user = await withPassword(await make.user());
    for (let i = 0; i < 10; i++)
      expect((await signIn(user.username, PASSWORD, `198.51.100.${i}`)).status).toBe(303);
    for (let i = 0; i < 8; i++)
      expect((await signIn(`nobody-${i}`, 'wrong', `198.51.100.${100 + i}`)).status).toBe(403);
    expect((await signIn('nobody-else', 'wrong', '198.51.100.200')).status).toBe(429);
    expect((await signIn('nobody-else', 'wrong', '198.51.101.1')).status).toBe(403);
    expect((await ask('/profile', { key: 'guess', from: '198.51.100.200' })).status).toBe(401);
  });

  test('are limited per provider', async () => {
    await open({ RATE_LIMIT: 'sign-in=1/900s' });
    for (let i = 0; i < 20; i++)
      expect((await signIn(`nobody-${i}`, 'wrong', `198.51.${i}.1`)).status).toBe(403);
    expect((await signIn('nobody-else', 'wrong', '198.51.200.1')).status).toBe(429);
    expect((await signIn('nobody-else', 'wrong', '203.0.113.1')).status).toBe(403);
  });
});

withRedis.describe('replicas share through Redis', () => {
  let redis: TestRedis;
  let urls: string[];

  async function openTwo(RATE_LIMIT: string): Promise<void> {
    redis = await TestRedis.start();
    await open({ REDIS_URL: redis.url, RATE_LIMIT });
    const replica = await openApp({
      DATABASE_URL: databaseUrl(),
      TRUSTED_PROXIES: 'loopback',
      REDIS_URL: redis.url,
      RATE_LIMIT,
    });
    urls = [url, await replica.getUrl()];
    for (const [i, at] of urls.entries())
      await until(async () => {
        await ask('/nowhere', { at, from: `203.0.113.${i}` });
        return (await redis.keys()).some((key) => key.endsWith(`203.0.113.${i}`));
      });
  }
  afterEach(() => redis.stop());

  // If Redis does not respond in time on a busy machine, each replica may count separately for a moment.
  test('share the limit of all credentials of a user', async () => {
    await openTwo('credential=5/900s,user=7/900s,address=900/900s');
    await until(async () => {
      const keys = await makeKeys(await make.user(), 4);
      const responses = await allAtOnce(20, (i) => ask('/profile', { key: keys[i % 4], at: urls[i % 2] }));
      return count(responses, 200) === 7;
    });
  });

  test('share the limits of the networks around an IP address', async () => {
    await openTwo('address=3/900s');
    let site = 0;
    await until(async () => {
      site++;
      const guess = (i: number) =>
        ask('/profile', { key: 'guess', at: urls[i % 2], from: `198.51.${site}.${i}` });
      const responses = [];
      // A replica learns the state of the networks only with a failed attempt of its own.
      for (let i = 0; i < 16; i++) responses.push(await guess(i));
      return count(responses, 401) === 12 || count(responses, 401) === 13;
    });
  });
});
