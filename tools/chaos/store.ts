const USERS = 40;
const GAMES = 50;
const NOVELS = 1000;
const PUBLISHED = '2024-05-06T07:08:09Z';

const keyOf = (user: number) => `chaos-${String(user).padStart(36, '0')}`;

/** Keys of as many users. */
export const KEYS = Array.from({ length: USERS }, (_, i) => keyOf(i + 1));
/** Who makes the first games, with a few words for each. */
export const DEVELOPER = KEYS[0]!;
/** Who makes all others, with many words for each: their list is an answer of a megabyte. */
export const NOVELIST = KEYS[1]!;
export const GAME = 1;

/** A small store, whose users are the clients of the scenarios. */
export function* storeRecords(): Generator<Record<string, unknown>> {
  for (let id = 1; id <= USERS; id++) {
    const emails = [{ email: `user${id}@example.com`, verified: true }];
    yield { type: 'user', id, username: `user${id}`, developer: id <= 2, emails };
  }
  for (let id = 1; id <= USERS; id++) yield { type: 'api_key', key: keyOf(id), user_id: id };
  for (let id = 1; id <= GAMES + NOVELS; id++) {
    const user_id = id <= GAMES ? 1 : 2;
    const short_text = 'A game of waves and cranes. '.repeat(user_id === 1 ? 2 : 35);
    const slug = `game-${id}`;
    yield { type: 'game', id, user_id, slug, title: `Game ${id}`, short_text, published_at: PUBLISHED };
  }
  yield { type: 'build', id: 1, game_id: GAME, channel_name: 'windows', user_version: '1.2.0' };
}
