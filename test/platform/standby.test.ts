import type { NestExpressApplication } from '@nestjs/platform-express';
import { TokensService } from '../../src/auth/tokens.service';
import { Database } from '../../src/platform/database/database';
import { read } from '../../src/platform/database/statement';
import { gracefulStop } from '../../src/platform/lifecycle/graceful-stop';
import { OPERATOR_TOKEN } from '../support/importing';
import { FaultyProxy } from '../support/proxy';
import { type DatabaseWithStandby, databaseWithStandby } from '../support/standby';
import { type Actor, type Environment, make, openApp, sql, useStore } from '../support/store';
import { until } from '../support/time';

// What is promised in milliseconds is measured here, on machines that others use too.
jest.retryTimes(2);
jest.setTimeout(60_000);

let database: DatabaseWithStandby;
let proxy: FaultyProxy;

useStore({}, async () => (database = await databaseWithStandby()));

let apps: NestExpressApplication[] = [];
let owner: Actor;
let stranger: Actor;
let game: { id: number };
let collection: { id: number };

/** A replica of the service whose reads go to the standby, by way of a proxy. */
async function open(environment: Environment = {}): Promise<string> {
  const app = await openApp({ DATABASE_READ_URL: proxy.through(database.standby_url), ...environment });
  apps.push(app);
  return app.getUrl();
}

const standbyOf = (app: NestExpressApplication) => app.get(Database).standby!;
const used = () => until(() => apps.every((app) => standbyOf(app).usable === true), 10_000);
const answered = () => standbyOf(apps[0]!).reads.answered;

beforeEach(async () => {
  proxy = await FaultyProxy.before(database.standby_url);
  owner = await make.user();
  stranger = await make.user();
  game = await make.game({ owner });
  collection = await make.collection({ owner, games: [game] });
  await sql(`UPDATE collection_games SET blurb = 'before' WHERE collection_id = $1`, [collection.id]);
});
afterEach(async () => {
  proxy.thaw();
  await database.atStandby('SELECT pg_wal_replay_resume()');
  for (const app of apps) await gracefulStop(app);
  apps = [];
  await proxy.vanish();
});

async function ask(url: string, who: Actor, path: string, form?: Record<string, string>) {
  const started = performance.now();
  const response = await fetch(url + path, {
    method: form ? 'POST' : 'GET',
    headers: { authorization: `Bearer ${who.key}` },
    ...(form && { body: new URLSearchParams(form) }),
  });
  const body = (await response.json()) as Record<string, unknown>;
  return { status: response.status, body, ms: performance.now() - started };
}

const one = () => `/collections/${collection.id}`;
const page = () => `${one()}/collection-games`;
type Entries = { game_id: number; blurb?: string }[];
const entriesFor = async (who: Actor, url: string) =>
  (await ask(url, who, page())).body.collection_games as Entries;
const blurbFor = async (who: Actor, url: string) => (await entriesFor(who, url))[0]!.blurb;
const write = async (url: string, blurb: string, who = owner) =>
  expect(await ask(url, who, `${page()}/${game.id}`, { blurb })).toMatchObject({ status: 200 });

/** Nothing that is written from now on reaches the standby. */
async function pauseReplay(): Promise<void> {
  const [{ position }] = (await sql('SELECT pg_current_wal_lsn()::text AS position')) as [
    { position: string },
  ];
  await until(async () => {
    const [row] = await database.atStandby<{ done: boolean }>(
      `SELECT pg_last_wal_replay_lsn() >= '${position}' AS done`,
    );
    return row!.done;
  });
  await database.atStandby('SELECT pg_wal_replay_pause()');
  await until(async () => {
    const [row] = await database.atStandby<{ state: string }>(
      'SELECT pg_get_wal_replay_pause_state() AS state',
    );
    return row!.state === 'paused';
  });
}

