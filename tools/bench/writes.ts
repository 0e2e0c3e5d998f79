import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Client } from 'pg';
import { ADD_GAME, REORDER_GAMES } from '../../src/collections/collection-games.service';
import { LOCK_COLLECTION } from '../../src/collections/collection-access';
import { CREATE_COLLECTION, LOCK_COLLECTION_OWNER } from '../../src/collections/collections.service';
import { connectTo } from '../../src/operator/import/import-records';
import { scriptLine, pgbenchRate, type Script, transaction } from './pgbench';
import type { WriteResult } from './report';
import type { LoadGenerator, MeasuredServer } from './servers';
import type { Store } from './store';
import {
  makeCollections,
  miscounted,
  OWNER,
  post,
  randomFrom,
  removeCollections,
  TITLE_LITERAL,
  titleField,
  type WrittenCollections,
} from './written-collections';

const COLLECTIONS = 2000;
const GAMES = 100;
const REQUESTS = 20_000;
const ORDERS = 20;

interface Write {
  name: string;
  request: (random: (below: number) => number) => string;
  /** The transaction of the request, for pgbench. */
  scripts: Script[];
}

/** Each write and its pgbench equivalent: the same statements in one transaction. */
function listWrites({ owner, ids, games }: WrittenCollections, { api_keys, users }: Store['size']): Write[] {
  const collection = (random: (below: number) => number) => ids[random(ids.length)]!;
  const anyCollection = `collection random(${ids[0]}, ${ids.at(-1)})`;
  const lock = scriptLine(LOCK_COLLECTION, { collection_id: ':collection', user_id: String(owner) });
  const written = { collection_id: ':collection', user_id: String(owner) };
  const entry = { ...written, game_id: ':game' };
  const random = randomFrom(11);
  const listed = games.slice(0, GAMES);
  const orders = Array.from({ length: ORDERS }, () => shuffled(listed, random));
  return [
    {
      name: 'add-game',
      request: (random) =>
        post(`/collections/${collection(random)}/add-game`, `game_id=${games[random(games.length)]}`),
      scripts: [
        transaction(
          [anyCollection, `game random(${games[0]}, ${games.at(-1)})`],
          [lock, scriptLine(ADD_GAME, { ...entry, blurb: 'NULL::text' })],
        ),
      ],
    },
    {
      name: 'order of 100',
      request: (random) =>
        post(`/collections/${collection(random)}/order`, `game_ids=[${orders[random(ORDERS)]!.join(',')}]`),
      scripts: orders.map((order) =>
        transaction(
          [anyCollection],
          [
            lock,
            scriptLine(REORDER_GAMES, {
              ...written,
              game_ids: `'{${order.join(',')}}'`,
              remove_game_ids: `'{}'`,
            }),
          ],
        ),
      ),
    },
    {
      name: 'POST /collections',
      // The owner of the collections above can create no more, and every other user only some.
      request: (random) => post('/collections', titleField, OWNER + 1 + random(api_keys - OWNER)),
      scripts: [
        transaction(
          [`maker random(${owner + 1}, ${users})`],
          [
            scriptLine(LOCK_COLLECTION_OWNER, { user_id: ':maker' }),
            scriptLine(CREATE_COLLECTION, {
              user_id: ':maker',
              title: TITLE_LITERAL,
              private: 'false',
              description: 'NULL::text',
              layout: `'grid'`,
              game_id: 'NULL::bigint',
              blurb: 'NULL::text',
            }),
          ],
        ),
      ],
    },
  ];
}

function shuffled(list: number[], random: (below: number) => number): number[] {
  const result = [...list];
  for (let i = result.length - 1; i > 0; i--) {
    const j = random(i + 1);
    [result[i], result[j]] = [result[j]!, result[i]!];
  }
  return result;
}

/** Writes through the service and the same transactions through pgbench, alternately; empty without pgbench. */
export async function measureWrites(
  store: Store,
  server: MeasuredServer,
  load: LoadGenerator,
  { connections, rounds, seconds }: { connections: number; rounds: number; seconds: number },
): Promise<WriteResult[]> {
  const client = await connectTo({ DATABASE_URL: store.url });
  try {
    const results: WriteResult[] = [];
    for (const write of listWrites(await makeCollections(client, COLLECTIONS, GAMES), store.size)) {
      const random = randomFrom(7);
      const file = join(store.folder, `writes-${write.name.replace(/\W+/g, '-')}.json`);
      writeFileSync(file, JSON.stringify(Array.from({ length: REQUESTS }, () => write.request(random))));
      const result: WriteResult = { write: write.name, ours: [], pgbench: [] };
      const throughService = async (from: number) => {
        const {
          responses,
          seconds: took,
          failures,
        } = await load.drive({
          port: server.port,
          file,
          connections,
          seconds,
          from,
        });
        if (Object.keys(failures).length > 0) throw new Error(`${write.name}: ${JSON.stringify(failures)}`);
        return responses / took;
      };
      await throughService(0);
      for (let round = 1; round <= rounds; round++) {
        const ours = await throughService(round / (rounds + 1));
        const bare = await pgbenchRate(store, write.scripts, connections, seconds);
        if (bare === undefined) return [];
        result.ours.push(ours);
        result.pgbench.push(bare);
      }
      results.push(result);
    }
    await checkCounts(client);
    return results;
  } finally {
    await removeCollections(client);
    await client.end();
  }
}

async function checkCounts(client: Client): Promise<void> {
  const { rowCount } = await miscounted(client);
  if (rowCount) throw new Error(`${rowCount} collections have a wrong count`);
}
