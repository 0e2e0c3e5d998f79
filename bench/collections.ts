/**
 * How many changes of collections a second one process makes: 16 writers on one collection, where each waits for the one
 * before it, and on many. Afterwards every collection is checked: each game once, and its count true.
 */
import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import type { Client } from 'pg';
import { ADD, ENTRY } from '../src/collections/collection-games.service';
import { LOCK } from '../src/collections/collection-lock';
import { connectTo } from '../src/importing/import-records';
import { findPgbench, LoadGenerator, MeasuredServer } from './servers';
import { openStore, type Store } from './store';
import { apiKey } from './workload';

const { values } = parseArgs({
  options: {
    scale: { type: 'string', default: '0.05' },
    seconds: { type: 'string', default: '5' },
    rounds: { type: 'string', default: '3' },
  },
});
const seconds = Number(values.seconds);
const rounds = Number(values.rounds);

const WRITERS = 16;
const GAMES = 200;
const MANY = 2000;
const REQUESTS = 20_000;
const OWNER = 1;

const say = (line: string) => console.error(line);

interface Collections {
  one: number;
  many: number[];
  games: number[];
}

/** Collections of 50 games, all of one owner; made anew at every run. */
async function makeCollections(client: Client): Promise<Collections> {
  const { rows: games } = await client.query<{ id: number }>(
    `SELECT id FROM games WHERE visibility = 'public' AND published_at IS NOT NULL ORDER BY id LIMIT ${GAMES}`,
  );
  await client.query(`DELETE FROM collections WHERE title = 'bench:collections'`);
  const { rows } = await client.query<{ id: number }>(
    `WITH made AS (
       INSERT INTO collections (user_id, title, games_count)
       SELECT u.id, 'bench:collections', 50 FROM api_keys k JOIN users u ON u.id = k.user_id,
         generate_series(0, ${MANY}) WHERE k.id = ${OWNER} RETURNING id, user_id),
     entries AS (
       INSERT INTO collection_games (collection_id, game_id, sort_key, user_id)
       SELECT made.id, game.id, game.place, made.user_id
       FROM made, unnest($1::bigint[]) WITH ORDINALITY AS game (id, place) WHERE game.place <= 50)
     SELECT id FROM made`,
    [games.map(({ id }) => Number(id))],
  );
  await client.query('VACUUM (ANALYZE) collections, collection_games');
  const ids = rows.map(({ id }) => Number(id));
  return { one: ids[0]!, many: ids.slice(1), games: games.map(({ id }) => Number(id)) };
}

// Always the same numbers, so that every run sends the same.
function randomFrom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

/** As many games are added as are removed; every fourth change puts ten in another order. */
function changes(ids: number[], games: number[], adds: boolean): string[] {
  const random = randomFrom(7);
  const any = () => games[random(games.length)]!;
  return Array.from({ length: REQUESTS }, (_, i) => {
    const id = ids[random(ids.length)]!;
    if (adds) return post(`/collections/${id}/add-game`, `game_id=${any()}`);
    if (i % 4 === 3)
      return post(
        `/collections/${id}/order`,
        `game_ids=[${[...new Set(Array.from({ length: 10 }, any))].join(',')}]`,
      );
    return post(`/collections/${id}/${i % 4 === 1 ? 'remove' : 'add'}-game`, `game_id=${any()}`);
  });
}

const post = (path: string, body: string) =>
  `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer ${apiKey(OWNER)}\r\n` +
  `Content-Type: application/x-www-form-urlencoded\r\nContent-Length: ${body.length}\r\n\r\n${body}`;

/** The same transaction as add-game makes, run by pgbench as often as it can. */
function pgbenchRate(store: Store, ids: number[], games: number[], user: number): number | undefined {
  const pgbench = findPgbench();
  if (!pgbench) return undefined;
  const named = (text: string) =>
    text
      .replaceAll('$1', ':collection')
      .replaceAll('$2', ':user')
      .replaceAll('$3', ':game')
      .replaceAll('$4', 'NULL::text');
  const script = join(store.folder, 'add-game.sql');
  writeFileSync(
    script,
    [
      `\\set collection random(${ids[0]}, ${ids.at(-1)})`,
      `\\set game random(${games[0]}, ${games[0]! + games.length - 1})`,
      `\\set user ${user}`,
      'BEGIN;',
      ...[LOCK, ADD, ENTRY].map(({ text }) => `${named(text).replace(/\s+/g, ' ')};`),
      'COMMIT;',
    ].join('\n'),
  );
  const options = [
    '-n',
    '-M',
    'prepared',
    '-c',
    String(WRITERS),
    '-j',
    '2',
    '-T',
    String(seconds),
    '-f',
    script,
  ];
  const printed = execFileSync(pgbench, [...options, store.url], {
    encoding: 'utf8',
    stdio: ['ignore', 'pipe', 'ignore'],
  });
  return Number(/tps = ([\d.]+)/.exec(printed)?.[1]);
}

const wrong = `
  SELECT c.id FROM collections c
  WHERE c.title = 'bench:collections'
    AND c.games_count <> (SELECT count(*) FROM collection_games e WHERE e.collection_id = c.id)`;

async function run(): Promise<void> {
  const store = await openStore(Number(values.scale), say);
  const client = await connectTo({ DATABASE_URL: store.url });
  const server = await MeasuredServer.start('ours', store);
  const load = new LoadGenerator();
  try {
    const { one, many, games } = await makeCollections(client);
    const { rows } = await client.query<{ user_id: number }>(
      'SELECT user_id FROM collections WHERE id = $1',
      [one],
    );
    const kinds: [string, string[]][] = [
      ['one collection', changes([one], games, false)],
      ['many collections', changes(many, games, false)],
      ['many, add-game', changes(many, games, true)],
    ];
    console.log(`${WRITERS} writers, ${rounds} rounds of ${seconds} s`);
    for (const [kind, requests] of kinds) {
      const file = join(store.folder, `changes-${kind.replace(/\W+/g, '-')}.json`);
      writeFileSync(file, JSON.stringify(requests));
      const outcomes = [];
      for (let round = 0; round <= rounds; round++) {
        const outcome = await load.drive({
          port: server.port,
          file,
          connections: WRITERS,
          seconds,
          from: round / (rounds + 1),
        });
        if (Object.keys(outcome.failures).length > 0)
          throw new Error(`${kind}: ${JSON.stringify(outcome.failures)}`);
        // The first round warms up.
        if (round > 0) outcomes.push({ ...outcome, rate: outcome.answers / outcome.seconds });
      }
      const [middle] = outcomes.toSorted((a, b) => a.rate - b.rate).slice(Math.floor(outcomes.length / 2));
      console.log(
        `${kind.padEnd(18)} ${middle!.rate.toFixed(0).padStart(6)} changes/s  p50 ${middle!.p50.toFixed(1)} ms  p99 ${middle!.p99.toFixed(1)} ms`,
      );
    }
    const rate = pgbenchRate(store, many, games, Number(rows[0]!.user_id));
    if (rate)
      console.log(
        `${'many, by pgbench'.padEnd(18)} ${rate.toFixed(0).padStart(6)} transactions/s, the same as those of add-game`,
      );
    const broken = (await client.query(wrong)).rows;
    if (broken.length > 0) throw new Error(`${broken.length} collections count wrongly`);
    console.log(`all ${MANY + 1} collections count what they hold`);
  } finally {
    load.stop();
    await server.stop();
    await client.end();
    await store.stop();
  }
}

run().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