describe('a standby that stands still', () => {
  let here: string;
  let there: string;

  beforeEach(async () => {
    // Two replicas of the service, which share nothing but the database.
    here = await open({ DATABASE_READ_LAG_SECONDS: '3600', OPERATOR_TOKEN });
    there = await open({ DATABASE_READ_LAG_SECONDS: '3600' });
    await used();
    await pauseReplay();
  });

  test('strangers may see what was, who wrote sees what was written, on every replica and at once', async () => {
    // Both know their callers, as they do in the middle of a conversation.
    for (const url of [here, there]) for (const who of [owner, stranger]) await ask(url, who, page());
    await write(here, 'after');
    expect(await blurbFor(owner, there)).toBe('after');
    expect(await blurbFor(owner, here)).toBe('after');
    expect(await blurbFor(stranger, there)).toBe('before');
    expect(await blurbFor(stranger, here)).toBe('before');
  });

  test('control: without the mark of the write, who wrote would see what was', async () => {
    await write(here, 'after');
    await sql('DELETE FROM user_writes');
    expect(await blurbFor(owner, there)).toBe('before');
  });

  test('many writes and reads in turn, each on the other replica: never an old answer', async () => {
    for (let i = 0; i < 20; i++) {
      const [writes, reads] = i % 2 ? [here, there] : [there, here];
      await write(writes, `note ${i}`);
      expect(await blurbFor(owner, reads)).toBe(`note ${i}`);
    }
  });

  test('all credentials of a user read what any of them wrote', async () => {
    const other = owner.with(await make.key({ owner }));
    const { key } = await apps[0]!.get(TokensService).issue({
      user_id: owner.id,
      game_id: game.id,
      scopes: ['collection:view', 'collection:edit'],
      api_key_id: null,
    });
    await write(here, 'by jwt', owner.with(key));
    expect(await blurbFor(other, there)).toBe('by jwt');
  });

  test.each(['', 'a key for retries'])(
    'every kind of write is read back, with Idempotency-Key "%s"',
    async (key) => {
      const post = async (path: string, form: Record<string, string>) => {
        const response = await fetch(here + path, {
          method: 'POST',
          headers: {
            authorization: `Bearer ${owner.key}`,
            ...(key && { 'idempotency-key': `${key} ${path}` }),
          },
          body: new URLSearchParams(form),
        });
        expect(response.status).toBe(200);
        return (await response.json()) as { collection?: { id: number } };
      };
      const other = await make.game({ owner });
      const gamesFor = async (who: Actor) => (await entriesFor(who, there)).map(({ game_id }) => game_id);
      const id = { game_id: String(other.id) };
      await post(`${one()}/add-game`, id);
      expect(await gamesFor(owner)).toEqual([game.id, other.id]);
      expect(await gamesFor(stranger)).toEqual([game.id]);
      await post(`${page()}/${game.id}`, { blurb: 'read me' });
      expect(await blurbFor(owner, there)).toBe('read me');
      await post(`${one()}/order`, { game_ids: JSON.stringify([other.id]) });
      expect(await gamesFor(owner)).toEqual([other.id, game.id]);
      await post(`${one()}/remove-game`, id);
      expect(await gamesFor(owner)).toEqual([game.id]);
      await post(one(), { title: 'renamed' });
      const titlesFor = async () =>
        ((await ask(there, owner, '/profile/collections')).body.collections as { title: string }[]).map(
          ({ title }) => title,
        );
      expect(await titlesFor()).toEqual(['renamed']);
      const made = (await post('/collections', { title: 'new' })).collection!.id;
      expect(await titlesFor()).toEqual(['new', 'renamed']);
      expect((await ask(there, owner, `/collections/${made}/collection-games`)).status).toBe(200);
      expect((await ask(there, stranger, `/collections/${made}/collection-games`)).status).toBe(404);
      await post(`/collections/${made}/delete`, {});
      expect(await titlesFor()).toEqual(['renamed']);
    },
  );

  test('a sale and its refund are read back by who may edit the game', async () => {
    const operator = async (path: string, form: Record<string, string>) => {
      const response = await fetch(`${here}/operator/purchases${path}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${OPERATOR_TOKEN}` },
        body: new URLSearchParams(form),
      });
      return ((await response.json()) as { purchase: { id: number } }).purchase;
    };
    const statuses = async () =>
      ((await ask(there, owner, `/games/${game.id}/sales`)).body.sales as { status: string }[]).map(
        ({ status }) => status,
      );
    const { id } = await operator('', {
      game_id: String(game.id),
      email: 'me@example.com',
      currency: 'USD',
      amount: '499',
    });
    expect(await statuses()).toEqual(['complete']);
    await sql('DELETE FROM user_writes');
    await operator(`/${id}/refund`, {});
    expect(await statuses()).toEqual(['refunded']);
  });

  test('who wrote goes on reading from the standby once it has caught up', async () => {
    await write(here, 'after');
    await blurbFor(owner, here);
    const before = answered();
    await database.atStandby('SELECT pg_wal_replay_resume()');
    await until(async () => (await blurbFor(owner, here)) === 'after' && answered() > before);
  });
});

