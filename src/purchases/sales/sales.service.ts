import { Injectable } from '@nestjs/common';
import type { DatabaseError } from 'pg';
import type { EntityManager } from 'typeorm';
import type { Actor } from '../../operator/tokens/actor';
import { OperatorEvents } from '../../operator/tokens/operator-events';
import { IdempotencyService, type RetryKey } from '../../idempotency/idempotency.service';
import { Database } from '../../platform/database/database';
import { invalidBundle } from '../../bundles/records/errors';
import { invalidGame } from '../../games/errors';
import { badRequest, apiError, serviceUnavailable } from '../../platform/errors/api-error';
import { ERASED_ADDRESS } from '../../auth/accounts/erased-users';
import { newDownloadKey } from '../keys/new-download-key';
import { Events } from '../../events/events';
import { KeyPages } from '../../platform/server/key-pages';
import {
  type RefundResponse,
  refundResponse,
  type RefundRequest,
  type SaleResponse,
  saleResponse,
  type SaleRequest,
} from './sale.dto';
import { lowerAscii } from '../../platform/formats/lower-ascii';
import { modernTimestamp } from '../../platform/formats/timestamps';
import {
  type ListedPurchase,
  type NewSale,
  NEWEST_PURCHASES,
  PURCHASE_GAMES,
  REFUND_PURCHASE,
  refund,
  SALE,
  type Sale,
  type SaleOutcome,
  type Unsold,
  SOLD_BUNDLE,
  type SaleRow,
  SELL,
  sell,
} from './sale-statements';

const ATTEMPTS = 5;
/** Fields of a response that are not stored for retries. */
const BUYER_FIELDS = ['email', 'reference'];
const CHANGED = 'changed';
// A concurrent write used this reference or ID, deleted a game or the earlier purchase, changed the bundle, or
// created a webhook. Or there was a deadlock.
const CONCURRENT_CHANGE = new RegExp(`^(23503|23505|40P01|${CHANGED})$`);

const EARNINGS_LIMITS = new Set(['game_earnings_amount_max', 'sales_periods_amount_check']);

interface PurchaseSearch {
  game_id?: number;
  buyer?: { email?: string; user_id?: number };
  count: number;
}

@Injectable()
export class SalesService {
  /** Whether the last sale found webhooks. If the next one finds others, it is tried again. */
  private hasWebhooks = false;

  constructor(
    private readonly database: Database,
    private readonly idempotency: IdempotencyService,
    private readonly operatorEvents: OperatorEvents,
    private readonly events: Events,
    private readonly pages: KeyPages,
  ) {}

  /** Sells once per reference. A repeated request gets its response again, even if it would be rejected now. */
  async sell(request: SaleRequest, by: Actor, retry?: RetryKey): Promise<SaleResponse> {
    const stored = await this.idempotency.storedResult<SaleResponse>(retry, request);
    return stored ? this.withBuyer(stored) : retryOnConflict(() => this.trySelling(request, by, retry));
  }

  /** Refunds a purchase, once. */
  async refund(request: RefundRequest, by: Actor, retry?: RetryKey): Promise<RefundResponse> {
    const stored = await this.idempotency.storedResult<RefundResponse>(retry, request);
    if (stored) return this.withBuyer(stored);
    return (await retryOnConflict(() => this.tryRefunding(request, by, retry))).response;
  }

  /** Whether this request refunded it; false: it was refunded before, and nothing is changed. */
  async refundNow(request: RefundRequest, by: Actor): Promise<boolean> {
    return (await retryOnConflict(() => this.tryRefunding({ ...request, once: true }, by))).isNew;
  }

  find(purchase_id: number): Promise<SaleRow | undefined> {
    return this.database.row(SALE, { purchase_id });
  }

  /** The newest purchases of the store, of a game, or of a buyer. */
  async newest({ game_id, buyer, count }: PurchaseSearch): Promise<ListedPurchase[]> {
    if (!buyer)
      return game_id === undefined
        ? this.database.rows(NEWEST_PURCHASES.all, { count })
        : this.database.rows(NEWEST_PURCHASES.ofGame, { count, game_id });
    const { email = null, user_id = null } = buyer;
    return game_id === undefined
      ? this.database.rows(NEWEST_PURCHASES.ofBuyer, { count, email, user_id })
      : this.database.rows(NEWEST_PURCHASES.ofBuyerAndGame, { count, game_id, email, user_id });
  }

