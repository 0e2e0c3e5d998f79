import type { DemoOptions } from './demo-options';
import { EXAMPLE_TIME } from './demo-calendar';
import { fromCents, LAUNCHED_BEFORE, PRICES } from './demo-prices';
import { type Random, seedRandom } from './demo-random';
import { createEmail, guestEmail } from './demo-words';
import type { JsonObject } from '../../operator/import/record-types/fields';
import { DAY_MS } from '../../platform/formats/durations';

const HOUR_MS = 60 * 60 * 1000;
const RECENT_DAYS = 548;

const toIsoString = (ms: number) => new Date(Math.floor(ms / 1000) * 1000).toISOString().replace('.000', '');

/** Most buyers pay in dollars. Some pay more than the price, and some buy at a discount. */
function convertPrice(random: Random, cents: number): [currency: string, amount: number] {
  const paid = random.chance(0.12) ? cents + 501 : random.chance(0.2) ? Math.round(cents / 2) : cents;
  const share = random.next();
  const currency = share < 0.78 ? 'USD' : share < 0.91 ? 'EUR' : share < 0.97 ? 'GBP' : 'JPY';
  return [currency, fromCents(paid, currency)];
}

/** A sale of the first developer: sales grow, weekends are busier, and the second game launched 150 days ago. */
export function* recentSale(options: DemoOptions, n: number): Generator<JsonObject> {
  const random = seedRandom(options.seed, 'recent sale', n);
  const { games, users, purchases, download_keys, now = EXAMPLE_TIME } = options;
  const isLaunch = games > 1 && random.chance(0.18);
  let age = isLaunch
    ? LAUNCHED_BEFORE + 3 * Math.log(1 - random.next())
    : RECENT_DAYS * (1 - Math.sqrt(random.next()));
  const isSecond = isLaunch || (games > 1 && age < LAUNCHED_BEFORE && random.chance(0.3));
  const weekday = new Date(now - age * DAY_MS).getUTCDay();
  if (weekday >= 1 && weekday <= 4 && random.chance(0.35)) age = Math.max(0, age - (6 - weekday));
  const created_at = toIsoString(Math.min(now - age * DAY_MS, now - HOUR_MS * random.next()));
  // The first three users are in the examples of the documentation, which show all their purchases.
  const buyer = users > 3 && random.chance(0.7) ? 4 + random.below(users - 3) : undefined;
  const [currency, amount] = convertPrice(random, PRICES[isSecond ? 2 : 1]);
  const [id, game_id] = [purchases + n, isSecond ? 2 : 1];
  const email = buyer ? createEmail(buyer) : guestEmail(id);
  const isRefunded = random.chance(0.04);
  yield {
    type: 'purchase',
    id,
    game_id,
    email,
    ...(buyer && { user_id: buyer }),
    created_at,
    source: random.of(['store', 'store', 'card', 'wallet']),
    currency,
    amount,
    ...(isRefunded && { status: 'refunded' }),
  };
  yield {
    type: 'download_key',
    id: download_keys + n,
    key: random.text(24),
    game_id,
    purchase_id: id,
    email,
    ...(buyer && random.chance(0.86) && { user_id: buyer }),
    created_at,
    downloads: random.below(4),
    ...(isRefunded && { revoked_at: created_at }),
  };
}
