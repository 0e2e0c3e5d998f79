/**
 * Measures how many sales per second one process stores, from 64 concurrent clients and from one that waits for each
 * response: by imports of one record and by POST /operator/purchases. Alternately, pgbench writes the same rows, each
 * sale in its own transaction, on as many connections as there are clients.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Client } from 'pg';
import { connectTo } from '../../src/operator/import/import-records';
import { groupByPeriod } from '../../src/purchases/earnings/earnings';
import { pgbenchRate, type Script, transaction } from './pgbench';
import { machine, median, summarizeRatios, formatRatio, table } from './report';
import { LoadGenerator, MeasuredServer } from './servers';
import { openStore, type Store } from './store';
import { randomFrom } from './written-collections';

const { values } = parseArgs({
  options: {
    scale: { type: 'string', default: '0.05' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);

const TOKEN = 'an operator token of the benchmark';
const SENDERS = [64, 1];
/** Enough for all rounds, because repeating a record would change nothing. */
const REQUESTS = 12_000 * seconds * (rounds + 1);
const IDS_OF_ONE = 10_000_000;
const DATABASE = 'selling_bench';

const say = (line: string) => console.error(line);

interface Way {
  name: string;
  request: (place: number, game: number) => string;
  /** The statements that write the rows of one sale. */
  statements: string[];
}

