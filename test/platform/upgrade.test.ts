import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { dataSourceOptions } from '../../src/platform/database/data-source';
import { hashApiKey } from '../../src/auth/keys/api-key';
import { administer, dropDatabase, withDatabase } from '../support/database';
import { OPERATOR_TOKEN } from '../support/importing';
import { anonymous } from '../support/actor';
import { PEPPER, useStore } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { until } from '../support/time';

// The baseline, which is the schema of the last release, and the statements that its replicas send. They keep sending
// them during and after this version's migrations, until the last replica is replaced.
const LAST = '0.1.0';
const { migrations, statements } = JSON.parse(
  readFileSync(join(__dirname, 'upgrade', `${LAST}.json`), 'utf8'),
) as { migrations: string[]; statements: string[] };

// A replica of 0.1 whose polls of these tables fail uses cached values for at most 0.7 seconds.
const DROPPED = /\b(?:api_key_changes|build_changes)\b/;
const needed = statements.filter((text) => !DROPPED.test(text));

const name = `gamewharf_upgrade_${process.pid}`;
const url = withDatabase(process.env.TEST_SERVER_URL!, name);
const client = new Client({ connectionString: url });
const countParameters = (text: string) =>
  Math.max(0, ...[...text.matchAll(/\$(\d+)/g)].map(([, n]) => Number(n)));

interface Column {
  column: string;
  type: string;
  required: boolean;
}

const COLUMNS = `
  SELECT c.relname || '.' || a.attname AS column, format_type(a.atttypid, a.atttypmod) AS type,
         a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS required
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p')`;
const columns = async () => (await client.query<Column>(COLUMNS)).rows;

async function migrate(these: (name: string) => boolean): Promise<void> {
  const source = new DataSource(dataSourceOptions({ DATABASE_URL: url, DATABASE_POOL_SIZE: 1 }));
  await source.initialize();
  const wanted = source.migrations.filter((one) => these(one.name ?? one.constructor.name));
  source.migrations.splice(0, source.migrations.length, ...wanted);
  await source.runMigrations();
  await source.destroy();
}

let before: Column[];

useStore({ OPERATOR_TOKEN }, async () => {
  await administer((admin) => admin.query(`CREATE DATABASE ${name}`));
  await migrate((one) => migrations.includes(one));
  await client.connect();
  before = (await columns()).filter(({ column }) => !DROPPED.test(column));
  for (const [i, text] of statements.entries()) await client.query(`PREPARE s${i} AS ${text}`);
  await migrate(() => true);
  const drop = async () => {
    await client.end();
    await dropDatabase(name);
  };
  return { url, drop };
});

/** The matching statement, as a replica of the last release sends it: prepared before the migration. */
async function old<Row extends object>(statement: RegExp, ...values: unknown[]): Promise<Row[]> {
  const [i, another] = statements.flatMap((text, i) => (statement.test(text) ? [i] : []));
  if (i === undefined || another !== undefined) throw new Error(`not one statement: ${statement.source}`);
  const literals = values.map((value) => (value === null ? 'NULL' : client.escapeLiteral(String(value))));
  return (await client.query<Row>(`EXECUTE s${i} (${literals.join()})`)).rows;
}

let lastWrite: Promise<unknown> = Promise.resolve();

/**
 * A write to a collection: like this version, the last release locks the collection first. The connection runs one at a
 * time.
 */
function oldWrite(change: RegExp, collection_id: number, user_id: number, ...values: unknown[]) {
  const LOCK = /^SELECT c\.id FROM collections c WHERE c\.id = \$1 AND .+ FOR NO KEY UPDATE$/s;
  const write = lastWrite.then(async () => {
    await client.query('BEGIN');
    await old(LOCK, collection_id, user_id);
    await old(change, collection_id, user_id, ...values);
    await client.query('COMMIT');
  });
  lastWrite = write;
  return write;
}

test(`statements prepared by replicas of ${LAST} keep working`, async () => {
  const failed: string[] = [];
  for (const [i, text] of statements.entries()) {
    if (DROPPED.test(text)) continue;
    const nulls = Array.from({ length: countParameters(text) }, () => 'NULL').join(', ');
    await client
      .query(`EXPLAIN EXECUTE s${i}${nulls && `(${nulls})`}`)
      .catch((error: Error) => failed.push(`${error.message}: ${text}`));
  }
  expect(failed).toEqual([]);
  expect(statements.length).toBeGreaterThan(100);
});

test(`a starting replica of ${LAST} can prepare them`, async () => {
  const fresh = new Client({ connectionString: url });
  await fresh.connect();
  for (const [i, text] of needed.entries()) await fresh.query(`PREPARE s${i} AS ${text}`);
  await fresh.end();
});

test(`columns of ${LAST} are unchanged, and new ones are optional`, async () => {
  const after = new Map((await columns()).map((one) => [one.column, one]));
  // A column may become optional: replicas of the last release always fill it.
  expect(before.map(({ column, type }) => [column, type])).toEqual(
    before.map(({ column }) => [column, after.get(column)?.type]),
  );
  const optional = new Set(before.filter(({ required }) => !required).map(({ column }) => column));
  expect([...after.values()].filter(({ column, required }) => required && optional.has(column))).toEqual([]);
  const tables = new Set(before.map(({ column }) => column.split('.')[0]));
  const known = new Set(before.map(({ column }) => column));
  const required = [...after.values()].filter(
    ({ column, required }) => required && !known.has(column) && tables.has(column.split('.')[0]),
  );
  expect(required).toEqual([]);
});

