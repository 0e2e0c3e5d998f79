import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { Pool } from 'pg';
import { PasswordQueue } from '../../src/auth/sign-in/password-queue';
import { QueryRunnerAlreadyReleasedError, QueryRunnerProviderAlreadyReleasedError } from 'typeorm';
import { addCommands } from '../../src/commands/program';
import { OperatorError } from '../../src/platform/errors/operator-error';
import { Database } from '../../src/platform/database/database';
import { migrate } from '../../src/platform/database/migrate';
import { classifyFault } from '../../src/platform/database/sqlstates';
import { apiErrorFor } from '../../src/platform/output/response';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import { connectTo } from '../../src/operator/import/import-records';
import { getPool } from '../support/pool';
import { Browser, PASSWORD, withPassword } from '../support/browser';
import { administer, dropDatabase, withDatabase } from '../support/database';
import { ndjson, OPERATOR_TOKEN, sendImport } from '../support/importing';
import { game, user } from '../support/records';
import { withoutPooler } from '../support/run-if';
import { databaseUrl, openApp, theApp, useStore } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { sleep, until } from '../support/time';

useStore({ OPERATOR_TOKEN, DATABASE_POOL_SIZE: '6', TRUSTED_PROXIES: '127.0.0.1' });

// Output of commands and TypeORM.
beforeAll(() => void jest.spyOn(console, 'log').mockImplementation());
afterAll(() => jest.restoreAllMocks());

const UNAVAILABLE = { status: 503, body: { errors: ['service unavailable'] } };

const TERMINATE_ALL = `
  SELECT pg_terminate_backend(pid) FROM pg_stat_activity
  WHERE datname = current_database() AND application_name IN ('gamewharf', 'gamewharf import')`;

const WAITING_FOR_ATTEMPTS = `
  SELECT pid FROM pg_stat_activity
  WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%attempts%'`;

/**
 * Terminates all connections of the service repeatedly until 25 were lost. The pauses grow, so that work of any
 * duration succeeds in one of them.
 */
async function whileConnectionsAreLost(
  pause: number,
  work: (done: () => boolean) => Promise<unknown>,
): Promise<void> {
  let lost = 0;
  let over = false;
  const terminate = async () => {
    for (let most = pause; !over; most *= 1.03) {
      lost += (await sql(TERMINATE_ALL)).length;
      await sleep(Math.random() * most);
    }
  };
  const terminating = terminate();
  try {
    await work(() => lost >= 25);
  } finally {
    over = true;
    await terminating;
  }
  // Requests succeed again, and nothing has leaked.
  await until(async () => (await send('GET', '/health/ready')).status === 200);
  await until(() => pool().totalCount === pool().idleCount && pool().waitingCount === 0);
}

const pool = () => getPool(theApp());

/** Loops that write until enough connections were lost; returns the responses by status. */
async function writeMeanwhile(loops: number, write: (loop: number) => Promise<number>, pause = 40) {
  const statuses: Record<number, number> = {};
  await whileConnectionsAreLost(pause, (done) =>
    Promise.all(
      Array.from({ length: loops }, async (_, loop) => {
        while (!done() || !statuses[200]) {
          const status = await write(loop);
          statuses[status] = (statuses[status] ?? 0) + 1;
        }
      }),
    ),
  );
  return statuses;
}

const onlyResponsesOr503 = { 200: expect.any(Number) as number, 503: expect.any(Number) as number };

/** The effect on the process of a connection that is lost at the moment of its checkout. */
const loseAtCheckout = (from: Pool) =>
  new Promise<unknown>((resolve, reject) =>
    from.connect((rejected, client, release) => {
      if (rejected) return reject(rejected);
      try {
        client!.emit('error', new Error('terminated'));
        resolve('nothing');
      } catch (error) {
        resolve(error);
      } finally {
        release(true);
      }
    }),
  );

describe('a connection lost before an error listener is attached', () => {
  test('has no effect if it belongs to the pool or an import', async () => {
    expect(await loseAtCheckout(pool())).toBe('nothing');
    const client = await connectTo({ DATABASE_URL: databaseUrl() });
    client.emit('error', new Error('terminated'));
    await client.end();
  });

  test('control: ends the process with a default pool', async () => {
    const plain = new Pool({ connectionString: databaseUrl() });
    expect(await loseAtCheckout(plain)).not.toBe('nothing');
    await plain.end();
  });
});

test("TypeORM's errors for a transaction with a lost connection are recognized", () => {
  for (const error of [new QueryRunnerAlreadyReleasedError(), new QueryRunnerProviderAlreadyReleasedError()])
    expect(apiErrorFor(error)).toMatchObject({ status: 503, errors: ['service unavailable'] });
});

