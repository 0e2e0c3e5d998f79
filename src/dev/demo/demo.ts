import { type DemoOptions, SMALL_STORE } from './demo-options';
import { DAYS, type Random, seedRandom, timeAt } from './demo-random';
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
/** The ID of the only bundle and of its purchase. The bundle starts with the second game, because guides use the first one. */
const GAMES_OF_BUNDLE = 8;
const PURCHASE_OF_BUNDLE = 4;
const CHANNELS = ['windows', 'linux', 'osx', 'android'];

/** Generates the records of a store: the same ones for the same options, if these include `now` or no recent sales. */
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

  constructor(readonly options: DemoOptions) {
    if (options.users < 3 || options.games < 1)
      throw new RangeError('a store has at least 3 users and 1 game');
    if (options.collection_size > options.games)
      throw new RangeError('a collection cannot have more games than there are');
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
      created_at: random.time(),
    };
  }

  game(id: number): JsonObject {
    const random = this.random('game', id);
    const adjective = ADJECTIVES[id % ADJECTIVES.length]!;
    const noun = NOUNS[id % NOUNS.length]!;
    const sequel = Math.floor(id / (ADJECTIVES.length * NOUNS.length));
    const title = `${adjective} ${noun}${sequel ? ` ${sequel + 1}` : ''}`;
    const created = random.days();
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
      ...(published && { published_at: timeAt(created + random.below(200)) }),
      created_at: timeAt(created),
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
      created_at: timeAt(0),
      updated_at: timeAt(0),
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
    const sale_rate = random.chance(0.2) ? random.of([10, 25, 50, 75]) : 0;
    return {
      type: 'purchase',
      id,
      game_id: bundle ? this.walk(game, 2 + random.below(4)) : game,
      ...(!bundle && random.chance(0.02) && { purchase_type: 'sub_product' }),
      email:
        how < 0.9
          ? random.chance(0.1)
            ? createEmail(buyer).toUpperCase()
            : createEmail(buyer)
          : guestEmail(id),
      ...(how < 0.6 && { user_id: buyer }),
      created_at: random.time(),
      source: random.of(['card', 'card', 'wallet', 'bank_transfer']),
      currency,
      amount: random.of([0, 199, 299, 499, 499, 999, 1499, 2000]),
      ...(sale_rate && { sale_rate }),
      ...(random.chance(0.03) && { quantity: 2 + random.below(4) }),
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
      created_at: this.random('purchase', PURCHASE_OF_BUNDLE).time(),
      source: 'card',
      currency: 'USD',
      amount: 1000,
    };
  }

  downloadKey(id: number): JsonObject {
    const random = this.random('download_key', id);
    const { purchases, games, users } = this.options;
    const key = random.text(24);
    // Most come with a purchase; the others were given away.
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
        ...(id > 2 && random.chance(0.03) && { revoked_at: timeAt(DAYS + random.below(100)) }),
      };
    }
    return {
      type: 'download_key',
      id,
      key,
      game_id: id === 3 ? Math.min(3, games) : 1 + random.below(games),
      ...(random.chance(0.3) && { email: guestEmail(id) }),
      ...((id === 3 || random.chance(0.6)) && { user_id: id === 3 ? 2 : 1 + random.below(users) }),
      created_at: random.time(),
      downloads: random.below(12),
      ...((id === 5 || random.chance(0.05)) && id !== 3 && { revoked_at: timeAt(DAYS + random.below(100)) }),
    };
  }

  collection(id: number): JsonObject {
    const random = this.random('collection', id);
    const user_id = id <= 3 ? id : 1 + random.below(this.options.users);
    const created = random.days();
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
      created_at: timeAt(created),
      updated_at: timeAt(created + random.below(300)),
    };
  }

  build(id: number): JsonObject {
    const random = this.random('build', id);
    const round = Math.floor((id - 1) / this.options.games);
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
      created_at: timeAt(Math.min(DAYS, 200 + round * 30 + random.below(30))),
    };
  }

  *credentials(): Generator<JsonObject> {
    const { api_key: key, seed } = this.options;
    if (key !== undefined) yield { type: 'api_key', key, user_id: 1, label: 'Demo', created_at: timeAt(0) };
    yield {
      type: 'api_key',
      key: `demo-${seed}-${this.random('api_key', 0).text(24)}`,
      user_id: 1,
      label: 'Lost laptop',
      created_at: timeAt(0),
      revoked_at: timeAt(10),
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

  /** The guides sell the first game, and need players who don't own it. */
  private choosePrice(random: Random, game: number) {
    const price = random.chance(0.3) ? 0 : random.of([199, 299, 499, 999, 1499, 1999]);
    return game === 1 ? 499 : price;
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
