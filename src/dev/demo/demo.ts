import { type DemoOptions, SMALL_STORE } from './demo-options';
import { type Calendar, createCalendar, DAYS, EXAMPLE_TIME } from './demo-calendar';
import { fromCents, LAUNCHED_BEFORE, PRICES } from './demo-prices';
import { type Random, seedRandom } from './demo-random';
import {
  ADJECTIVES,
  capital,
  createEmail,
  GENRES,
  guestEmail,
  createName,
  NOUNS,
  createOtherEmail,
  SHELVES,
  withArticle,
} from './demo-words';
import { DEMO_COVERS } from '../../dashboard/layout/assets';
import { recentSale } from './recent-sales';
import type { JsonObject } from '../../operator/import/record-types/fields';

/** One in this many users is a developer, starting with the first. */
const USERS_PER_DEVELOPER = 10;
/** The only bundle starts with the second game, because guides use the first one. */
const GAMES_OF_BUNDLE = 8;
const PURCHASE_OF_BUNDLE = 4;
const CHANNELS = ['windows', 'linux', 'osx', 'android'];
/** A game is published at most this many days after it was created, and sold only after that. */
const PREPARATION = 200;
const DAYS_BETWEEN_BUILDS = 30;

/** Generates the records of a store: the same ones for the same options. */
export function* demoRecords(options: Partial<DemoOptions> = {}): Generator<JsonObject> {
  const store = new DemoStore({ ...SMALL_STORE, ...options });
  const { users, games, purchases, download_keys, recent_sales, collections, builds } = store.options;
  for (let id = 1; id <= users; id++) yield store.user(id);
  for (let id = 1; id <= games; id++) yield store.game(id);
  if (games > GAMES_OF_BUNDLE) yield store.bundle();
  for (let id = 1; id <= purchases; id++) yield store.purchase(id);
  for (let id = 1; id <= download_keys; id++) yield store.downloadKey(id);
  for (let n = 1; n <= recent_sales; n++) yield* recentSale(store.options, n);
  for (let id = 1; id <= collections; id++) yield store.collection(id);
  for (let id = 1; id <= builds; id++) yield store.build(id);
  yield* store.credentials();
}

/** Each record has its own random numbers, so that it can be generated independently. */
class DemoStore {
  private readonly developers: number;
  private readonly step: number;
  private readonly timeAt: Calendar;

  constructor(readonly options: DemoOptions) {
    if (options.users < 3 || options.games < 1)
      throw new RangeError('a store has at least 3 users and 1 game');
    if (options.collection_size > options.games)
      throw new RangeError('a collection cannot have more games than there are');
    this.timeAt = createCalendar(options.now ?? EXAMPLE_TIME);
    this.developers = Math.ceil(options.users / USERS_PER_DEVELOPER);
    // Steps without a common factor with the number of games visit each game once.
    this.step = [7919, 104_729, 13, 11, 7, 5, 3, 2, 1].find((prime) => options.games % prime !== 0) ?? 1;
  }

