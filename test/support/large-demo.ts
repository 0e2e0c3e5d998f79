import { demoRecords } from '../../src/dev/demo/demo';
import { type DemoOptions, SMALL_STORE } from '../../src/dev/demo/demo-options';
import { seedRandom } from '../../src/dev/demo/demo-random';

// One user in ten is a developer, starting with the first.
const USERS_PER_DEVELOPER = 10;
// A prime number, so that the games of the large collection are not in the order of their IDs.
const STEP = 7919;
const CREATED = { created_at: '2013-01-01T00:00:00Z' };

export interface LargeDemoOptions extends Partial<DemoOptions> {
  /** Games in one additional collection. */
  large_collection: number;
  api_keys: number;
}

/** The n-th API key of a seed, from 1. Anyone can derive it. */
export const demoApiKey = (seed: number, n: number) =>
  `demo-${seed}-${n}-${seedRandom(seed, 'api_key', n).text(24)}`;

/** A demo store with a large collection and many API keys. */
export function* largeDemoRecords({ large_collection, api_keys, ...options }: LargeDemoOptions) {
  yield* demoRecords(options);
  const { seed, users, games, collections } = { ...SMALL_STORE, ...options };
  const game_ids = Array.from({ length: large_collection }, (_, n) => 1 + ((n * STEP) % games));
  yield {
    type: 'collection',
    id: collections + 1,
    user_id: 1,
    title: 'Everything at Once',
    games: game_ids.map((game_id) => ({ game_id })),
    ...CREATED,
    updated_at: CREATED.created_at,
  };
  const developers = Math.ceil(users / USERS_PER_DEVELOPER);
  for (let n = 1; n <= api_keys; n++) {
    const isLimited = n > developers && seedRandom(seed, 'credential', n).chance(0.3);
    yield {
      type: 'api_key',
      key: demoApiKey(seed, n),
      // Developers first, who have purchases to look up.
      user_id: n <= developers ? 1 + (n - 1) * USERS_PER_DEVELOPER : 1 + ((n - 1) % users),
      ...(isLimited && { scopes: ['profile', 'collection:view'] }),
      ...CREATED,
    };
  }
}
