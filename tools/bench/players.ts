import { Readable } from 'node:stream';
import { demoApiKey, type LargeDemoOptions } from '../../test/support/large-demo';
import { toNdjson } from '../../src/dev/demo/demo-file';
import { connectTo, importRecords } from '../../src/operator/import/import-records';

export const PLAYERS = 10;
export const GAMES_OF_PLAYER = 2000;
const START = Date.UTC(2014, 0, 1);
const HOUR = 60 * 60 * 1000;
// A prime, so that no game is repeated.
const STEP = 7919;
const WAYS = ['bought', 'claimed', 'sent'] as const;

type Sizes = Required<
  Pick<LargeDemoOptions, 'seed' | 'users' | 'games' | 'purchases' | 'download_keys' | 'api_keys'>
>;

/** IDs of the players' API keys, from 1, after those of the demo. */
export const keyOfPlayer = ({ api_keys }: Pick<Sizes, 'api_keys'>, player: number) => api_keys + player;

const playerName = (player: number) => `player-${player}`;
const playerEmail = (player: number) => `${playerName(player)}@example.com`;
const timeAt = (hour: number) => new Date(START + hour * HOUR).toISOString();

/** Users who own thousands of games each. */
function* playerRecords(sizes: Sizes): Generator<object> {
  for (let player = 1; player <= PLAYERS; player++)
    yield {
      type: 'user',
      id: sizes.users + player,
      username: playerName(player),
      emails: [{ email: playerEmail(player), verified: true }],
      created_at: timeAt(0),
    };
  for (let player = 1; player <= PLAYERS; player++)
    for (let n = 0; n < GAMES_OF_PLAYER; n++) yield* ownedGame(sizes, player, n);
  for (let player = 1; player <= PLAYERS; player++)
    yield {
      type: 'api_key',
      key: demoApiKey(sizes.seed, keyOfPlayer(sizes, player)),
      user_id: sizes.users + player,
      created_at: timeAt(0),
    };
}

function* ownedGame({ users, games, purchases, download_keys }: Sizes, player: number, n: number) {
  const user_id = users + player;
  const email = playerEmail(player);
  const way = WAYS[n % WAYS.length]!;
  const place = (player - 1) * GAMES_OF_PLAYER + n + 1;
  const of = { game_id: 1 + ((player + n * STEP) % games), created_at: timeAt(n) };
  const purchase_id = purchases + place;
  if (way === 'bought')
    yield {
      type: 'purchase',
      id: purchase_id,
      ...of,
      email,
      user_id,
      source: 'card',
      currency: 'USD',
      amount: 499,
    };
  yield {
    type: 'download_key',
    id: download_keys + place,
    key: `${playerName(player)}-${n}`,
    ...of,
    ...{ bought: { purchase_id }, claimed: { user_id }, sent: { email } }[way],
  };
}

/** Adds the players to a store without players. */
export async function addPlayers(
  url: string,
  sizes: Sizes,
  pepper: string,
  say: (line: string) => void,
): Promise<void> {
  const client = await connectTo({ DATABASE_URL: url });
  try {
    const { rows } = await client.query('SELECT FROM users WHERE username = $1', [playerName(1)]);
    if (rows.length > 0) return;
    say(`adding ${PLAYERS} players with ${GAMES_OF_PLAYER} games each (once)`);
    const records = Readable.from(toNdjson(playerRecords(sizes)));
    await importRecords(() => connectTo({ DATABASE_URL: url }), records, { pepper: Buffer.from(pepper) });
    await client.query('VACUUM (ANALYZE)');
  } finally {
    await client.end();
  }
}