  private async trySelling(request: SaleRequest, by: Actor, retry?: RetryKey): Promise<SaleResponse> {
    const { bundle_id = null } = request;
    if (lowerAscii(request.email ?? '') === ERASED_ADDRESS)
      throw badRequest('email is reserved for erased buyers');
    const bundle = bundle_id === null ? undefined : await this.database.row(SOLD_BUNDLE, { bundle_id });
    const game_ids = bundle?.game_ids ?? sortedGameIds(request);
    const keys = withKey(request) ? game_ids.map(newDownloadKey) : [];
    const sale: Sale = {
      ...request,
      email: request.email ?? null,
      user_id: request.user_id ?? null,
      reference: request.reference ?? null,
      bundle_id,
      bundle_version: bundle?.version ?? null,
      game_ids,
      keys,
      purchase_type: choosePurchaseType(request),
      created_at: request.created_at ?? null,
      announces: this.hasWebhooks,
    };
    let outcome: SaleOutcome | undefined;
    const store = async (manager?: EntityManager) => {
      [outcome] = (await this.database.execute(sell(sale), manager))(SELL);
      this.hasWebhooks = outcome!.has_webhooks;
      if (outcome!.purchase_id !== null) return saleResponse(soldRow(sale, outcome!), this.pages);
      const { sold } = outcome!;
      const row = sold === null ? undefined : await this.database.row(SALE, { purchase_id: sold }, manager);
      if (row) return this.repeatedResponse(row, request);
      throw rejection(outcome!, request, bundle !== undefined);
    };
    const { response, isRepeated } = await this.idempotency.run(retry, request, store, BUYER_FIELDS);
    if (isRepeated) return this.withBuyer(response);
    if (outcome!.purchase_id !== null) {
      this.operatorEvents.sold(by, request.currency, { games: game_ids.length, keys: keys.length });
      if (outcome!.has_webhooks) this.events.announced();
    }
    return response;
  }

  private repeatedResponse(row: SaleRow, request: SaleRequest): SaleResponse {
    const different = differences(row, request);
    if (different.length === 0)
      return saleResponse(withKey(request) ? row : { ...row, keys: [] }, this.pages);
    throw apiError(
      409,
      `reference \`${request.reference}\` is another sale`,
      ...different.map((name) => `${name} differs`),
    );
  }

  private async tryRefunding(
    { once = false, ...request }: RefundRequest & { once?: boolean },
    by: Actor,
    retry?: RetryKey,
  ): Promise<{ response: RefundResponse; isNew: boolean }> {
    const { purchase_id } = request;
    const [found] = await this.database.rows(PURCHASE_GAMES, { purchase_id });
    if (!found) throw apiError(404, 'invalid purchase');
    const { game_ids, has_webhooks } = found;
    let currency: string | undefined;
    const store = async (manager?: EntityManager) => {
      const getRows = await this.database.execute(
        refund({ ...request, once }, game_ids, has_webhooks, by.user_id ?? null),
        manager,
      );
      const [row] = getRows(SALE);
      if (!row) throw apiError(404, 'invalid purchase');
      if (getRows(REFUND_PURCHASE).length > 0) ({ currency } = row);
      return refundResponse(row);
    };
    const { response, isRepeated } = await this.idempotency.run(retry, request, store, BUYER_FIELDS);
    if (isRepeated) return { response: await this.withBuyer(response), isNew: false };
    if (currency !== undefined) {
      this.operatorEvents.refunded(by, currency, { games: game_ids.length });
      if (has_webhooks) this.events.announced();
    }
    return { response, isNew: currency !== undefined };
  }

