import { once } from 'node:events';
import { connect } from 'node:net';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Pool } from 'pg';
import { DataSource } from 'typeorm';
import type { PostgresDriver } from 'typeorm/driver/postgres/PostgresDriver';
import { dataSourceOptions } from '../../src/platform/database/data-source';
import { Database } from '../../src/platform/database/database';
import { apiErrorFor } from '../../src/platform/output/response';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { getPool } from '../support/pool';
import { FaultyProxy } from '../support/proxy';
import { withoutPooler } from '../support/run-if';
import { type Actor } from '../support/actor';
import { databaseUrl, logged, openApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { sleep, until } from '../support/time';

/** Far above the documented limit, and far below a request without a deadline, because machines are busy. */
const PATIENCE = 10_000;

useStore();

const UNAVAILABLE = { status: 503, body: '{"errors":["service unavailable"]}', retry_after: '1' };

let proxy: FaultyProxy;
let app: NestExpressApplication;
let url: string;
let user: Actor;

beforeEach(async () => {
  user = await make.user();
  proxy = await FaultyProxy.before(databaseUrl());
  app = await openApp({
    DATABASE_URL: proxy.through(databaseUrl()),
    DATABASE_POOL_SIZE: '4',
    MAX_IN_FLIGHT: '40',
  });
  url = await app.getUrl();
});
afterEach(async () => {
  proxy.thaw();
  await gracefulStop(app);
  await proxy.vanish();
});

async function get(path: string) {
  const started = performance.now();
  const response = await fetch(url + path, { headers: { authorization: `Bearer ${user.key}` } });
  const body = await response.text();
  return {
    response: { status: response.status, body, retry_after: response.headers.get('retry-after') },
    ms: performance.now() - started,
  };
}
const many = <T>(n: number, work: () => Promise<T>) => Promise.all(Array.from({ length: n }, work));
const median = (responses: { ms: number }[]) =>
  responses.map(({ ms }) => ms).toSorted((a, b) => a - b)[responses.length >> 1]!;
const pool = () => getPool(app);

describe('a database that hangs', () => {
  test('gets a response to every request, with the process alive and nothing leaked', async () => {
    await many(8, () => get('/profile'));
    proxy.freeze();
    const responses = many(30, () => get('/profile'));
    await sleep(100);
    const alive = await get('/health/live');
    expect(alive.response.status).toBe(200);
    for (const { response, ms } of await responses) {
      expect(response).toEqual(UNAVAILABLE);
      expect(ms).toBeLessThan(PATIENCE);
    }
    // Readiness stays 200, because a Service without replicas couldn't even return 503.
    expect((await get('/health/ready')).response.status).toBe(200);

    proxy.thaw();
    await until(async () => (await get('/profile')).response.status === 200);
    // The service polls for changes continuously, possibly right now.
    await until(() => pool().waitingCount === 0 && pool().totalCount === pool().idleCount);
    expect(pool().totalCount).toBeLessThanOrEqual(4);
  });

  test('has the connection of a running transaction closed in half the time that TypeORM and pg need', async () => {
    await app.get(Database).transaction((db) => db.query('SELECT 1'));
    const started = performance.now();
    const stuck = app.get(Database).transaction(async (db) => {
      await db.query(`UPDATE users SET display_name = 'half' WHERE id = $1`, [user.id]);
      proxy.freeze();
      await db.query('SELECT 2');
    });
    await expect(stuck).rejects.toThrow('Query read timeout');
    const ours = performance.now() - started;
    expect(pool().totalCount).toBe(0);
    proxy.thaw();
    await until(async () => (await get('/profile')).response.status === 200);
    expect(await sql('SELECT display_name FROM users WHERE id = $1', [user.id])).toEqual([
      { display_name: null },
    ]);

    // The control waits for a second timeout, of its ROLLBACK, and returns the stuck connection to the pool.
    const options = dataSourceOptions({ DATABASE_URL: proxy.through(databaseUrl()), DATABASE_POOL_SIZE: 2 });
    const source = new DataSource({ ...options, extra: { ...options.extra, pipeline: false } });
    await source.initialize();
    const began = performance.now();
    const control = source.transaction(async (db) => {
      proxy.freeze();
      await db.query('SELECT 2');
    });
    await expect(control).rejects.toThrow('Query read timeout');
    expect(performance.now() - began).toBeGreaterThan(ours * 1.25);
    expect(((source.driver as PostgresDriver).master as Pool).totalCount).toBeGreaterThan(0);
    proxy.thaw();
    await source.destroy();
  });

  test('leads to a 503 at once beyond MAX_IN_FLIGHT', async () => {
    await get('/profile');
    proxy.freeze();
    const waiting = many(40, () => get('/profile'));
    await sleep(200);
    const rejected = await many(20, () => get('/profile'));
    for (const { response } of rejected) expect(response).toEqual(UNAVAILABLE);
    expect((await get('/health/live')).response.status).toBe(200);
    expect(median(rejected)).toBeLessThan(median(await waiting) / 2);
    proxy.thaw();
    await until(async () => (await get('/profile')).response.status === 200);
  });
});

test('control: without MAX_IN_FLIGHT one more request waits as long as all others', async () => {
  const unlimited = await openApp({
    DATABASE_URL: proxy.through(databaseUrl()),
    DATABASE_POOL_SIZE: '4',
    MAX_IN_FLIGHT: '100000',
  });
  url = await unlimited.getUrl();
  try {
    await get('/profile');
    proxy.freeze();
    const waiting = many(40, () => get('/profile'));
    await sleep(200);
    const late = await many(20, () => get('/profile'));
    expect(median(late)).toBeGreaterThan(median(await waiting) / 2);
  } finally {
    proxy.thaw();
    await gracefulStop(unlimited);
  }
});

describe('one connection that sends requests without reading', () => {
  const pipelined = async (count: number) => {
    const { hostname, port } = new URL(url);
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    socket.write(
      `GET /profile HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer ${user.key}\r\n\r\n`.repeat(count),
    );
    await sleep(200);
    return socket;
  };

  test('leaves capacity to others', async () => {
    await get('/profile');
    proxy.freeze();
    const socket = await pipelined(200);
    const { ms } = await get('/profile');
    // The duration shows that the request waited for the database.
    expect(ms).toBeGreaterThan(500);
    socket.destroy();
  });

  test('control: the same requests on several connections use up the capacity', async () => {
    await get('/profile');
    proxy.freeze();
    const sockets = await Promise.all(Array.from({ length: 4 }, () => pipelined(10)));
    let received = 0;
    for (const socket of sockets) socket.on('data', () => received++);
    // Immediately: some of those that wait for the database have no response yet.
    expect((await get('/profile')).response).toEqual(UNAVAILABLE);
    expect(received).toBeLessThan(sockets.length);
    for (const socket of sockets) socket.destroy();
  });

  test('gets responses, then a 503 for the eleventh, and no more', async () => {
    const socket = await pipelined(12);
    let text = '';
    socket.on('data', (data) => (text += data.toString()));
    await once(socket, 'end');
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual([
      ...Array<string>(10).fill('HTTP/1.1 200'),
      'HTTP/1.1 503',
    ]);
    socket.destroy();
  });

  test('is closed if it continues', async () => {
    await get('/profile');
    proxy.freeze();
    const socket = await pipelined(200);
    await until(() => socket.destroyed);
  });
});

test('returns 503 while the database is down, and 200 afterwards', async () => {
  expect((await get('/profile')).response.status).toBe(200);
  await proxy.vanish();
  for (const { response } of await many(10, () => get('/profile'))) expect(response).toEqual(UNAVAILABLE);
  expect((await get('/health/live')).response.status).toBe(200);
  await proxy.open();
  await until(async () => (await get('/profile')).response.status === 200);
});

test('leaves no partial write after a connection is lost in a transaction', async () => {
  const broken = app.get(Database).transaction(async (db) => {
    await db.query(`UPDATE users SET display_name = 'half' WHERE id = $1`, [user.id]);
    proxy.cut();
    await sleep(50);
    await db.query('SELECT 2');
  });
  await expect(broken).rejects.toThrow();
  expect(await sql('SELECT display_name FROM users WHERE id = $1', [user.id])).toEqual([
    { display_name: null },
  ]);
  await until(async () => (await get('/profile')).response.status === 200);
});

test('control: keeps what was written outside a transaction', async () => {
  await app.get(DataSource).query(`UPDATE users SET display_name = 'half' WHERE id = $1`, [user.id]);
  proxy.cut();
  expect(await sql('SELECT display_name FROM users WHERE id = $1', [user.id])).toEqual([
    { display_name: 'half' },
  ]);
});

test('rejects waiting requests when all connections of the pool are in use', async () => {
  await get('/profile');
  logged.splice(0);
  const held = await many(4, () => pool().connect());
  // Including requests behind others in the queue.
  const waiting: ReturnType<typeof get>[] = [];
  for (let i = 0; i < 40; i++) {
    waiting.push(get('/profile'));
    await sleep(10);
  }
  for (const { response, ms } of await Promise.all(waiting)) {
    expect(response).toEqual(UNAVAILABLE);
    expect(ms).toBeLessThan(PATIENCE);
  }
  // A stack for each would take more time than the response.
  expect(logged.filter((line) => line.includes('"error"'))).toEqual([]);
  // The pool gives up on the last of them later.
  await sleep(800);
  for (const connection of held) connection.release();
  expect((await get('/profile')).response.status).toBe(200);
});

withoutPooler.test(
  "keeps serving with the pool's connections, and stays ready, when the server accepts no new ones",
  async () => {
    const [{ name }] = (await sql('SELECT current_database() AS name')) as [{ name: string }];
    const limit = (connections: number) => sql(`ALTER DATABASE ${name} CONNECTION LIMIT ${connections}`);
    await get('/profile');
    await limit(0);
    try {
      const responses = (await many(40, () => get('/profile'))).map(({ response }) => response);
      const rejected = responses.filter(({ status }) => status !== 200);
      // The pool tried to open another connection for the rejected requests.
      expect(rejected).toEqual(rejected.map(() => UNAVAILABLE));
      expect(rejected.length).toBeLessThan(20);
      expect((await get('/health/ready')).response.status).toBe(200);
      proxy.cut();
      await until(async () => (await get('/profile')).response.status === 503);
      expect((await get('/profile')).response).toEqual(UNAVAILABLE);
      expect((await get('/health/ready')).response.status).toBe(200);
    } finally {
      await limit(-1);
    }
    await until(async () => (await get('/profile')).response.status === 200);
  },
);

test('control: a default pool lets requests wait indefinitely', async () => {
  const patient = new Pool({ connectionString: proxy.through(databaseUrl()), max: 1 });
  const holder = await patient.connect();
  const waits = patient.query('SELECT 1');
  expect(await Promise.race([waits, sleep(1500).then(() => 'no response')])).toBe('no response');
  holder.release();
  await waits;
  await patient.end();
});

withoutPooler.test('serves reads and rejects writes on a read-only database', async () => {
  const [{ current_database }] = (await sql<{ current_database: string }>('SELECT current_database()')) as [
    { current_database: string },
  ];
  await sql(`ALTER DATABASE ${current_database} SET default_transaction_read_only = on`);
  try {
    proxy.cut();
    await until(async () => (await get('/profile')).response.status === 200);
    const write = app
      .get(Database)
      .transaction((db) => db.query(`UPDATE users SET display_name = 'x' WHERE id = $1`, [user.id]));
    const error: unknown = await write.catch((rejected: unknown) => rejected);
    expect(apiErrorFor(error)).toMatchObject({ status: 503, errors: ['service unavailable'] });
    // Control: the same message without PostgreSQL's code is an unknown error.
    expect(apiErrorFor(new Error((error as Error).message))).toMatchObject({ status: 500 });
  } finally {
    await sql(
      `BEGIN; SET TRANSACTION READ WRITE; ALTER DATABASE ${current_database} RESET default_transaction_read_only; COMMIT`,
    );
  }
});
