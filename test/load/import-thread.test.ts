import { once } from 'node:events';
import { type ClientRequest, type IncomingMessage, request } from 'node:http';
import { setTimeout } from 'node:timers/promises';
import { Client } from 'pg';
import { RequestGate } from '../../src/platform/server/request-gate';
import { Quota } from '../../src/platform/limits/client-limits';
import type { ConcurrencyLimit } from '../../src/platform/limits/concurrency-limit';
import { demoRecords } from '../../src/dev/demo/demo';
import { ImportLimits } from '../../src/operator/import/import-limits';
import { ImportThread } from '../../src/operator/import/import-thread';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { allRows, importDirectly, ndjson, OPERATOR_TOKEN, sendSmall } from '../support/importing';
import { game, user } from '../support/records';
import { anonymous } from '../support/actor';
import { baseUrl, databaseUrl, logged, openApp, PEPPER, theApp, useStore } from '../support/app';
import { type HttpResponse, failure, ok, send } from '../support/http';
import { sql } from '../support/sql';
import { sleep, until } from '../support/time';

useStore({ OPERATOR_TOKEN });

/** An import larger than 1 MiB runs on a thread: a blank line makes it so. */
async function sendLong(lines: object[]): Promise<HttpResponse> {
  const { status, body } = await send('POST', '/operator/import', {
    headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/x-ndjson' },
    body: `${ndjson(lines)}\n${' '.repeat(1024 * 1024)}`,
  });
  return { status, body };
}

test('imports on a thread like on the main thread', async () => {
  const lines = [...demoRecords({ users: 50, games: 100, purchases: 300, password: 'a password' })];
  expect((await sendLong(lines)).status).toBe(200);
  const stored = await allRows();
  const again = await importDirectly(lines);
  expect(Object.values(again).every((counts) => counts.new === 0 && counts.changed === 0)).toBe(true);
  expect(await allRows()).toEqual(stored);
});

test('reports problems and changes nothing', async () => {
  const before = await allRows();
  expect(await sendLong([user(9001), game(9001, { user_id: 9002 }), { type: 'user' }])).toEqual(
    failure(
      400,
      'line 2: game 9001: user 9002 does not exist',
      'line 3: user: id is required',
      'line 3: user: username is required',
    ),
  );
  expect(await allRows()).toEqual(before);
});

test('returns 503 for a lost connection', async () => {
  const importing = () =>
    sql<{ pid: number }>(`SELECT pid FROM pg_stat_activity WHERE application_name = 'gamewharf import'
                          AND datname = current_database() AND wait_event_type = 'Lock'`);
  const lock = sql('LOCK TABLE users IN ACCESS EXCLUSIVE MODE; SELECT pg_sleep(20)').catch(() => undefined);
  const response = sendLong([user(9001)]);
  await until(async () => (await importing()).length > 0);
  await sql('SELECT pg_terminate_backend($1)', [(await importing())[0]!.pid]);
  expect(await response).toEqual(failure(503, 'service unavailable'));
  await sql(
    `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE query LIKE 'LOCK TABLE users%' AND state = 'active'`,
  );
  await lock;
  expect(await sendLong([user(9001)])).toMatchObject(
    ok({ summary: ['users 1 new, 0 changed, 0 unchanged'] }),
  );
});

test('fails its import when a thread crashes, and starts another', async () => {
  const thread = new ImportThread(undefined as never);
  const source = async function* () {
    yield Buffer.from(ndjson([user(9002)]));
  };
  for (const queue of ['small', 'large'] as const)
    await expect(thread.run({ queue }, source(), new AbortController().signal)).rejects.toThrow(
      'The import crashed.',
    );
  expect(logged.join('')).toContain('An import crashed');
});

