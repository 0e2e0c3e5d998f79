/**
 * How many changes of collections a second one process makes: 16 writers on one collection, where each waits for the one
 * before it, and on many. Afterwards every collection is checked: each game once, and its count true.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { ADD, ENTRY } from '../../src/collections/collection-games.service';
import { LOCK } from '../../src/collections/collection-lock';
import { connectTo } from '../../src/operator/import/import-records';
import { lineOf, pgbenchRate, transaction } from './pgbench';
import { LoadGenerator, MeasuredServer } from './servers';
import { openStore } from './store';
import { makeCollections, miscounted, post, randomFrom, removeCollections } from './written-collections';

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
const GAMES = 50;
const MANY = 2000;
const REQUESTS = 20_000;

const say = (line: string) => console.error(line);

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

async function run(): Promise<void> {
  const store = await openStore(Number(values.scale), say);
  const client = await connectTo({ DATABASE_URL: store.url });
  const server = await MeasuredServer.start('ours', store);
  const load = new LoadGenerator();
  try {
    const { owner, ids, games } = await makeCollections(client, MANY + 1, GAMES);
    const [one, ...many] = ids as [number, ...number[]];
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
    const values = [':collection', String(owner), ':game', 'NULL::text'];
    const rate = await pgbenchRate(
      store,
      [
        transaction(
          [`collection random(${many[0]}, ${many.at(-1)})`, `game random(${games[0]}, ${games.at(-1)})`],
          [LOCK, ADD, ENTRY].map((statement) => lineOf(statement, values)),
        ),
      ],
      WRITERS,
      seconds,
    );
    if (rate)
      console.log(
        `${'many, by pgbench'.padEnd(18)} ${rate.toFixed(0).padStart(6)} transactions/s, the same as those of add-game`,
      );
    const { rowCount } = await miscounted(client);
    if (rowCount) throw new Error(`${rowCount} collections count wrongly`);
    console.log(`all ${MANY + 1} collections count what they hold`);
  } finally {
    load.stop();
    await server.stop();
    await removeCollections(client);
    await client.end();
    await store.stop();
  }
}

run().catch((error: unknown) => {
  console.error(error);
  process.exitCode = 1;
});
