import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { Client } from 'pg';
import { MAX_COLLECTIONS } from '../../src/collections/collections.service';
import { OPERATOR_TOKEN } from '../support/importing';
import { type Actor } from '../support/actor';
import { baseUrl, databaseUrl, openApp, theApp, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { RequestGate } from '../../src/platform/server/request-gate';
import { sleep, until } from '../support/time';

useStore({ OPERATOR_TOKEN });

const LIST = '/profile/collections';
const readIds = (body: unknown, list: string) =>
  (body as Record<string, { id: number }[]>)[list]!.map(({ id }) => id);
const ids = async (text: string, values: unknown[]) =>
  (await sql<{ id: number }>(text, values)).map(({ id }) => id);

/** Creates this many collections, many of which were updated at the same moment. */
async function collections(owner: { id: number }, count: number, description = `'<p>Words</p>'`) {
  await sql(
    `INSERT INTO collections (user_id, title, description, updated_at)
     SELECT $1, 'List ' || i, ${description}, now() - (i / 3) * interval '1 second' FROM generate_series(1, $2) i`,
    [owner.id, count],
  );
}
const LONG = `repeat(chr(19968 + i % 100), 20000)`;

describe('a list of more than 500', () => {
  let owner: Actor;
  let other: Actor;
  beforeAll(async () => {
    [owner, other] = [await make.user(), await make.user()];
    await collections(owner, 900);
    await collections(owner, 30, LONG);
    await collections(other, 300);
    await sql('INSERT INTO collection_admins SELECT id, $1 FROM collections WHERE user_id = $2', [
      owner.id,
      other.id,
    ]);
  });

  const inOrder = () =>
    ids(
      `SELECT id FROM collections c WHERE user_id = $1
       OR EXISTS (SELECT FROM collection_admins a WHERE a.collection_id = c.id AND a.user_id = $1)
       ORDER BY updated_at DESC, id DESC`,
      [owner.id],
    );

  test('is complete and in order', async () => {
    const { status, body, headers } = await send('GET', LIST, { headers: owner.headers });
    expect(status).toBe(200);
    expect(headers.get('content-length')).toBeNull();
    expect(readIds(body, 'collections')).toEqual(await inOrder());
    expect(readIds(body, 'collections')).toHaveLength(1230);
  });

  test('has the same entries as a short one', async () => {
    const { body } = await owner.get(LIST);
    for (const collection of (body as { collections: { id: number; user_id: number }[] }).collections.filter(
      (_, i) => i % 50 === 0,
    ))
      expect(await owner.get(`/collections/${collection.id}`)).toEqual({ status: 200, body: { collection } });
  });

  test('includes whether each collection contains a game', async () => {
    const game = await make.game({ owner });
    const [held] = await inOrder();
    await owner.post(`/collections/${held}/add-game`, { game_id: game.id });
    const { body } = await owner.get(LIST, { game_id: game.id });
    const holding = (body as { collections: { id: number; has_game: boolean }[] }).collections;
    expect(holding.filter(({ has_game }) => has_game).map(({ id }) => id)).toEqual([held]);
    expect(holding.filter(({ has_game }) => !has_game)).toHaveLength(1229);
  });

  test('responds to HEAD without a body', async () => {
    const { status, headers } = await fetch(baseUrl() + LIST, { method: 'HEAD', headers: owner.headers });
    expect([status, headers.get('content-type')]).toEqual([200, 'application/json']);
  });

  test('is streamed with fewer entries, too, if their descriptions are long', async () => {
    const user = await make.user();
    await collections(user, 20, LONG);
    const { body, headers } = await send('GET', LIST, { headers: user.headers });
    expect(headers.get('content-length')).toBeNull();
    expect(readIds(body, 'collections')).toHaveLength(20);
  });

  test('is sent at once with fewer entries', async () => {
    const user = await make.user();
    await collections(user, 500);
    const { body, headers, text } = await send('GET', LIST, { headers: user.headers });
    expect(headers.get('content-length')).toBe(String(Buffer.byteLength(text)));
    expect(readIds(body, 'collections')).toHaveLength(500);
  });
});

test.each(['/profile/games', '/api/1/key/my-games'])(
  '%s: returns a list of more than 500 completely and in order',
  async (path) => {
    const [owner, other] = [await make.user(), await make.user()];
    await sql(
      `INSERT INTO games (user_id, slug, title, created_at)
     SELECT CASE WHEN i % 4 = 0 THEN $2::bigint ELSE $1 END, 'g' || i, 'Game ' || i, now() - (i / 3) * interval '1 second'
     FROM generate_series(1, 1100) i`,
      [owner.id, other.id],
    );
    await sql('INSERT INTO game_admins SELECT id, $1 FROM games WHERE user_id = $2', [owner.id, other.id]);
    const { body } = await owner.get(path);
    expect(readIds(body, 'games')).toEqual(
      await ids('SELECT id FROM games WHERE user_id = ANY ($1) ORDER BY created_at DESC, id DESC', [
        [owner.id, other.id],
      ]),
    );
  },
);

test.each(['/games/ID/purchases', '/api/1/key/game/ID/purchases'])(
  '%s: returns a list of more than 100 completely and in order',
  async (path) => {
    const [owner, buyer] = [
      await make.user(),
      await make.user({ emails: [{ email: `${path.length}@example.com`, verified: true }] }),
    ];
    const [game, more] = [await make.game({ owner }), await make.game({ owner })];
    await sql(
      `WITH made AS (
       INSERT INTO purchases (user_id, email, source, currency, amount, status, purchase_type, created_at)
       SELECT CASE WHEN i % 2 = 0 THEN $1::bigint END, $2, 'card', 'USD', 500,
              CASE WHEN i % 10 = 0 THEN 'refunded' ELSE 'complete' END, CASE WHEN i % 7 = 0 THEN 'bundle' ELSE 'game' END,
              now() - (i / 3) * interval '1 second'
       FROM generate_series(1, 400) i RETURNING id, purchase_type)
     INSERT INTO purchase_games (purchase_id, game_id)
     SELECT id, $3::bigint FROM made UNION ALL SELECT id, $4 FROM made WHERE purchase_type = 'bundle'`,
      [buyer.id, `${path.length}@example.com`, game.id, more.id],
    );
    const expected = await ids(
      `SELECT p.id FROM purchases p JOIN purchase_games g ON g.purchase_id = p.id
     WHERE g.game_id = $1 AND p.status = 'complete' ORDER BY p.created_at DESC, p.id DESC`,
      [game.id],
    );
    expect(expected).toHaveLength(360);
    for (const selector of [{ user_id: buyer.id }, { email: `${path.length}@example.com` }]) {
      const { body } = await owner.get(path.replace('ID', String(game.id)), selector);
      expect(readIds(body, 'purchases')).toEqual(expected);
      expect(
        (body as { purchases: { game_id: unknown }[] }).purchases.filter(({ game_id }) =>
          Array.isArray(game_id),
        ).length,
      ).toBeGreaterThan(40);
    }
  },
);

test('returns a page with long blurbs completely and in order', async () => {
  const owner = await make.user();
  const collection = await make.collection({ owner });
  await sql(
    `WITH made AS (
       INSERT INTO games (user_id, slug, title, published_at)
       SELECT $1, 'noted' || i, 'Noted ' || i, now() FROM generate_series(1, 60) i RETURNING id)
     INSERT INTO collection_games (collection_id, game_id, sort_key, user_id, blurb)
     SELECT $2, id, -id, $1, CASE WHEN id % 2 = 0 THEN repeat(chr(19968 + (id % 100)::int), 20000)
                                  WHEN id % 3 = 0 THEN 'a note' END FROM made`,
    [owner.id, collection.id],
  );
  await sql('UPDATE collections SET games_count = 60 WHERE id = $1', [collection.id]);
  const other = await make.collection({ owner });
  await sql(
    `INSERT INTO collection_games (collection_id, game_id, sort_key, user_id, blurb)
     SELECT $2, game_id, sort_key, user_id, 'x' || substr(blurb, 2) FROM collection_games WHERE collection_id = $1`,
    [collection.id, other.id],
  );
  const entries = await sql<{ game_id: number; blurb: string | null }>(
    'SELECT game_id, blurb FROM collection_games WHERE collection_id = $1 ORDER BY sort_key',
    [collection.id],
  );
  // Many long blurbs, few, one and none.
  for (const [page, per_page] of [
    [1, 40],
    [2, 40],
    [2, 5],
    [1, 1],
    [2, 1],
  ] as const) {
    const start = (page - 1) * per_page;
    expect(
      await owner.get(`/collections/${collection.id}/collection-games`, { page, per_page }),
    ).toMatchObject(
      ok({
        page,
        per_page,
        collection_games: entries
          .slice(start, start + per_page)
          .map((entry, i) => ({ ...entry, position: start + i + 1 })),
      }),
    );
  }
});

describe('a client that requests a long list', () => {
  let owner: Actor;
  beforeAll(async () => {
    owner = await make.user();
    // 40 MB, far more than a connection buffers.
    await collections(owner, 650, LONG);
  });

  const open: Socket[] = [];
  afterEach(() => open.splice(0).forEach((socket) => socket.destroy()));

  /** Sends the request, and stops reading after the first bytes. */
  async function requestList({ headers }: Actor, localAddress = '127.0.0.1'): Promise<Socket> {
    const { port } = new URL(baseUrl());
    const socket = connect({ port: Number(port), host: '127.0.0.1', localAddress });
    open.push(socket);
    socket.on('error', () => undefined);
    socket.write(`GET ${LIST} HTTP/1.1\r\nHost: a\r\nAuthorization: ${headers.authorization}\r\n\r\n`);
    await once(socket, 'readable');
    return socket;
  }

  /** Reads to the end; returns whether it arrived. */
  async function isWhole(socket: Socket): Promise<boolean> {
    let last = '';
    socket.on('data', (chunk: Buffer) => {
      last = (last + chunk.toString('latin1', Math.max(0, chunk.length - 20))).slice(-20);
      if (last.endsWith(']}\r\n0\r\n\r\n')) socket.end();
    });
    await once(socket, 'close');
    return last.endsWith(']}\r\n0\r\n\r\n');
  }

  test('is rejected the fifth time while other requests and clients are served', async () => {
    const address = '127.0.0.2';
    const slow = await Promise.all([1, 2, 3, 4].map(() => requestList(owner, address)));
    expect(String((await requestList(owner, address)).read())).toMatch(/^HTTP\/1.1 503 /);
    expect((await owner.get(LIST)).status).toBe(200);
    expect(await Promise.all(slow.map(isWhole))).toEqual([true, true, true, true]);
    expect(String((await requestList(owner, address)).read(12))).toBe('HTTP/1.1 200');
  });

  test('leaves room for others if it uses a few IP addresses and reads slowly', async () => {
    for (let i = 0; i < 8; i++)
      await Promise.all([1, 2, 3, 4].map(() => requestList(owner, `127.0.0.${10 + i}`)));
    expect((await owner.get(LIST)).status).toBe(200);
  });

  test('releases its place when it disconnects', async () => {
    for (let i = 0; i < 5; i++) {
      const [first, second, ...others] = await Promise.all([1, 2, 3, 4].map(() => requestList(owner)));
      first!.destroy();
      second!.resetAndDestroy();
      for (const one of others) one.destroy();
      await sleep(50);
    }
    expect((await owner.get(LIST)).status).toBe(200);
  });

  test('has its connection closed if the rest cannot be read', async () => {
    const socket = await requestList(owner);
    const holder = new Client({ connectionString: databaseUrl() });
    await holder.connect();
    await holder.query('BEGIN; LOCK TABLE collections IN ACCESS EXCLUSIVE MODE');
    expect(await isWhole(socket)).toBe(false);
    await holder.end();
    expect((await owner.get(LIST)).status).toBe(200);
  });

  test('is disconnected if it does not read', async () => {
    const socket = await requestList(owner);
    const started = performance.now();
    await sleep(9000);
    expect(socket.destroyed).toBe(false);
    await sleep(3500);
    expect(await isWhole(socket)).toBe(false);
    expect(performance.now() - started).toBeLessThan(20_000);
  });

  test('is disconnected if it reads only a little now and then', async () => {
    const socket = await requestList(owner);
    const trickle = setInterval(() => socket.read(1000), 300);
    const { admission } = theApp().get(RequestGate);
    await until(() => admission.count === 0);
    clearInterval(trickle);
  });

  test('gets everything if it reads slowly', async () => {
    const socket = await requestList(owner);
    const slow = setInterval(() => (socket.isPaused() ? socket.resume() : socket.pause()), 50);
    const whole = isWhole(socket);
    expect(await whole).toBe(true);
    clearInterval(slow);
  });
});

describe(`at most ${MAX_COLLECTIONS} collections per user`, () => {
  const tooMany = failure(400, 'too many collections');

  test('concurrent requests to two replicas, with and without a key, never create more', async () => {
    const owner = await make.user();
    await collections(owner, MAX_COLLECTIONS - 10);
    const second = await (await openApp()).getUrl();
    const creates = Array.from({ length: 40 }, async (_, i) => {
      const headers = { ...owner.headers, ...(i % 4 === 3 && { 'idempotency-key': `k${i}` }) };
      const response = await fetch(`${i % 2 ? second : baseUrl()}/collections`, { method: 'POST', headers });
      return response.status;
    });
    const statuses = await Promise.all(creates);
    expect(statuses.filter((status) => status === 200)).toHaveLength(10);
    expect(statuses.filter((status) => status === 400)).toHaveLength(30);
    expect(await owner.post('/collections')).toEqual(tooMany);
  });

  test('including imported ones, but not those of other users', async () => {
    const [owner, other] = [await make.user(), await make.user()];
    await collections(owner, MAX_COLLECTIONS + 50);
    await sql('INSERT INTO collection_admins SELECT id, $1 FROM collections WHERE user_id = $2', [
      other.id,
      owner.id,
    ]);
    expect(await owner.post('/collections')).toEqual(tooMany);
    expect((await other.post('/collections')).status).toBe(200);
  });

  test('deleting one makes space for another', async () => {
    const owner = await make.user();
    await collections(owner, MAX_COLLECTIONS);
    expect(await owner.post('/collections')).toEqual(tooMany);
    const [id] = await ids('SELECT id FROM collections WHERE user_id = $1 LIMIT 1', [owner.id]);
    expect((await owner.post(`/collections/${id}/delete`)).status).toBe(200);
    expect((await owner.post('/collections')).status).toBe(200);
    expect(await owner.post('/collections')).toEqual(tooMany);
  });

  test('a missing game is reported first below the limit', async () => {
    const owner = await make.user();
    expect(await owner.post('/collections', { game_id: 999_999 })).toEqual(failure(404, 'invalid game'));
  });
});