describe(`replicas of ${LAST} and of this version at the same time`, () => {
  test("accept each other's keys until one of them revokes them", async () => {
    const { id: user_id } = await make.user();
    const made = 'made-by-the-last-release-0123456789';
    const hash = `\\x${hashApiKey(made, Buffer.from(PEPPER)).toString('hex')}`;
    const [key] = await old<{ id: number }>(
      /^INSERT INTO "api_keys".+DEFAULT, DEFAULT, DEFAULT, DEFAULT, DEFAULT\) RETURNING/,
      ...[hash, 'gw_', user_id, null, null],
    );
    expect(await anonymous.with(made).get('/profile')).toMatchObject({ body: { user: { id: user_id } } });
    const LIVE_KEYS = /^SELECT k\.key_hash::text AS hash/;
    expect(await old(LIVE_KEYS, `{"\\${hash}"}`)).toMatchObject([{ id: key!.id }]);
    await old(/^UPDATE "api_keys".+"id" = \$1 AND "user_id" = \$2/, key!.id, user_id);
    await until(async () => (await anonymous.with(made).get('/profile')).status === 401);
    expect(await old(LIVE_KEYS, `{"\\${hash}"}`)).toEqual([]);
  });

  test('store messages about purchases that both can send', async () => {
    await client.query(`
      INSERT INTO webhooks (id, url, events, secret) VALUES (77, 'https://example.com', '{purchase.completed}', '');
      INSERT INTO webhook_deliveries (id, webhook_id, event, purchase_id, data)
      VALUES (gen_random_uuid(), 77, 'purchase.completed', 5, '{}');
      INSERT INTO webhook_deliveries (id, webhook_id, event, subject_type, subject_id, data)
      VALUES (gen_random_uuid(), 77, 'purchase.completed', 'purchase', 6, '{}'),
             (gen_random_uuid(), 77, 'build.completed', 'build', 7, '{}')`);
    const stored = await client.query(
      'SELECT subject_type, subject_id::int, purchase_id::int FROM webhook_deliveries ORDER BY subject_id',
    );
    await client.query('DELETE FROM webhooks');
    expect(stored.rows).toEqual([
      { subject_type: 'purchase', subject_id: 5, purchase_id: 5 },
      { subject_type: 'purchase', subject_id: 6, purchase_id: 6 },
      { subject_type: 'build', subject_id: 7, purchase_id: null },
    ]);
  });

  test('update the same collection and return its current state', async () => {
    const owner = await make.user();
    const { id } = await make.collection({ owner });
    const games = await Promise.all(Array.from({ length: 20 }, () => make.game({ owner })));
    await Promise.all(
      games.flatMap((game, i) => [
        i % 2 === 0
          ? oldWrite(/^WITH seen AS.+INSERT INTO collection_games/s, id, owner.id, game.id, null)
          : owner.post(`/collections/${id}/add-game`, { game_id: game.id }),
        owner.get(`/collections/${id}`),
      ]),
    );
    const REMOVED = /^WITH seen AS.+removed AS \(\s*DELETE FROM collection_games.+e\.game_id = \$3/s;
    await Promise.all([
      oldWrite(REMOVED, id, owner.id, games[1]!.id),
      owner.post(`/collections/${id}/remove-game`, { game_id: games[0]!.id }),
    ]);
    const left = games.slice(2).map((game) => game.id);
    const LISTED = /^SELECT page\.\*\s+FROM collections c/;
    const listed = (await old<{ packed: string }>(LISTED, id, owner.id, 100)).map(({ packed }) =>
      Number(packed.split('|')[0]),
    );
    expect(new Set(listed)).toEqual(new Set(left));
    const { body } = await owner.get(`/collections/${id}/collection-games`);
    expect(
      (body as { collection_games: { game: { id: number } }[] }).collection_games.map(({ game }) => game.id),
    ).toEqual(listed);
    expect(await owner.get(`/collections/${id}`)).toMatchObject({
      body: { collection: { games_count: left.length } },
    });
  });

  test("see each other's sales", async () => {
    const owner = await make.user();
    const buyer = await make.user();
    const game = await make.game({ owner });
    const { status, body } = await send('POST', '/operator/purchases', {
      headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
      body: JSON.stringify({
        game_id: game.id,
        user_id: buyer.id,
        email: 'buyer@example.com',
        currency: 'USD',
        amount: 500,
        source: 'card',
      }),
    });
    expect(status).toBe(200);
    const { purchase, download_keys } = body as { purchase: { id: number }; download_keys: { id: number }[] };
    expect(await old(/^SELECT p\.\*.+user_id = \$3/s, game.id, owner.id, buyer.id)).toMatchObject([
      { id: purchase.id },
    ]);
    expect(await old(/^SELECT \(.+AS owns\s+FROM games g/s, game.id, buyer.id)).toEqual([{ owns: true }]);
    const [owned] = await old<{ packed: string }>(
      /^SELECT concat_ws.+k\.downloads\) AS packed/s,
      buyer.id,
      50,
      0,
    );
    expect(owned!.packed.split('|')).toContain(String(download_keys[0]!.id));
  });
});
