import type { JsonObject } from '../../operator/import/record-types/fields';
import { type Calendar, STORE_DAYS } from './demo-calendar';
import { type DemoGames, GAMES_OF_BUNDLE } from './demo-games';
import type { DemoOptions } from './demo-options';
import { fromCents, LAUNCHED_BEFORE } from './demo-prices';
import { type Random, seedRandom } from './demo-random';
import { createEmail, guestEmail } from './demo-words';

const PURCHASE_OF_BUNDLE = 4;

/** The purchases and the download keys of a demo store. */
export class DemoSales {
  constructor(
    private readonly options: DemoOptions,
    private readonly timeAt: Calendar,
    private readonly games: DemoGames,
  ) {}

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
    const game_id = bundle ? this.games.walk(game, 2 + random.below(4)).sort((a, b) => a - b) : game;
    const isSubProduct = !bundle && random.chance(0.02);
    const email =
      how < 0.9
        ? random.chance(0.1)
          ? createEmail(buyer).toUpperCase()
          : createEmail(buyer)
        : guestEmail(id);
    const created_at = this.games.timeOfSale(random, bundle ? Math.max(...(game_id as number[])) : game);
    const source = random.of(['card', 'card', 'wallet', 'bank_transfer']);
    // Some buyers pay more than the price.
    const more = random.of([0, 0, 0, 0, 0, 0, 200, 500]);
    const tip = id <= 2 ? 0 : more;
    const quantity = random.chance(0.03) ? 2 + random.below(4) : 1;
    const price = [game_id].flat().reduce((sum, one) => sum + this.games.price(one), 0);
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
        STORE_DAYS -
          LAUNCHED_BEFORE +
          2 +
          this.random('purchase', PURCHASE_OF_BUNDLE).below(LAUNCHED_BEFORE - 2),
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
        ...(id > 2 && random.chance(0.03) && { revoked_at: this.timeAt(STORE_DAYS) }),
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
      created_at: this.games.timeOfSale(random, game_id),
      downloads: random.below(12),
      ...((id === 5 || random.chance(0.05)) && id !== 3 && { revoked_at: this.timeAt(STORE_DAYS) }),
    };
  }

  private random(type: 'purchase' | 'download_key', id: number): Random {
    return seedRandom(this.options.seed, type, id);
  }
}