  user(id: number): JsonObject {
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
      created_at: this.timeAt(id === 1 ? 0 : random.below(PREPARATION), random.below(86_400)),
    };
  }

  game(id: number): JsonObject {
    const random = this.random('game', id);
    const adjective = ADJECTIVES[id % ADJECTIVES.length]!;
    const noun = NOUNS[id % NOUNS.length]!;
    const sequel = Math.floor(id / (ADJECTIVES.length * NOUNS.length));
    const title = `${adjective} ${noun}${sequel ? ` ${sequel + 1}` : ''}`;
    const created = this.chooseCreated(random, id);
    // The first five cover all cases: public, restricted, private, unpublished, two developers.
    const other = id > 5 && random.chance(0.05) ? random.of(['restricted', 'private']) : 'public';
    const visibility = id === 3 ? 'restricted' : id === 4 ? 'private' : other;
    const published = id !== 5 && (id < 5 || random.chance(0.93));
    const game_type = random.chance(0.8) ? 'default' : random.of(['html', 'unity', 'flash', 'java']);
    return {
      type: 'game',
      id,
      user_id: this.chooseOwner(id),
      slug: title.toLowerCase().replaceAll(' ', '-'),
      title,
      short_text: `${capital(withArticle(adjective.toLowerCase()))} ${random.of(GENRES)} game about ${withArticle(noun.toLowerCase())}`,
      ...(game_type !== 'default' && { game_type }),
      ...(random.chance(0.2) && {
        classification: random.of(['tool', 'assets', 'soundtrack', 'comic', 'book']),
      }),
      traits: game_type === 'default' ? this.platforms(random, id) : [],
      ...(visibility !== 'public' && { visibility }),
      ...(published && {
        published_at: this.timeAt(created + (id === 2 ? PREPARATION : random.below(PREPARATION))),
      }),
      created_at: this.timeAt(created),
      min_price: this.choosePrice(random, id),
      ...((random.chance(0.9) || this.options.url !== undefined) && { cover_url: this.chooseCover(id) }),
      views_count: random.below(50_000),
      downloads_count: random.below(9000),
      ...((id === 2 || random.chance(0.1)) && { admins: [this.otherUser(random, this.chooseOwner(id))] }),
    };
  }

  bundle(): JsonObject {
    return {
      type: 'bundle',
      id: 1,
      user_id: 1,
      slug: 'games-for-a-rainy-week',
      title: 'Games for a rainy week',
      game_ids: Array.from({ length: GAMES_OF_BUNDLE }, (_, n) => n + 2),
      cover_url: this.chooseCover(1),
      min_price: 1000,
      created_at: this.timeAt(DAYS - LAUNCHED_BEFORE + 1),
      updated_at: this.timeAt(DAYS - LAUNCHED_BEFORE + 1),
    };
  }

  purchase(id: number): JsonObject {
    if (id === PURCHASE_OF_BUNDLE && this.options.games > GAMES_OF_BUNDLE) return this.bundlePurchase();
    const random = this.random('purchase', id);
    const { games } = this.options;
    const bundle = games >= 5 && (id === 4 || random.chance(0.04));
    const game = id <= 4 ? 1 : 1 + Math.floor(games * random.next() ** 2);
    const buyer = id <= 2 ? id + 1 : 1 + random.below(this.options.users);
    // The buyer is an account, an account's verified email address, or a guest.
    const how = id <= 2 ? 0 : random.next();
    const currency = random.of(['USD', 'USD', 'USD', 'EUR', 'EUR', 'GBP', 'JPY']);
    // The guides show the first two, at the full price.
    const discount = random.chance(0.2) ? random.of([10, 25, 50, 75]) : 0;
    const sale_rate = id <= 2 ? 0 : discount;
    const game_id = bundle ? this.walk(game, 2 + random.below(4)) : game;
    const isSubProduct = !bundle && random.chance(0.02);
    const email =
      how < 0.9
        ? random.chance(0.1)
          ? createEmail(buyer).toUpperCase()
          : createEmail(buyer)
        : guestEmail(id);
    const created_at = this.timeOfSale(random, bundle ? Math.max(...(game_id as number[])) : game);
    const source = random.of(['card', 'card', 'wallet', 'bank_transfer']);
    // Some buyers pay more than the price.
    const more = random.of([0, 0, 0, 0, 0, 0, 200, 500]);
    const tip = id <= 2 ? 0 : more;
    const quantity = random.chance(0.03) ? 2 + random.below(4) : 1;
    const price = [game_id].flat().reduce((sum, one) => sum + this.priceOf(one), 0);
    return {
      type: 'purchase',
      id,
      game_id,
      ...(isSubProduct && { purchase_type: 'sub_product' }),
      email,
      ...(how < 0.6 && { user_id: buyer }),
      created_at,
      source,
      currency,
      amount: fromCents(Math.round((price * quantity * (100 - sale_rate)) / 100) + tip, currency),
      ...(sale_rate && { sale_rate }),
      ...(quantity > 1 && { quantity }),
      ...(id > 4 && random.chance(0.08) && { status: random.of(['pending', 'failed', 'refunded']) }),
      ...(random.chance(0.03) && { donation: true }),
    };
  }

  /** A sale to the second user, without keys. */
  private bundlePurchase(): JsonObject {
    return {
      type: 'purchase',
      id: PURCHASE_OF_BUNDLE,
      bundle_id: 1,
      email: createEmail(2),
      user_id: 2,
      created_at: this.timeAt(
        DAYS - LAUNCHED_BEFORE + 2 + this.random('purchase', PURCHASE_OF_BUNDLE).below(LAUNCHED_BEFORE - 2),
      ),
      source: 'card',
      currency: 'USD',
      amount: 1000,
    };
  }

  downloadKey(id: number): JsonObject {
    const random = this.random('download_key', id);
    const { purchases, games, users } = this.options;
    const key = random.text(24);
    // Most keys come with a purchase; the others were given away.
    if (purchases && (id <= 2 || random.chance(0.7))) {
      const purchase = this.purchase(id <= 2 ? id : 1 + random.below(purchases));
      const game_id = (purchase.game_id ?? 1) as number | number[];
      return {
        type: 'download_key',
        id,
        key,
        game_id: Array.isArray(game_id) ? game_id[0] : game_id,
        purchase_id: purchase.id,
        email: purchase.email,
        ...(id === 1 && { user_id: purchase.user_id }),
        created_at: purchase.created_at,
        downloads: random.below(12),
        ...(id > 2 && random.chance(0.03) && { revoked_at: this.timeAt(DAYS) }),
      };
    }
    const game_id = id === 3 ? Math.min(3, games) : 1 + random.below(games);
    return {
      type: 'download_key',
      id,
      key,
      game_id,
      ...(random.chance(0.3) && { email: guestEmail(id) }),
      ...((id === 3 || random.chance(0.6)) && { user_id: id === 3 ? 2 : 1 + random.below(users) }),
      created_at: this.timeOfSale(random, game_id),
      downloads: random.below(12),
      ...((id === 5 || random.chance(0.05)) && id !== 3 && { revoked_at: this.timeAt(DAYS) }),
    };
  }

  collection(id: number): JsonObject {
    const random = this.random('collection', id);
    const user_id = id <= 3 ? id : 1 + random.below(this.options.users);
    const created = random.below(DAYS - 2 * PREPARATION);
    const first = 1 + random.below(this.options.games);
    return {
      type: 'collection',
      id,
      user_id,
      title: `${random.of(SHELVES).replace('-', ' ')} Games`,
      ...((id === 3 || random.chance(0.2)) && { private: true }),
      ...(random.chance(0.4) && { description: '<p>Games that I <strong>come back to</strong>.</p>' }),
      ...(random.chance(0.3) && { layout: 'list' }),
      ...((id === 2 || random.chance(0.1)) && { admins: [this.otherUser(random, user_id)] }),
      games: this.walk(first, this.options.collection_size, true).map((game_id) => ({
        game_id,
        ...(random.chance(0.15) && { blurb: `<p>${random.of(ADJECTIVES)}, and <em>worth it</em>.</p>` }),
      })),
      created_at: this.timeAt(created),
      updated_at: this.timeAt(created + random.below(300)),
    };
  }

  build(id: number): JsonObject {
    const random = this.random('build', id);
    const round = Math.floor((id - 1) / this.options.games);
    const rounds = Math.ceil(this.options.builds / this.options.games);
    const between = Math.min(DAYS_BETWEEN_BUILDS, Math.floor(DAYS / rounds));
    const state = round && id % 29 === 0 ? ['started', 'processing', 'failed'][(id / 29) % 3]! : 'completed';
    return {
      type: 'build',
      id,
      game_id: 1 + ((id - 1) % this.options.games),
      channel_name: CHANNELS[round % CHANNELS.length],
      ...((round === 0 || random.chance(0.95)) && {
        user_version: `1.${Math.floor(round / CHANNELS.length)}.${random.below(10)}`,
      }),
      ...(state !== 'completed' && { state }),
      created_at: this.timeAt(DAYS - (rounds - round) * between + random.below(between)),
    };
  }

  *credentials(): Generator<JsonObject> {
    const { api_key: key, seed } = this.options;
    if (key !== undefined)
      yield { type: 'api_key', key, user_id: 1, label: 'Demo', created_at: this.timeAt(DAYS) };
    yield {
      type: 'api_key',
      key: `demo-${seed}-${this.random('api_key', 0).text(24)}`,
      user_id: 1,
      label: 'Lost laptop',
      created_at: this.timeAt(DAYS - 100),
      revoked_at: this.timeAt(DAYS - 90),
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

  private developer(n: number) {
    return 1 + (n - 1) * USERS_PER_DEVELOPER;
  }

  private chooseOwner(game: number) {
    return this.developer(game <= 5 ? 1 : 1 + ((game - 1) % this.developers));
  }

  private chooseCover(game: number) {
    const { url } = this.options;
    return url === undefined
      ? `https://images.example.com/games/${game}.png`
      : url + DEMO_COVERS[game % DEMO_COVERS.length]!;
  }

  private choosePrice(random: Random, game: number) {
    const price = random.chance(0.3) ? 0 : random.of([199, 299, 499, 999, 1499, 1999]);
    return game === 1 || game === 2 ? PRICES[game] : price;
  }

  /** The day of creation: the first random number of a game, so that its sales need only that. */
  private chooseCreated(random: Random, game: number) {
    const created = random.below(DAYS - 2 * PREPARATION);
    return game === 1 ? 0 : game === 2 ? DAYS - LAUNCHED_BEFORE - PREPARATION : created;
  }

  /** A time between the game's publication and the last day. */
  private timeOfSale(random: Random, game: number) {
    const first = this.chooseCreated(this.random('game', game), game) + PREPARATION;
    return this.timeAt(first + random.below(DAYS - first), random.below(86_400));
  }

  private priceOf(game: number) {
    return this.game(game).min_price as number;
  }

  private otherUser(random: Random, than: number) {
    const user = 1 + random.below(this.options.users);
    return user === than ? 1 + (user % this.options.users) : user;
  }

  private platforms(random: Random, id: number) {
    const traits = ['p_windows', 'p_linux', 'p_osx', 'p_android', 'can_be_bought', 'has_demo'];
    return traits.filter(
      (trait, place) => (place === 0 && id === 1) || random.chance(trait === 'p_android' ? 0.1 : 0.5),
    );
  }

  /** Several different games, in any order. */
  private walk(first: number, count: number, asMet = false) {
    const { games } = this.options;
    const met = Array.from({ length: count }, (_, n) => 1 + ((first - 1 + n * this.step) % games));
    return asMet ? met : met.sort((a, b) => a - b);
  }
}