test('rolls back an interrupted import', async () => {
  const interruption = new AbortController();
  const source = (async function* () {
    yield Buffer.from(`${ndjson([user(9003)])}\n`);
    await sleep(200);
    interruption.abort();
    await setTimeout(60_000, undefined, { ref: false });
  })();
  const thread = new ImportThread({ DATABASE_URL: databaseUrl(), pepper: Buffer.from(PEPPER) });
  await expect(thread.run({ queue: 'large' }, source, interruption.signal)).rejects.toThrow(/abort/i);
  await thread.end();
  expect(await sql('SELECT FROM users WHERE id = 9003')).toEqual([]);
});

describe('large imports while one is running', () => {
  const MiB = 1024 * 1024;
  const sending: ClientRequest[] = [];
  let holder: Client;

  beforeAll(async () => {
    await sendSmall([
      user(9100),
      game(9100, { user_id: 9100, published_at: '2013-03-03T23:02:14Z' }),
      { type: 'build', id: 9100, game_id: 9100, channel_name: 'windows', user_version: '1.2.0' },
    ]);
  });
  beforeEach(async () => {
    holder = new Client({ connectionString: databaseUrl() });
    await holder.connect();
    await holder.query('BEGIN; SELECT pg_advisory_xact_lock(7305808)');
  });
  afterEach(async () => {
    await holder.end();
    for (const one of sending.splice(0)) one.destroy();
    await until(() => importLimits().taken === 0);
  });

  const importLimits = (app = theApp()) => {
    const { queues, bytes } = app.get(ImportLimits) as unknown as {
      queues: { large: ConcurrencyLimit };
      bytes: Quota;
    };
    return { taken: queues.large.accepted, held: bytes.used };
  };
  const threads = async () => {
    const rows = await sql(
      `SELECT FROM pg_stat_activity WHERE application_name = 'gamewharf import' AND datname = current_database() AND state <> 'idle'`,
    );
    return rows.length;
  };

  /** Starts an import of this many bytes: a user, then spaces. Without a length it is chunked. */
  function begin(
    id: number,
    { bytes = 1.5 * MiB, from = '127.0.0.1', chunked = false, url = baseUrl() } = {},
  ) {
    const one = request(`${url}/operator/import`, {
      method: 'POST',
      localAddress: from,
      agent: false,
      headers: {
        authorization: `Bearer ${OPERATOR_TOKEN}`,
        'content-type': 'application/x-ndjson',
        ...(chunked ? {} : { 'content-length': bytes }),
      },
    });
    const response = once(one, 'response').then(async ([res]: IncomingMessage[]) => {
      let text = '';
      for await (const chunk of res!.setEncoding('utf8')) text += chunk;
      return {
        status: res!.statusCode,
        body: JSON.parse(text) as object,
        retry: res!.headers['retry-after'],
      };
    });
    response.catch(() => undefined);
    one.on('error', () => undefined);
    one.write(`${ndjson([user(id)])}\n`.padEnd(bytes, `${' '.repeat(1023)}\n`));
    sending.push(one);
    return { one, end: () => one.end(), response };
  }
  const begun = (id: number, options?: Parameters<typeof begin>[1]) => {
    const sent = begin(id, options);
    sent.end();
    return sent;
  };
  const added = expect.objectContaining({ status: 200 });

  test('wait without a thread, in order; excess ones fail with 503, and other requests are served', async () => {
    const waiting = [0, 1, 2, 3, 4, 5].map((i) => begun(9110 + i, { chunked: i % 2 === 1 }));
    await until(() => importLimits().taken === 6);
    const newest: ReturnType<typeof begun>[] = [];
    for (const id of [9116, 9117]) {
      newest.push(begun(id));
      await until(() => importLimits().taken === 7 + newest.length - 1);
    }
    const rejected = { ...failure(503, 'service unavailable'), retry: '10' };
    expect(await begun(9118, { chunked: true }).response).toEqual(rejected);
    // Another client's imports replace the newest ones of the busiest client.
    const others = [9120, 9121].map((id) => begun(id, { from: '127.0.0.2' }));
    expect(await Promise.all(newest.map(({ response }) => response))).toEqual([rejected, rejected]);
    expect(importLimits().taken).toBe(8);
    await until(async () => (await threads()) > 0);
    await sleep(200);
    expect(await threads()).toBe(1);

    expect((await sendSmall([user(9101)])).status).toBe(200);
    expect((await anonymous.get('/wharf/latest', { game_id: 9100, channel_name: 'windows' })).status).toBe(
      200,
    );
    const sale = await send('POST', '/operator/purchases', {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({ game_id: 9100, email: 'buyer@example.com', currency: 'USD', amount: 500 }),
    });
    expect(sale.status).toBe(200);

    await holder.query('ROLLBACK');
    const responses = await Promise.all([...waiting, ...others].map(({ response }) => response));
    expect(responses).toEqual(responses.map(() => added));
    await until(() => importLimits().taken === 0 && importLimits().held === 0);
    expect((await sql('SELECT FROM users WHERE id BETWEEN 9110 AND 9121')).length).toBe(8);
  });

  test('do not read the body while waiting', async () => {
    begun(9130);
    await until(() => importLimits().taken === 1);
    const long = begin(9131, { bytes: 64 * MiB });
    const piped = begin(9132, { bytes: 64 * MiB, chunked: true });
    await until(() => importLimits().taken === 3);
    await sleep(300);
    // The kernels of both ends buffer a few MiB of a connection.
    expect(long.one.socket!.writableLength).toBeGreaterThan(40 * MiB);
    expect(piped.one.socket!.writableLength).toBeGreaterThan(40 * MiB);
    expect(importLimits().held).toBeLessThan(1.5 * MiB);
  });

  test('release their place on disconnect, at the latest when it is their turn', async () => {
    begun(9140);
    await until(() => importLimits().taken === 1);
    const gone = begun(9141, { bytes: MiB + 1024, chunked: true });
    const unread = begun(9142, { bytes: 64 * MiB });
    const half = begin(9144, { bytes: MiB + 1024, chunked: true });
    const last = begun(9143);
    await until(() => importLimits().taken === 5);
    // Everything that these two sent was read, so their close is noticed. The close of the other is behind its body.
    gone.one.socket!.resetAndDestroy();
    half.one.destroy();
    unread.one.destroy();
    await until(() => importLimits().taken === 3);
    await holder.query('ROLLBACK');
    expect(await last.response).toEqual(added);
    expect(await sql('SELECT id FROM users WHERE id BETWEEN 9140 AND 9144 ORDER BY id')).toEqual([
      { id: 9140 },
      { id: 9143 },
    ]);
  });

  test('do not delay a shutdown', async () => {
    const app = await openApp({ OPERATOR_TOKEN });
    const url = (await app.getUrl()).replace('[::1]', '127.0.0.1');
    const waiting = [0, 1, 2].map((i) => begun(9150 + i, { url }));
    await until(() => importLimits(app).taken === 3);
    const began = performance.now();
    await gracefulStop(app);
    expect(performance.now() - began).toBeLessThan(8000);
    const ends = await Promise.allSettled(waiting.map(({ response }) => response));
    expect(ends.every((end) => end.status === 'rejected' || end.value.status === 503)).toBe(true);
    await until(() => importLimits(app).taken === 0);
    expect(app.get(RequestGate).admission.count).toBe(0);
    expect(await sql('SELECT FROM users WHERE id BETWEEN 9150 AND 9152')).toEqual([]);
  });

  test('bound the bytes of small bodies in total and per IP address', async () => {
    const full = new Quota(2 * MiB);
    Object.assign(theApp().get(ImportLimits), { bytes: full });
    const slow = [0, 1].map((i) => begin(9160 + i, { bytes: 700 * 1024, chunked: true }));
    await until(() => full.used === 1400 * 1024);
    expect(await begin(9162, { bytes: 700 * 1024, chunked: true }).response).toMatchObject({
      status: 503,
      retry: '1',
    });
    const other = begun(9163, { bytes: 400 * 1024, from: '127.0.0.2' });
    expect(await other.response).toEqual(added);
    for (const one of slow) one.end();
    expect(await Promise.all(slow.map(({ response }) => response))).toEqual([added, added]);
    expect(full.used).toBe(0);
  });
});
