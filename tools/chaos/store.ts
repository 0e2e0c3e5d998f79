const USERS = 40;
const GAMES = 50;
const NOVELS = 1000;
const PUBLISHED = '2024-05-06T07:08:09Z';

const apiKey = (user: number) => `chaos-${String(user).padStart(36, '0')}`;

/** One API key per user. */
export const KEYS = Array.from({ length: USERS }, (_, i) => apiKey(i + 1));
/** The developer of the first games, with short texts. */
export const DEVELOPER = KEYS[0]!;
/**
 * The developers of all others, a thousand games with long texts each: the list of each is a response of four
 * megabytes.
 */
export const NOVELISTS = KEYS.slice(1, 5);
export const GAME = 1;
/** The user who signs in with a password. */
export const SIGNED_IN = ['user31', 'user32', 'user33'];
export const PASSWORD = 'correct horse battery staple';
export const APPLICATION = 'chaos-application';

/** A small store, whose users are the clients of the scenarios. */
export function* storeRecords(): Generator<Record<string, unknown>> {
  for (let id = 1; id <= USERS; id++) {
    const emails = [{ email: `user${id}@example.com`, verified: true }];
    const username = `user${id}`;
    const password = SIGNED_IN.includes(username) ? PASSWORD : null;
    yield { type: 'user', id, username, password, developer: id <= 1 + NOVELISTS.length, emails };
  }
  yield {
    type: 'oauth_application',
    client_id: APPLICATION,
    user_id: 1,
    name: 'Chaos',
    redirect_uris: ['https://application.example/callback'],
    scopes: ['profile'],
  };
  for (let id = 1; id <= USERS; id++) yield { type: 'api_key', key: apiKey(id), user_id: id };
  for (let id = 1; id <= GAMES + NOVELS * NOVELISTS.length; id++) {
    const user_id = id <= GAMES ? 1 : 2 + (id % NOVELISTS.length);
    const short_text = user_id === 1 ? 'A game of waves and cranes.' : '🌊'.repeat(1000);
    const slug = `game-${id}`;
    yield { type: 'game', id, user_id, slug, title: `Game ${id}`, short_text, published_at: PUBLISHED };
  }
  yield { type: 'build', id: 1, game_id: GAME, channel_name: 'windows', user_version: '1.2.0' };
}