const post = (path: string, type: string, body: string) =>
  `POST /operator/${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${TOKEN}\r\n` +
  `Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

const THIS_SALE = `currval('purchases_id_seq')`;
const TODAY = `(now() AT TIME ZONE 'UTC')::date`;
const PURCHASE = [
  `INSERT INTO purchases (purchase_type, email, source, currency, amount)
   VALUES ('game', 'buyer@example.com', 'store', 'USD', 499)`,
  `INSERT INTO purchase_games (purchase_id, game_id, email, sold_at)
   VALUES (${THIS_SALE}, :game, 'buyer@example.com', now())`,
];
const SUMS = [
  'UPDATE games SET purchases_count = purchases_count + 1 WHERE id = :game',
  `INSERT INTO game_earnings AS e (game_id, currency, amount) VALUES (:game, 'USD', 499)
   ON CONFLICT (game_id, currency) DO UPDATE SET amount = e.amount + excluded.amount`,
  `INSERT INTO sales_periods AS s (game_id, unit, first_day, currency, purchases, amount)
   VALUES (:game, 'day', ${TODAY}, 'USD', 1, 499),
          (:game, 'month', date_trunc('month', ${TODAY}::timestamp)::date, 'USD', 1, 499)
   ON CONFLICT (game_id, unit, first_day, currency)
   DO UPDATE SET purchases = s.purchases + excluded.purchases, amount = s.amount + excluded.amount`,
];
const REFERENCE_AND_KEY = [
  `INSERT INTO purchase_references (reference, purchase_id) VALUES ('bench-' || ${THIS_SALE}, ${THIS_SALE})`,
  `INSERT INTO download_keys (key, game_id, purchase_id, purchase_email)
   VALUES (gen_random_uuid()::text, :game, ${THIS_SALE}, 'buyer@example.com')`,
];

const waysFrom = (firstId: number): Way[] => [
  {
    name: 'import of one purchase',
    request: (place, game_id) =>
      post(
        'import',
        'application/x-ndjson',
        JSON.stringify({
          type: 'purchase',
          id: firstId + place,
          game_id,
          email: 'buyer@example.com',
          source: 'store',
          currency: 'USD',
          amount: 499,
        }),
      ),
    statements: [...PURCHASE, ...SUMS],
  },
  {
    name: 'sale with a key',
    request: (place, game) =>
      post(
        'purchases',
        'application/x-www-form-urlencoded',
        `game_id=${game}&email=buyer%40example.com&currency=USD&amount=499&reference=order-${firstId + place}`,
      ),
    statements: [...PURCHASE, ...REFERENCE_AND_KEY, ...SUMS],
  },
];

interface Measured {
  rate: number;
  p50: number;
  p99: number;
  /** CPU time of the server per sale, in milliseconds. */
  cpu: number;
}

async function sell(
  client: Client,
  server: MeasuredServer,
  load: LoadGenerator,
  file: string,
  connections: number,
  from: number,
): Promise<Measured> {
  const sold = async () =>
    (await client.query<{ count: number }>('SELECT count(*) FROM purchases')).rows[0]!.count;
  const soldBefore = await sold();
  const before = await server.usage();
  const { failures, responses, ...outcome } = await load.drive({
    port: server.port,
    file,
    connections,
    seconds,
    from,
  });
  const after = await server.usage();
  if (Object.keys(failures).length > 0) throw new Error(JSON.stringify(failures));
  const made = (await sold()) - soldBefore;
  if (made < responses) throw new Error(`${responses} requests created ${made} sales`);
  return { ...outcome, rate: responses / outcome.seconds, cpu: (after.cpu - before.cpu) / 1000 / responses };
}

/** The sales of the service and of pgbench, alternately. */
async function compare(
  client: Client,
  store: Pick<Store, 'folder' | 'url'>,
  server: MeasuredServer,
  load: LoadGenerator,
  file: string,
  script: Script,
  connections: number,
) {
  const measured: Measured[] = [];
  const pgbench: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const one = await sell(client, server, load, file, connections, round / (rounds + 1));
    // The first round is a warm-up.
    if (round === 0) continue;
    measured.push(one);
    pgbench.push((await pgbenchRate(store, [script], connections, seconds)) ?? NaN);
  }
  return { measured, pgbench };
}

async function measureWays(store: Pick<Store, 'folder' | 'url' | 'pepper'>): Promise<string> {
  const client = await connectTo({ DATABASE_URL: store.url });
  const load = new LoadGenerator();
  const server = await MeasuredServer.start('ours', store, { OPERATOR_TOKEN: TOKEN });
  try {
    const { rows } = await client.query<{ games: string; id: string }>(
      'SELECT (SELECT max(id) FROM games) AS games, (SELECT max(id) FROM purchases) AS id',
    );
    const lastId = Number(rows[0]!.id);
    // Imports use the IDs below this one, and all other sales use those above.
    await client.query('SELECT setval($1, $2)', ['purchases_id_seq', lastId + 100 * IDS_OF_ONE]);
    const games = Number(rows[0]!.games);
    const random = randomFrom(7);
    const lines: string[][] = [];
    for (const [i, senders] of SENDERS.entries())
      for (const { name, request, statements } of waysFrom(lastId + (i + 1) * IDS_OF_ONE)) {
        const requests = Array.from({ length: REQUESTS }, (_, i) => request(i, 1 + random(games)));
        // The load generator reads a file once.
        const file = join(store.folder, `sales-${lines.length}.json`);
        writeFileSync(file, JSON.stringify(requests));
        const script = transaction(
          [`game random(1, ${games})`],
          statements.map((one) => `${one.replace(/\s+/g, ' ')};`),
        );
        const { measured, pgbench } = await compare(client, store, server, load, file, script, senders);
        const of = (what: keyof Measured) => measured.map((one) => one[what]);
        lines.push([
          `${name}, ${senders === 1 ? 'one client' : `${senders} clients`}`,
          formatRatio(summarizeRatios(of('rate'), pgbench)),
          median(of('rate')).toFixed(0),
          median(pgbench).toFixed(0),
          median(of('p50')).toFixed(1),
          median(of('p99')).toFixed(1),
          median(of('cpu')).toFixed(2),
        ]);
        say(lines.at(-1)!.join('  '));
      }
    await checkSums(client);
    const columns = (...indexes: number[]) => lines.map((line) => indexes.map((i) => line[i]!));
    return [
      table(['sales of', 'ours / pgbench', 'ours, sales/s', 'pgbench, sales/s'], columns(0, 1, 2, 3)),
      table(['sales of', 'p50 ms', 'p99 ms', 'CPU ms per sale'], columns(0, 4, 5, 6)),
    ].join('\n\n');
  } finally {
    load.stop();
    await server.stop();
    await client.end();
  }
}

/** Checks that the totals of days and months match the purchases. */
async function checkSums(client: Client): Promise<void> {
  const columns = 'game_id, unit, first_day, currency, purchases, amount';
  const { rowCount } = await client.query(
    `SELECT ${columns} FROM ${groupByPeriod('(SELECT game_id, currency, day, 1 AS purchases, amount FROM purchase_shares)')} p
     EXCEPT SELECT ${columns} FROM sales_periods`,
  );
  if (rowCount) throw new Error(`${rowCount} totals of days and months do not match their purchases`);
}

async function run(): Promise<void> {
  const store = await openStore(Number(values.scale), say);
  const url = new URL(store.url);
  url.pathname = `/${DATABASE}`;
  const admin = await connectTo({ DATABASE_URL: new URL('/postgres', store.url).href });
  try {
    await admin.query(`DROP DATABASE IF EXISTS ${DATABASE} WITH (FORCE)`);
    // A copy, because other benchmarks measure the contents of the store.
    await admin.query(`CREATE DATABASE ${DATABASE} TEMPLATE ${new URL(store.url).pathname.slice(1)}`);
    const text = [
      '# Results of `npm --prefix tools run bench:selling`',
      `${rounds} rounds of ${seconds} s; store of scale ${values.scale}.`,
      table(['machine', ''], Object.entries(machine(store))),
      await measureWays({ ...store, url: url.href }),
      '',
    ].join('\n\n');
    console.log(text);
    writeFileSync(join('tools', 'bench', 'RESULTS-selling.md'), text);
  } finally {
    await admin.query(`DROP DATABASE IF EXISTS ${DATABASE} WITH (FORCE)`);
    await admin.end();
    await store.stop();
  }
}

run().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