withoutPooler.test(
  'a right password does not count as a failed attempt if its connection is lost',
  async () => {
    const { username } = await withPassword(await make.user());
    const holder = await connectTo({ DATABASE_URL: databaseUrl() });
    const passwords = theApp().get(PasswordQueue);
    const matches = passwords.matches.bind(passwords);
    jest.spyOn(passwords, 'matches').mockImplementationOnce(async (...given) => {
      const result = await matches(...given);
      await holder.query('BEGIN; LOCK TABLE attempts IN ACCESS EXCLUSIVE MODE');
      return result;
    });
    const browser = new Browser({ 'x-forwarded-for': '10.200.0.1' });
    const response = browser.signIn(username);
    await until(async () => (await sql(WAITING_FOR_ATTEMPTS)).length === 1);
    await sql(TERMINATE_ALL);
    await holder.end();
    expect((await response).status).toBe(303);
    expect(await sql('SELECT FROM attempts WHERE failures > 0')).toEqual([]);
  },
);

describe('while connections are terminated continuously', () => {
  withoutPooler.test('transactions: apply both statements or none', async () => {
    const pairs = await Promise.all(
      Array.from({ length: 4 }, async () => [(await make.user()).id, (await make.user()).id]),
    );
    let serial = 0;
    const statuses = await writeMeanwhile(4, async (loop) => {
      const name = `name ${++serial}`;
      return theApp()
        .get(Database)
        .transaction(async (db) => {
          for (const id of pairs[loop]!)
            await db.query('UPDATE users SET display_name = $2 WHERE id = $1', [id, name]);
        })
        .then(
          () => 200,
          (error: unknown) => apiErrorFor(error).statusCode,
        );
    });
    expect(statuses).toEqual(onlyResponsesOr503);
    for (const pair of pairs)
      expect(await sql('SELECT DISTINCT display_name FROM users WHERE id = ANY ($1)', [pair])).toHaveLength(
        1,
      );
  });

  describe.each([
    ['plain writes to collections', () => undefined],
    ['writes with an Idempotency-Key', (serial: number) => `key ${serial}`],
  ])('%s:', (_, chooseKey) => {
    withoutPooler.test('keep what was acknowledged, with correct counts', async () => {
      const owner = await make.user();
      const games = await Promise.all(Array.from({ length: 300 }, () => make.game({ owner })));
      const collections = await Promise.all([1, 2, 3].map(() => make.collection({ owner })));
      const acknowledged: { collection_id: number; game_id: number }[] = [];
      let serial = 0;
      const statuses = await writeMeanwhile(12, async () => {
        const n = serial++;
        const collection_id = collections[n % 3]!.id;
        const game_id = games[n % games.length]!.id;
        const key = chooseKey(n);
        const { status, body } = await send('POST', `/collections/${collection_id}/add-game`, {
          headers: {
            ...owner.headers,
            'content-type': 'application/json',
            ...(key && { 'idempotency-key': key }),
          },
          body: JSON.stringify({ game_id }),
        });
        if (status === 200) acknowledged.push({ collection_id, game_id });
        else expect({ status, body }).toEqual(UNAVAILABLE);
        return status;
      });
      expect(statuses).toEqual(onlyResponsesOr503);
      for (const { id } of collections) {
        const entries = await sql<{ game_id: number }>(
          'SELECT game_id FROM collection_games WHERE collection_id = $1',
          [id],
        );
        const there = new Set(entries.map(({ game_id }) => game_id));
        const missing = acknowledged.filter((one) => one.collection_id === id && !there.has(one.game_id));
        expect(missing).toEqual([]);
        expect(await sql('SELECT games_count FROM collections WHERE id = $1', [id])).toEqual([
          { games_count: entries.length },
        ]);
      }
    });
  });

  withoutPooler.test('OAuth: a device that got a code can be approved', async () => {
    const { id } = await make.user();
    await sql(
      `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes, implicit_allowed)
       VALUES ('device', $1, 'Device', '{https://game.example/}', '{profile}', false)`,
      [id],
    );
    const form = (path: string, fields: Record<string, string>) =>
      send('POST', path, {
        headers: { 'content-type': 'application/x-www-form-urlencoded' },
        body: new URLSearchParams({ client_id: 'device', ...fields }).toString(),
      });
    const codes: string[] = [];
    const statuses = await writeMeanwhile(20, async () => {
      const { status, body } = await form('/oauth/device', { scope: 'profile:me' });
      if (status !== 200) return status;
      const { user_code, device_code } = body as { user_code: string; device_code: string };
      codes.push(user_code);
      const poll = await form('/oauth/device/poll', { device_code });
      // The user has not allowed the device yet.
      return poll.status === 400 ? 200 : poll.status;
    });
    expect(statuses).toEqual(onlyResponsesOr503);
    const kept = await sql('SELECT FROM oauth_device_requests WHERE user_code = ANY ($1)', [codes]);
    expect(kept).toHaveLength(codes.length);
  });

  withoutPooler.test('sign-in: every signed-in user has a session', async () => {
    const visitor = new Browser();
    await visitor.get('/login');
    const fields = visitor.formFields('/login');
    const signedIn: number[] = [];
    let network = 0;
    const statuses = await writeMeanwhile(4, async () => {
      // An attempt whose end is lost counts for a while, so every user tries once, from another network.
      const { id, username } = await withPassword(await make.user());
      const browser = new Browser({ 'x-forwarded-for': `10.${++network}.0.1` });
      for (const [name, value] of visitor.cookies) browser.cookies.set(name, value);
      const { status } = await browser.post('/login', { ...fields, username, password: PASSWORD });
      if (status !== 303) return status;
      signedIn.push(id);
      return 200;
    });
    expect(statuses).toEqual(onlyResponsesOr503);
    const sessions = await sql('SELECT DISTINCT user_id FROM sessions WHERE user_id = ANY ($1)', [signedIn]);
    expect(sessions).toHaveLength(signedIn.length);
  });

  withoutPooler.test('imports over HTTP: apply all records or none', async () => {
    let serial = 50_000;
    const acknowledged: number[] = [];
    const statuses = await writeMeanwhile(
      2,
      async () => {
        const id = ++serial;
        const lines = [user(id), ...[0, 1, 2].map((i) => game(10 * id + i, { user_id: id }))];
        const { status, body } = await sendImport(lines);
        if (status === 200) acknowledged.push(id);
        else expect({ status, body }).toEqual(UNAVAILABLE);
        return status;
      },
      400,
    );
    expect(statuses).toEqual(onlyResponsesOr503);
    const stored = await sql<{ id: number; games: number }>(
      `SELECT u.id, count(g.id) AS games FROM users u LEFT JOIN games g ON g.user_id = u.id
       WHERE u.id > 50000 GROUP BY u.id`,
    );
    expect(stored.filter(({ games }) => games !== 3)).toEqual([]);
    const ids = new Set(stored.map(({ id }) => id));
    expect(acknowledged.filter((id) => !ids.has(id))).toEqual([]);
  });

  withoutPooler.test('operator commands: succeed or fail completely', async () => {
    const folder = await mkdtemp(join(tmpdir(), 'gamewharf-lost-'));
    const file = join(folder, 'records.ndjson');
    const owner = await make.user();
    let serial = 80_000;
    try {
      const statuses = await writeMeanwhile(
        1,
        async () => {
          const id = ++serial;
          await make.collection({ owner, description: `<b>${id}</b><script>x</script>` });
          await writeFile(file, ndjson([user(id), game(id, { user_id: id })]));
          const failures = await Promise.all([command('import', file), command('collections', 'resanitize')]);
          for (const error of failures) if (error) expect(classifyFault(error)).toBe('unavailable');
          return failures.some(Boolean) ? 503 : 200;
        },
        400,
      );
      expect(statuses).toEqual(onlyResponsesOr503);
    } finally {
      await rm(folder, { recursive: true });
    }
    expect(
      await sql(
        'SELECT FROM users u WHERE id > 80000 AND NOT EXISTS (SELECT FROM games WHERE user_id = u.id)',
      ),
    ).toEqual([]);
    expect(await command('collections', 'resanitize')).toBeUndefined();
    expect(await sql(`SELECT FROM collections WHERE description LIKE '%script%'`)).toEqual([]);
  });

  withoutPooler.test('starts: a replica waits for its connections', async () => {
    let starts = 0;
    await whileConnectionsAreLost(200, async (done) => {
      for (; !done() || starts < 3; starts++) await gracefulStop(await openApp());
    });
    expect(starts).toBeGreaterThanOrEqual(3);
  });

  withoutPooler.test('migrations: an empty database eventually gets the whole schema', async () => {
    const name = `gamewharf_migrated_${process.pid}`;
    const url = withDatabase(databaseUrl(), name);
    await administer((client) => client.query(`CREATE DATABASE ${name}`));
    let over = false;
    const terminate = async () => {
      for (let most = 50; !over; most *= 1.2) {
        await sleep(Math.random() * most);
        await administer((client) =>
          client.query(
            // Except the server's own, such as autovacuum's.
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = $1 AND backend_type = 'client backend'`,
            [name],
          ),
        );
      }
    };
    const terminating = terminate();
    let failures = 0;
    try {
      for (;;) {
        const error: unknown = await migrate({ DATABASE_URL: url }, () => undefined).then(
          () => undefined,
          (failure: unknown) => failure,
        );
        if (!error) break;
        failures++;
        expect(error).toBeInstanceOf(OperatorError);
      }
      over = true;
      await terminating;
      expect(failures).toBeGreaterThan(0);
      expect(await migrate({ DATABASE_URL: url }, () => undefined)).toEqual([]);
      const client = await connectTo({ DATABASE_URL: url });
      const invalid = await client.query('SELECT indexrelid::regclass FROM pg_index WHERE NOT indisvalid');
      await client.end();
      expect(invalid.rows).toEqual([]);
    } finally {
      over = true;
      await terminating;
      await dropDatabase(name);
    }
  });
});

/** The error of a failed command. */
async function command(...words: string[]): Promise<unknown> {
  const program = new Command().exitOverride();
  addCommands(program, (work) => work(theApp(), new AbortController().signal), words);
  try {
    await program.parseAsync(words, { from: 'user' });
    return undefined;
  } catch (error) {
    return error;
  }
}
