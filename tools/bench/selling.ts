/**
 * How many sales a second one process stores, from 64 senders at once and from one that waits for each answer: by imports of
 * one record and by POST /operator/purchases. In turns with them, pgbench makes the same rows in a transaction of its own.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Client } from 'pg';
import { connectTo } from '../../src/importing/import-records';
import { pgbenchRate, type Script, transaction } from './pgbench';
import { median, ratioOf, shown, table } from './report';
import { LoadGenerator, MeasuredServer } from './servers';
import { openStore, type Store } from './store';
import { randomFrom } from './written-collections';

const { values } = parseArgs({
  options: {
    scale: { type: 'string', default: '0.05' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);

const TOKEN = 'an operator token of the benchmark';
const SENDERS = [64, 1];
/** More than are sent in all rounds: the same record again would change nothing. */
const REQUESTS = 4000 * seconds * (rounds + 1);
const DATABASE = 'selling_bench';

const say = (line: string) => console.error(line);

interface Way {
  name: string;
  request: (place: number, game: number) => string;
  /** The rows of one sale. */
  inserts: string[];
}

const post = (path: string, type: string, body: string) =>
  `POST /operator/${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${TOKEN}\r\n` +
  `Content-Type: ${type}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

const THIS_SALE = `currval('purchases_id_seq')`;
const PURCHASE = [
  `INSERT INTO purchases (purchase_type, email, source, currency, amount)
   VALUES ('game', 'buyer@example.com', 'store', 'USD', 499)`,
  `INSERT INTO purchase_games (purchase_id, game_id, email, sold_at)
   VALUES (${THIS_SALE}, :game, 'buyer@example.com', now())`,
];
const SUMS = [
  'SELECT id FROM games WHERE id = :game FOR NO KEY UPDATE',
  'UPDATE games SET purchases_count = purchases_count + 1 WHERE id = :game',
  `INSERT INTO game_earnings AS e (game_id, currency, amount) VALUES (:game, 'USD', 499)
   ON CONFLICT (game_id, currency) DO UPDATE SET amount = e.amount + excluded.amount`,
  `INSERT INTO sales_days AS s (game_id, currency, day, purchases, amount)
   VALUES (:game, 'USD', (now() AT TIME ZONE 'UTC')::date, 1, 499)
   ON CONFLICT (game_id, currency, day)
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
    inserts: [...PURCHASE, ...SUMS],
  },
  {
    name: 'sale with a key',
    request: (place, game) =>
      post(
        'purchases',
        'application/x-www-form-urlencoded',
        `game_id=${game}&email=buyer%40example.com&currency=USD&amount=499&reference=order-${place}`,
      ),
    inserts: [...PURCHASE, ...REFERENCE_AND_KEY, ...SUMS],
  },
];

async function compare(
  store: Pick<Store, 'folder' | 'url'>,
  server: MeasuredServer,
  load: LoadGenerator,
  file: string,
  scripts: Script[],
  connections: number,
) {
  const measured = [];
  for (let round = 0; round <= rounds; round++) {
    const [before, order] = [await server.usage(), { port: server.port, file, connections, seconds }];
    const outcome = await load.drive({ ...order, from: round / (rounds + 1) });
    const after = await server.usage();
    if (Object.keys(outcome.failures).length > 0) throw new Error(JSON.stringify(outcome.failures));
    // The first round warms up.
    if (round === 0) continue;
    const pgbench = await pgbenchRate(store, scripts, connections, seconds);
    const cpu = (after.cpu - before.cpu) / outcome.answers;
    measured.push({ ...outcome, rate: outcome.answers / outcome.seconds, pgbench: pgbench ?? NaN, cpu });
  }
  return measured;
}

async function measureWays(store: Pick<Store, 'folder' | 'url' | 'pepper'>): Promise<void> {
  const client = await connectTo({ DATABASE_URL: store.url });
  const server = await MeasuredServer.start('ours', store, { OPERATOR_TOKEN: TOKEN });
  const load = new LoadGenerator();
  try {
    const { rows } = await client.query<{ games: number; id: number }>(
      'SELECT (SELECT max(id) FROM games) AS games, (SELECT max(id) FROM purchases) AS id',
    );
    const games = Number(rows[0]!.games);
    const lines: string[][] = [];
    for (const senders of SENDERS)
      // Ids far from those that the sequence gives to pgbench.
      for (const { name, request, inserts } of waysFrom(Number(rows[0]!.id) + senders * 10_000_000)) {
        const random = randomFrom(7);
        const file = join(store.folder, 'sales.json');
        const requests = Array.from({ length: REQUESTS }, (_, i) =>
          request(senders * 10_000_000 + i, 1 + random(games)),
        );
        writeFileSync(file, JSON.stringify(requests));
        const scripts = [
          transaction(
            [`game random(1, ${games})`],
            inserts.map((one) => `${one.replace(/\s+/g, ' ')};`),
          ),
        ];
        const measured = await compare(store, server, load, file, scripts, senders);
        const of = (what: 'rate' | 'p50' | 'p99' | 'cpu' | 'pgbench') => measured.map((one) => one[what]);
        lines.push([
          `${name}, ${senders} at once`,
          shown(ratioOf(of('rate'), of('pgbench'))),
          median(of('rate')).toFixed(0),
          median(of('pgbench')).toFixed(0),
          median(of('p50')).toFixed(1),
          median(of('p99')).toFixed(1),
          (median(of('cpu')) / 1000).toFixed(2),
        ]);
      }
    await checkSums(client);
    console.log(
      table(['', 'ours / pgbench', 'ours, sales/s', 'pgbench, sales/s', 'p50 ms', 'p99 ms', 'cpu ms'], lines),
    );
  } finally {
    load.stop();
    await server.stop();
    await client.end();
  }
}

/** Kept earnings and days are what the purchases come to. */
async function checkSums(client: Client): Promise<void> {
  const { rowCount } = await client.query(
    `(SELECT game_id, currency, day, sum(amount) FROM purchase_shares GROUP BY game_id, currency, day)
     EXCEPT SELECT game_id, currency, day, amount FROM sales_days`,
  );
  if (rowCount) throw new Error(`${rowCount} days are not what their purchases come to`);
}

async function run(): Promise<void> {
  const store = await openStore(Number(values.scale), say);
  const url = new URL(store.url);
  url.pathname = `/${DATABASE}`;
  const admin = await connectTo({ DATABASE_URL: new URL('/postgres', store.url).href });
  try {
    await admin.query(`DROP DATABASE IF EXISTS ${DATABASE} WITH (FORCE)`);
    // A copy, as others measure what the store holds.
    await admin.query(`CREATE DATABASE ${DATABASE} TEMPLATE ${new URL(store.url).pathname.slice(1)}`);
    console.log(`${rounds} rounds of ${seconds} s`);
    await measureWays({ ...store, url: url.href });
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
