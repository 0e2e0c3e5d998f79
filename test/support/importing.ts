import { Readable } from 'node:stream';
import { Client } from 'pg';
import { ApiKeysService } from '../../src/auth/keys/api-keys.service';
import { type ImportOptions, importRecords } from '../../src/operator/import/import-records';
import { ImportProblems } from '../../src/operator/import/problems';
import { summaryLines } from '../../src/operator/import/summary';
import { PEPPER, theApp } from './app';
import { type HttpResponse, send } from './http';
import { sql } from './sql';

export const OPERATOR_TOKEN = 'the token of the operator in tests';

export type Line = object | string;

export const ndjson = (lines: Line[]) =>
  lines.map((line) => (typeof line === 'string' ? line : JSON.stringify(line))).join('\n');

type Way = 'small' | 'large';
let way: Way = 'small';

/** Runs the tests for small and for large imports, which wait for locks in different ways. */
export const describeImports = (name: string, tests: () => void) =>
  describe.each<Way>(['small', 'large'])(`${name}, in a %s import`, (which) => {
    beforeAll(() => void (way = which));
    afterAll(() => void (way = 'small'));
    tests();
  });

/** The response to a large import of a few records, which over HTTP would be a small one. */
export async function sendLarge(lines: Line[]): Promise<HttpResponse> {
  try {
    const types = await importDirectly(lines);
    theApp().get(ApiKeysService).forgetAll();
    return { status: 200, body: { summary: summaryLines(types), types } };
  } catch (error) {
    if (error instanceof ImportProblems) return { status: 400, body: { errors: error.lines } };
    throw error;
  }
}

/** Sends records as the operator; returns only the status and body of the response. */
export const sendImport = (lines: Line[], token = OPERATOR_TOKEN): Promise<HttpResponse> =>
  way === 'large' && token === OPERATOR_TOKEN
    ? sendLarge(lines)
    : sendSmall(lines, { authorization: `Bearer ${token}` });

/** Sends a small import over HTTP, even in tests that also use the command. */
export async function sendSmall(lines: Line[], headers: Record<string, string> = {}): Promise<HttpResponse> {
  const { status, body } = await send('POST', '/operator/import', {
    headers: {
      authorization: `Bearer ${OPERATOR_TOKEN}`,
      'content-type': 'application/x-ndjson',
      ...headers,
    },
    body: ndjson(lines),
  });
  return { status, body };
}

/** Imports valid records and returns the summary. */
export async function importLines(...lines: Line[]): Promise<string[]> {
  const { status, body } = await sendImport(lines);
  if (status !== 200) throw new Error(JSON.stringify(body));
  return (body as { summary: string[] }).summary;
}

/** Imports invalid records and returns the problems. */
export async function importErrors(...lines: Line[]): Promise<string[]> {
  const before = await allRows();
  const { status, body } = await sendImport(lines);
  if (status !== 400) throw new Error(`${status} ${JSON.stringify(body)}`);
  expect(await allRows()).toEqual(before);
  return (body as { errors: string[] }).errors;
}

export const databaseUrl = async () => {
  const [row] = await sql<{ name: string }>('SELECT current_database() AS name');
  const url = new URL(process.env.TEST_SERVER_URL!);
  url.pathname = `/${row!.name}`;
  return url.href;
};

/** Imports without HTTP, for what HTTP can't cover; `prepare` gets its connection first. */
export async function importDirectly(
  source: Line[] | AsyncIterable<Buffer>,
  { prepare, ...options }: Partial<ImportOptions> & { prepare?: (client: Client) => Promise<unknown> } = {},
) {
  const url = await databaseUrl();
  const connect = async () => {
    const client = new Client({ connectionString: url });
    await client.connect();
    await prepare?.(client);
    return client;
  };
  const stream = Array.isArray(source) ? Readable.from([Buffer.from(ndjson(source))]) : source;
  return importRecords(connect, stream, { pepper: Buffer.from(PEPPER), ...options });
}

/** Tables that other requests write: credentials, retries, messages and the log. */
const NOT_IMPORTED =
  /^(attempts|audit_events.*|api_key_requests|idempotency_keys|migrations|oauth_(?!applications).*|operator_tokens|sessions|signing_keys|counted_downloads|webhook.*)$/;

