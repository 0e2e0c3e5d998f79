import { lowerAscii } from '../../platform/formats/lower-ascii';
import { modernTimestamp } from '../../platform/formats/timestamps';
import type { SaleRequest } from './sale.dto';
import type { SaleRow } from './sale-statements';

export const gamesOf = ({ game_id }: SaleRequest) => [game_id].flat().toSorted((a, b) => a - b);

export const purchaseTypeOf = ({ purchase_type, game_id }: SaleRequest) =>
  purchase_type ?? (Array.isArray(game_id) ? 'bundle' : 'game');

export const withKey = ({ with_key, donation }: SaleRequest) => with_key ?? !donation;

/**
 * The parameters in which a request differs from a recorded sale. Parameters without a fixed default differ only if
 * they are sent.
 */
export function differences(made: SaleRow, request: SaleRequest): string[] {
  const { email = made.email, created_at } = request;
  const same: Partial<Record<keyof SaleRequest, boolean>> = {
    game_id: String(made.all_game_ids) === String(gamesOf(request)),
    user_id: made.user_id === (request.user_id ?? null),
    email: lowerAscii(made.email) === lowerAscii(email),
    currency: made.currency === request.currency,
    amount: made.amount === request.amount,
    source: made.source === request.source,
    sale_rate: made.sale_rate === request.sale_rate,
    quantity: made.quantity === request.quantity,
    donation: made.donation === request.donation,
    purchase_type: made.purchase_type === purchaseTypeOf(request),
    created_at: created_at === undefined || isSameSecond(made.created_at, created_at),
    with_key: made.keys.length > 0 === withKey(request),
  };
  return Object.keys(same).filter((name) => !same[name as keyof SaleRequest]);
}

// The database keeps microseconds, rounded.
const isSameSecond = (stored: string, given: string) =>
  Math.abs(Date.parse(modernTimestamp(stored)) - Date.parse(given)) < 1000;
