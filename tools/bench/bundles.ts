import { Readable } from 'node:stream';
import { toNdjson } from '../../src/dev/demo/demo-file';
import { connectTo, importRecords } from '../../src/operator/import/import-records';
import { PLAYERS } from './players';

export const BUNDLES = 50;
export const GAMES_OF_BUNDLE = 1741;
/** The ID after the bundle of the demo. */
export const FIRST_BUNDLE = 2;

/** Bundles, which every player bought. */
function* bundleRecords({ users, games }: { users: number; games: number }): Generator<object> {
  const created_at = '2024-01-01T00:00:00Z';
  for (let id = FIRST_BUNDLE; id < FIRST_BUNDLE + BUNDLES; id++)
    yield {
      type: 'bundle',
      id,
      user_id: 1,
      slug: `bundle-${id}`,
      title: `Bundle ${id}`,
      game_ids: Array.from(
        { length: Math.min(GAMES_OF_BUNDLE, games) },
        (_, n) => 1 + ((id * 97 + n) % games),
      ),
      created_at,
      updated_at: created_at,
    };
  for (let player = 1; player <= PLAYERS; player++)
    for (let bundle_id = FIRST_BUNDLE; bundle_id < FIRST_BUNDLE + BUNDLES; bundle_id++)
      yield {
        type: 'purchase',
        id: 2 ** 40 + player * BUNDLES + bundle_id,
        bundle_id,
        email: `player-${player}@example.com`,
        user_id: users + player,
        source: 'card',
        currency: 'USD',
        amount: 1000,
        created_at,
      };
}

/** Adds the bundles to a store that has none. */
export async function addBundles(
  url: string,
  size: { users: number; games: number },
  pepper: string,
  say: (line: string) => void,
): Promise<void> {
  const client = await connectTo({ DATABASE_URL: url });
  try {
    const { rows } = await client.query('SELECT FROM bundles WHERE id = $1', [FIRST_BUNDLE]);
    if (rows.length > 0) return;
    say(`adding ${BUNDLES} bundles of ${GAMES_OF_BUNDLE} games (once)`);
    const records = Readable.from(toNdjson(bundleRecords(size) as Generator<Record<string, unknown>>));
    await importRecords(() => connectTo({ DATABASE_URL: url }), records, { pepper: Buffer.from(pepper) });
    await client.query('VACUUM (ANALYZE)');
  } finally {
    await client.end();
  }
}
