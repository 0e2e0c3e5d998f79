import type { JsonObject } from '../../operator/import/record-types/fields';
import { type Calendar, createCalendar, STORE_DAYS, EXAMPLE_TIME } from './demo-calendar';
import { DemoGames, GAMES_OF_BUNDLE, PREPARATION_DAYS } from './demo-games';
import { type DemoOptions, SMALL_STORE, USERS_PER_DEVELOPER } from './demo-options';
import { chooseOther, type Random, seedRandom } from './demo-random';
import { DemoSales } from './demo-sales';
import { ADJECTIVES, createEmail, createName, createOtherEmail, SHELVES } from './demo-words';
import { recentSale } from './recent-sales';

const CHANNEL_NAMES = ['windows', 'linux', 'osx', 'android'];
const DAYS_BETWEEN_BUILDS = 30;

/** Generates the records of a store: the same ones for the same options. Throws a RangeError for invalid options. */
export function demoRecords(options: Partial<DemoOptions> = {}): Generator<JsonObject> {
  return new DemoStore({ ...SMALL_STORE, ...options }).records();
}

/** Each record has its own random numbers, so that it can be generated independently. */
class DemoStore {
  private readonly games: DemoGames;
  private readonly sales: DemoSales;
  private readonly timeAt: Calendar;

  constructor(private readonly options: DemoOptions) {
    if (options.users < 3 || options.games < 1) throw new RangeError('use at least --users 3 and --games 1');
    if (options.collection_size > options.games)
      throw new RangeError(
        `--collection-size ${options.collection_size} is more than --games ${options.games}`,
      );
    this.timeAt = createCalendar(options.now ?? EXAMPLE_TIME);
    this.games = new DemoGames(options, this.timeAt);
    this.sales = new DemoSales(options, this.timeAt, this.games);
  }

  *records(): Generator<JsonObject> {
    const { users, games, purchases, download_keys, recent_sales, collections, builds } = this.options;
    for (let id = 1; id <= users; id++) yield this.user(id);
    for (let id = 1; id <= games; id++) yield this.games.game(id);
    if (games > GAMES_OF_BUNDLE) yield this.games.bundle();
    for (let id = 1; id <= purchases; id++) yield this.sales.purchase(id);
    for (let id = 1; id <= download_keys; id++) yield this.sales.downloadKey(id);
    for (let n = 1; n <= recent_sales; n++) yield* recentSale(this.options, n);
    for (let id = 1; id <= collections; id++) yield this.collection(id);
    for (let id = 1; id <= builds; id++) yield this.build(id);
    yield* this.credentials();
  }

  private user(id: number): JsonObject {
    const random = this.random('user', id);
    const developer = id % USERS_PER_DEVELOPER === 1;
    const { username, display_name } = createName(id);
    const emails: JsonObject[] = [];
    if (id <= 3 || !random.chance(0.05)) emails.push({ email: createEmail(id), verified: true });
    if (id === 2 || random.chance(0.15)) emails.push({ email: createOtherEmail(id), verified: true });
    if (id === 3 || random.chance(0.1))
      emails.push({ email: `${username}+new@example.org`, verified: false });
    return {
      type: 'user',
      id,
      username,
      ...(random.chance(0.9) && { display_name }),
      ...(developer && { developer }),
      ...(random.chance(0.02) && { press_user: true }),
      ...(random.chance(0.6) && { cover_url: `https://images.example.com/users/${id}.png` }),
      ...(this.options.password !== undefined && id <= 3 && { password: this.options.password }),
      emails,
      // Accounts are created before the first sale.
      created_at: this.timeAt(id === 1 ? 0 : random.below(PREPARATION_DAYS), random.below(86_400)),
    };
  }

  private collection(id: number): JsonObject {
    const random = this.random('collection', id);
    const user_id = id <= 3 ? id : 1 + random.below(this.options.users);
    const created = random.below(STORE_DAYS - 2 * PREPARATION_DAYS);
    const first = 1 + random.below(this.options.games);
    return {
      type: 'collection',
      id,
      user_id,
      title: `${random.of(SHELVES).replace('-', ' ')} Games`,
      ...((id === 3 || random.chance(0.2)) && { private: true }),
      ...(random.chance(0.4) && { description: '<p>Games that I <strong>come back to</strong>.</p>' }),
      ...(random.chance(0.3) && { layout: 'list' }),
      ...((id === 2 || random.chance(0.1)) && { admins: [chooseOther(random, this.options.users, user_id)] }),
      games: this.games.walk(first, this.options.collection_size).map((game_id) => ({
        game_id,
        ...(random.chance(0.15) && { blurb: `<p>${random.of(ADJECTIVES)}, and <em>worth it</em>.</p>` }),
      })),
      created_at: this.timeAt(created),
      updated_at: this.timeAt(created + random.below(300)),
    };
  }

  private build(id: number): JsonObject {
    const random = this.random('build', id);
    const round = Math.floor((id - 1) / this.options.games);
    const rounds = Math.ceil(this.options.builds / this.options.games);
    const between = Math.min(DAYS_BETWEEN_BUILDS, Math.floor(STORE_DAYS / rounds));
    const state = round && id % 29 === 0 ? ['started', 'processing', 'failed'][(id / 29) % 3]! : 'completed';
    return {
      type: 'build',
      id,
      game_id: 1 + ((id - 1) % this.options.games),
      channel_name: CHANNEL_NAMES[round % CHANNEL_NAMES.length],
      ...((round === 0 || random.chance(0.95)) && {
        user_version: `1.${Math.floor(round / CHANNEL_NAMES.length)}.${random.below(10)}`,
      }),
      ...(state !== 'completed' && { state }),
      created_at: this.timeAt(STORE_DAYS - (rounds - round) * between + random.below(between)),
    };
  }

  private *credentials(): Generator<JsonObject> {
    const { api_key: key, seed } = this.options;
    if (key !== undefined)
      yield { type: 'api_key', key, user_id: 1, label: 'Demo', created_at: this.timeAt(STORE_DAYS) };
    yield {
      type: 'api_key',
      key: `demo-${seed}-${this.random('api_key', 0).text(24)}`,
      user_id: 1,
      label: 'Lost laptop',
      created_at: this.timeAt(STORE_DAYS - 100),
      revoked_at: this.timeAt(STORE_DAYS - 90),
    };
    yield {
      type: 'oauth_application',
      client_id: 'demo-companion',
      user_id: 1,
      name: 'Demo Companion',
      redirect_uris: ['http://127.0.0.1:8080/callback'],
      scopes: [
        'profile:me',
        'profile:collections',
        'profile:owned',
        'game:view:ownership',
        'game:view:uploads',
        'collection:view',
      ],
      implicit_allowed: true,
      may_start_games: true,
    };
  }

  private random(what: string, id: number): Random {
    return seedRandom(this.options.seed, what, id);
  }
}