  /** Completes a stored response with the fields of the buyer, which an erasure deletes only from the purchase. */
  private async withBuyer<Result extends RefundResponse>(response: Result): Promise<Result> {
    const [row] = await this.database.rows(SALE, { purchase_id: response.purchase.id });
    const buyer = row ? refundResponse(row).purchase : { email: ERASED_ADDRESS, reference: null };
    return { ...response, purchase: { ...buyer, ...response.purchase } };
  }
}

/** The purchase that was sold. */
const soldRow = (sale: Sale, { purchase_id, created_at, email, keys }: NewSale): SaleRow => ({
  ...sale,
  id: purchase_id,
  created_at,
  email,
  keys,
  sold_with_keys: keys.length > 0,
  status: 'complete',
  game_ids: sale.purchase_type === 'bundle' ? sale.game_ids : null,
  all_game_ids: sale.game_ids,
});

/** Why nothing was sold. The next attempt takes a concurrent change into account. */
function rejection(outcome: Unsold, { bundle_id }: SaleRequest, bundleExists: boolean): Error {
  const changed = Object.assign(serviceUnavailable(), { code: CHANGED });
  if (outcome.sold !== null) return changed;
  if (bundle_id !== undefined && !bundleExists) return invalidBundle();
  if (!outcome.games_exist) return invalidGame();
  if (!outcome.user_exists) return invalidUser();
  if (outcome.of_another) return badRequest('email is verified by another user');
  if (outcome.email === null) return badRequest('email is required, as the user has verified no address');
  return changed;
}

const invalidUser = () => apiError(404, 'invalid user');

/** Retries after a concurrent change; the next attempt takes it into account. */
async function retryOnConflict<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let attempts = 1; ; attempts++)
    try {
      return await attempt();
    } catch (error) {
      const { code, constraint } = error as Partial<DatabaseError>;
      if (constraint !== undefined && EARNINGS_LIMITS.has(constraint))
        throw badRequest('amount would bring the earnings of a game above 9007199254740991');
      if (attempts === ATTEMPTS || !CONCURRENT_CHANGE.test(code ?? '')) throw error;
    }
}

const sortedGameIds = ({ game_id = [] }: SaleRequest) => [game_id].flat().toSorted((a, b) => a - b);

const choosePurchaseType = ({ purchase_type, game_id, bundle_id }: SaleRequest) =>
  purchase_type ?? (bundle_id !== undefined || Array.isArray(game_id) ? 'bundle' : 'game');

const withKey = ({ with_key, donation, bundle_id }: SaleRequest) =>
  with_key ?? (!donation && bundle_id === undefined);

/**
 * The parameters in which a request differs from a recorded sale. Parameters without a fixed default differ only if
 * they are sent.
 */
function differences(stored: SaleRow, request: SaleRequest): string[] {
  const { email = stored.email, created_at } = request;
  // The buyer of an erased sale is unknown, so it can't be compared.
  const isErased = stored.email === ERASED_ADDRESS;
  const same: Partial<Record<keyof SaleRequest, boolean>> = {
    // The bundle may have had other games.
    game_id: request.game_id === undefined || String(stored.all_game_ids) === String(sortedGameIds(request)),
    bundle_id: stored.bundle_id === (request.bundle_id ?? null),
    user_id: isErased || stored.user_id === (request.user_id ?? null),
    email: isErased || lowerAscii(stored.email) === lowerAscii(email),
    currency: stored.currency === request.currency,
    amount: stored.amount === request.amount,
    source: stored.source === request.source,
    sale_rate: stored.sale_rate === request.sale_rate,
    quantity: stored.quantity === request.quantity,
    donation: stored.donation === request.donation,
    purchase_type: stored.purchase_type === choosePurchaseType(request),
    created_at: created_at === undefined || isSameSecond(stored.created_at, created_at),
    // An import may have added keys to a sale without any.
    with_key: withKey(request) ? stored.keys.length > 0 : !stored.sold_with_keys,
  };
  return Object.keys(same).filter((name) => !same[name as keyof SaleRequest]);
}

// The database rounds times to microseconds.
const isSameSecond = (stored: string, requested: string) =>
  Math.abs(Date.parse(modernTimestamp(stored)) - Date.parse(requested)) < 1000;