/** Every row of the store with the transaction that wrote it: equal only if nothing was written. */
export async function allRows(): Promise<Record<string, string[]>> {
  const tables = await sql<{ name: string }>(
    `SELECT tablename AS name FROM pg_tables WHERE schemaname = 'public' ORDER BY name`,
  );
  const rows = await sql<{ name: string; rows: string[] }>(
    tables
      .map(({ name }) => name)
      .filter((table) => !NOT_IMPORTED.test(table))
      .map(
        (table) =>
          `SELECT '${table}' AS name, ARRAY(
           SELECT t.xmin || ' ' || t.ctid || ' ' || t::text AS row FROM ${table} t ORDER BY row) AS rows`,
      )
      .join(' UNION ALL '),
  );
  return Object.fromEntries(rows.map((table) => [table.name, table.rows]));
}

/** Games of purchases whose copies of buyer and time differ from the purchase. */
export const wrongBuyers = () =>
  sql(`SELECT pg.* FROM purchase_games pg JOIN purchases p ON p.id = pg.purchase_id
       WHERE (pg.user_id, pg.email, pg.sold_at) IS DISTINCT FROM (p.user_id, lower_ascii(p.email),
         CASE WHEN p.status IN ('complete', 'refunded') THEN p.created_at END)`);

/** Download keys whose copies of account and email address differ from the key and its purchase. */
export const wrongAccounts = () =>
  sql(`SELECT k.* FROM download_keys k LEFT JOIN purchases p ON p.id = k.purchase_id
       WHERE (k.account_id, k.purchase_email) IS DISTINCT FROM (coalesce(k.user_id, p.user_id), lower_ascii(p.email))`);

/** Games whose copy of the owner's name differs from the owner's name. */
export const wrongOwners = () =>
  sql(`SELECT g.id, g.owner_name, u.username FROM games g JOIN users u ON u.id = g.user_id
       WHERE g.owner_name <> u.username`);

/** The totals of each game's purchases, computed by the view that defines them. */
export const expectedSales = () =>
  sql(`WITH shares AS MATERIALIZED (
         SELECT v.game_id, v.currency, v.amount, p.created_at AT TIME ZONE 'UTC' AS sold_at
         FROM purchase_shares v JOIN purchases p ON p.id = v.purchase_id),
       counts AS (SELECT game_id, count(*) AS purchases_count FROM shares GROUP BY game_id),
       earnings AS (
         SELECT game_id, json_object_agg(currency, amount ORDER BY currency) AS earnings
         FROM (SELECT game_id, currency, sum(amount) AS amount FROM shares GROUP BY 1, 2 HAVING sum(amount) > 0) e
         GROUP BY game_id),
       periods AS (
         SELECT game_id, json_object_agg(concat_ws(' ', unit, first_day, currency), ARRAY[purchases, amount] ORDER BY unit, first_day, currency) AS periods
         FROM (SELECT game_id, unit, date_trunc(unit, sold_at)::date AS first_day, currency,
                      count(*) AS purchases, sum(amount) AS amount
               FROM shares, unnest('{day,month}'::text[]) AS unit GROUP BY 1, 2, 3, 4) d
         GROUP BY game_id)
       SELECT g.id, coalesce(c.purchases_count, 0) AS purchases_count, e.earnings, d.periods
       FROM games g LEFT JOIN counts c ON c.game_id = g.id LEFT JOIN earnings e ON e.game_id = g.id
         LEFT JOIN periods d ON d.game_id = g.id
       ORDER BY g.id`);

export const storedSales = () =>
  sql(`SELECT g.id, g.purchases_count,
         (SELECT json_object_agg(currency, amount ORDER BY currency)
          FROM game_earnings e WHERE e.game_id = g.id) AS earnings,
         (SELECT json_object_agg(concat_ws(' ', unit, first_day, currency), ARRAY[purchases, amount] ORDER BY unit, first_day, currency)
          FROM sales_periods d WHERE d.game_id = g.id) AS periods
       FROM games g ORDER BY g.id`);