test('what reads many rows is answered by the standby, and lookups of one by the primary', async () => {
  const url = await open();
  await used();
  await make.purchase({ games: [game], email: 'buyer@example.com' });
  const { key } = await make.downloadKey({ game });
  await until(async () => {
    const [row] = await database.atStandby<{ n: number }>('SELECT count(*)::int AS n FROM download_keys');
    return row!.n > 0;
  });
  const paths: [string, number][] = [
    ['/profile/games', 1],
    ['/profile/collections', 1],
    [`/profile/collections?game_id=${game.id}`, 1],
    [page(), 1],
    [`${page()}?page=2`, 1],
    [`/games/${game.id}/purchases?email=buyer@example.com`, 1],
    [one(), 0],
    [`/games/${game.id}/download_keys?download_key=${key}`, 0],
    ['/profile', 0],
  ];
  for (const [path, more] of paths) {
    const before = answered();
    expect([path, (await ask(url, owner, path)).status]).toEqual([path, 200]);
    expect([path, answered() - before]).toEqual([path, more]);
  }
});

test('a standby that falls behind is left alone, and used again when it has caught up', async () => {
  const url = await open({ DATABASE_READ_LAG_SECONDS: '1' });
  await used();
  await pauseReplay();
  await sql(`UPDATE collection_games SET blurb = 'imported' WHERE collection_id = $1`, [collection.id]);
  await until(async () => (await blurbFor(stranger, url)) === 'imported');
  await until(() => standbyOf(apps[0]!).usable === false);
  await database.atStandby('SELECT pg_wal_replay_resume()');
  await used();
});

test('a standby that hangs delays the reads of that moment alone', async () => {
  const url = await open();
  await used();
  await ask(url, owner, page());
  proxy.freeze();
  for (const { status, ms } of await Promise.all(Array.from({ length: 20 }, () => ask(url, owner, page())))) {
    expect(status).toBe(200);
    expect(ms).toBeLessThan(2000);
  }
  for (let i = 0; i < 10; i++) expect((await ask(url, owner, page())).ms).toBeLessThan(500);
  proxy.thaw();
  await used();
});

test('a standby that is gone fails no read, and is used again when it is back', async () => {
  const url = await open();
  await used();
  await proxy.vanish();
  for (const { status } of await Promise.all(Array.from({ length: 20 }, () => ask(url, owner, page()))))
    expect(status).toBe(200);
  await until(() => standbyOf(apps[0]!).usable === false);
  await proxy.open();
  await used();
  const before = answered();
  await ask(url, owner, page());
  expect(answered()).toBe(before + 1);
});

test('a standby that is not there at the start fails nothing either', async () => {
  await proxy.vanish();
  const url = await open();
  expect(await blurbFor(owner, url)).toBe('before');
  await proxy.open();
  await used();
});

test('a primary in place of a standby is never read as one, and its writes are marked all the same', async () => {
  const url = await open({ DATABASE_READ_URL: database.url });
  await until(() => standbyOf(apps[0]!).usable === false);
  await write(url, 'after');
  expect(await blurbFor(owner, url)).toBe('after');
  expect(answered()).toBe(0);
  expect(await sql('SELECT writes FROM user_writes WHERE user_id = $1', [owner.id])).toEqual([{ writes: 1 }]);
});

test('a standby in place of the database proves nothing: builds are asked for again and again', async () => {
  await make.build({ game });
  const app = await openApp({ DATABASE_URL: database.standby_url });
  apps.push(app);
  const url = await app.getUrl();
  const latest = async () =>
    (await fetch(`${url}/wharf/latest?game_id=${game.id}&channel_name=windows`)).status;
  await until(async () => (await latest()) === 200);
  const rows = jest.spyOn(app.get(Database), 'rows');
  const asked = () => rows.mock.calls.filter(([{ name }]) => name === 'newest_builds_by_game').length;
  await until(async () => (await latest()) === 200 && asked() >= 4, 5000);
});

test('what is wrong with a question is no fault of the standby', async () => {
  await open();
  await used();
  const divided = read('standby_divided', 'SELECT 1 / $1::int AS part');
  const part = (by: number) => apps[0]!.get(Database).rowsFor(owner.id, divided, [by]);
  await expect(part(0)).rejects.toMatchObject({ code: '22012' });
  expect(standbyOf(apps[0]!).usable).toBe(true);
  expect(await part(1)).toEqual([{ part: 1 }]);
  expect(standbyOf(apps[0]!).reads).toMatchObject({ answered: 1, failed: 1 });
});

test('without a standby no write is marked', async () => {
  const app = await openApp();
  apps.push(app);
  await write(await app.getUrl(), 'after');
  expect(await sql('SELECT writes FROM user_writes WHERE user_id = $1', [owner.id])).toEqual([]);
});
