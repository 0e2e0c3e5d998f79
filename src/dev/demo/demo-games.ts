import { DEMO_COVERS } from '../../dashboard/layout/assets';
import type { JsonObject } from '../../operator/import/record-types/fields';
import { type Calendar, STORE_DAYS } from './demo-calendar';
import { type DemoOptions, USERS_PER_DEVELOPER } from './demo-options';
import { LAUNCHED_BEFORE, PRICES } from './demo-prices';
import { chooseOther, type Random, seedRandom } from './demo-random';
import { ADJECTIVES, capital, GENRES, NOUNS, withArticle } from './demo-words';

/** The only bundle starts with the second game, because guides use the first one. */
export const GAMES_OF_BUNDLE = 8;
/** A game is published at most this many days after it was created, and sold only after that. */
export const PREPARATION_DAYS = 200;

/** The games of a demo store, and their bundle. */
export class DemoGames {
  private readonly developers: number;
  private readonly step: number;

  constructor(
    private readonly options: DemoOptions,
    private readonly timeAt: Calendar,
  ) {
    this.developers = Math.ceil(options.users / USERS_PER_DEVELOPER);
    // Steps without a common factor with the number of games visit each game once.
    this.step = [7919, 104_729, 13, 11, 7, 5, 3, 2, 1].find((prime) => options.games % prime !== 0) ?? 1;
  }

  game(id: number): JsonObject {
    const random = this.random(id);
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
        published_at: this.timeAt(created + (id === 2 ? PREPARATION_DAYS : random.below(PREPARATION_DAYS))),
      }),
      created_at: this.timeAt(created),
      min_price: this.choosePrice(random, id),
      ...((random.chance(0.9) || this.options.url !== undefined) && { cover_url: this.chooseCover(id) }),
      views_count: random.below(50_000),
      downloads_count: random.below(9000),
      ...((id === 2 || random.chance(0.1)) && {
        admins: [chooseOther(random, this.options.users, this.chooseOwner(id))],
      }),
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
      created_at: this.timeAt(STORE_DAYS - LAUNCHED_BEFORE + 1),
      updated_at: this.timeAt(STORE_DAYS - LAUNCHED_BEFORE + 1),
    };
  }

  price(game: number) {
    return this.game(game).min_price as number;
  }

  /** A time between the game's publication and the last day. */
  timeOfSale(random: Random, game: number) {
    const first = this.chooseCreated(this.random(game), game) + PREPARATION_DAYS;
    return this.timeAt(first + random.below(STORE_DAYS - first), random.below(86_400));
  }

  /** Several different games, in any order. */
  walk(first: number, count: number) {
    const { games } = this.options;
    return Array.from({ length: count }, (_, n) => 1 + ((first - 1 + n * this.step) % games));
  }

  private random(game: number): Random {
    return seedRandom(this.options.seed, 'game', game);
  }

  private chooseOwner(game: number) {
    const developer = game <= 5 ? 0 : (game - 1) % this.developers;
    return 1 + developer * USERS_PER_DEVELOPER;
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
    const created = random.below(STORE_DAYS - 2 * PREPARATION_DAYS);
    return game === 1 ? 0 : game === 2 ? STORE_DAYS - LAUNCHED_BEFORE - PREPARATION_DAYS : created;
  }

  private platforms(random: Random, id: number) {
    const traits = ['p_windows', 'p_linux', 'p_osx', 'p_android', 'can_be_bought', 'has_demo'];
    return traits.filter(
      (trait, place) => (place === 0 && id === 1) || random.chance(trait === 'p_android' ? 0.1 : 0.5),
    );
  }
}
