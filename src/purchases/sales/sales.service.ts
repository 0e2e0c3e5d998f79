import { Injectable } from '@nestjs/common';
import type { DatabaseError } from 'pg';
import type { EntityManager } from 'typeorm';
import type { Actor } from '../../operator/tokens/actor';
import { OperatorEvents } from '../../operator/tokens/operator-events';
import { IdempotencyService, type RetryKey } from '../../idempotency/idempotency.service';
import { Database } from '../../platform/database/database';
import { bind } from '../../platform/database/statement';
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
  NEWEST_PURCHASES,
  SALE_INPUTS,
  PURCHASE_GAMES,
  REFUND_PURCHASE,
  refund,
  SALE,
  type Sale,
  type SaleInputs,
  SOLD_BUNDLE,
  type SaleRow,
  sell,
} from './sale-statements';

const ATTEMPTS = 5;
/** Fields of a response that are not stored for retries. */
const BUYER_FIELDS = ['email', 'reference'];
const BUNDLE_CHANGED = 'bundle changed';
// A concurrent write used this reference or ID, or deleted a game, or there was a deadlock.
const CONCURRENT_CHANGE = new RegExp(`^(23503|23505|40P01|${BUNDLE_CHANGED})$`);

interface PurchaseSearch {
  game_id?: number;
  buyer?: { email?: string; user_id?: number };
  count: number;
}

@Injectable()
export class SalesService {
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

  /** Whether this request refunded it; false: it was refunded before. */
  async refundNow(request: RefundRequest, by: Actor): Promise<boolean> {
    return (await retryOnConflict(() => this.tryRefunding(request, by))).isNew;
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
    const { user_id = null, reference = null } = request;
    if (lowerAscii(request.email ?? '') === ERASED_ADDRESS)
      throw badRequest('email is reserved for erased buyers');
    const { bundle_id = null } = request;
    const bundle = bundle_id === null ? undefined : await this.database.row(SOLD_BUNDLE, { bundle_id });
    const game_ids = bundle?.game_ids ?? sortedGameIds(request);
    const [order] = await this.database.rows(SALE_INPUTS, {
      game_ids,
      user_id,
      email: request.email ?? null,
      reference,
    });
    const { sold, purchase_id, has_webhooks } = order!;
    if (sold !== null) return this.repeatedSale(sold, request, retry);
    if (bundle_id !== null && !bundle) throw invalidBundle();
    const email = requireEmail(order!, request);

    const id = purchase_id!;
    const keys = withKey(request) ? game_ids.map(newDownloadKey) : [];
    const sale: Sale = {
      ...request,
      id,
      email,
      user_id,
      reference,
      bundle_id,
      bundle_version: bundle?.version ?? null,
      game_ids,
      keys,
      has_webhooks,
      purchase_type: choosePurchaseType(request),
      created_at: request.created_at ?? null,
    };
    const store = async (manager?: EntityManager) => {
      const getRows = await this.database.execute([...sell(sale), bind(SALE, { purchase_id: id })], manager);
      const [row] = getRows(SALE);
      // The buyer was erased meanwhile, or the bundle changed, which the next attempt takes into account.
      if (!row) throw bundle ? Object.assign(serviceUnavailable(), { code: BUNDLE_CHANGED }) : invalidUser();
      return saleResponse(row, this.pages);
    };
    const { response, isRepeated } = await this.idempotency.run(retry, request, store, BUYER_FIELDS);
    if (isRepeated) return this.withBuyer(response);
    this.operatorEvents.sold(by, request.currency, { games: game_ids.length, keys: keys.length });
    if (has_webhooks) this.events.announced();
    return response;
  }

  private async repeatedSale(id: number, request: SaleRequest, retry?: RetryKey): Promise<SaleResponse> {
    const find = async (manager?: EntityManager) =>
      this.responseOfRepeatedSale(await this.database.row(SALE, { purchase_id: id }, manager), request);
    const { response, isRepeated } = await this.idempotency.run(retry, request, find, BUYER_FIELDS);
    return isRepeated ? this.withBuyer(response) : response;
  }

  private responseOfRepeatedSale(row: SaleRow | undefined, request: SaleRequest): SaleResponse {
    // The purchase was deleted meanwhile.
    if (!row) throw serviceUnavailable();
    const different = differences(row, request);
    if (different.length === 0) return saleResponse(row, this.pages);
    throw apiError(
      409,
      `reference \`${request.reference}\` is another sale`,
      ...different.map((name) => `${name} differs`),
    );
  }

  private async tryRefunding(
    request: RefundRequest,
    by: Actor,
    retry?: RetryKey,
  ): Promise<{ response: RefundResponse; isNew: boolean }> {
    const { purchase_id, keep_keys } = request;
    const [found] = await this.database.rows(PURCHASE_GAMES, { purchase_id });
    if (!found) throw apiError(404, 'invalid purchase');
    const { game_ids, has_webhooks } = found;
    let currency: string | undefined;
    const store = async (manager?: EntityManager) => {
      const getRows = await this.database.execute(
        refund(purchase_id, game_ids, keep_keys, has_webhooks, by.user_id ?? null),
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

/** The buyer's email address. Throws if the games or the user don't exist, or if the address can't be the user's. */
function requireEmail(order: SaleInputs, { email }: SaleRequest): string {
  if (!order.games_exist) throw invalidGame();
  if (!order.user_exists) throw invalidUser();
  if (order.of_another) throw badRequest('email is verified by another user');
  const found = email ?? order.verified;
  if (found === null) throw badRequest('email is required, as the user has verified no address');
  return found;
}

const invalidUser = () => apiError(404, 'invalid user');

/** Retries after a concurrent change; the next attempt takes it into account. */
async function retryOnConflict<Result>(attempt: () => Promise<Result>): Promise<Result> {
  for (let attempts = 1; ; attempts++)
    try {
      return await attempt();
    } catch (error) {
      const { code, constraint } = error as Partial<DatabaseError>;
      if (constraint === 'game_earnings_amount_max')
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
    with_key: stored.keys.length > 0 === withKey(request),
  };
  return Object.keys(same).filter((name) => !same[name as keyof SaleRequest]);
}

// The database rounds times to microseconds.
const isSameSecond = (stored: string, given: string) =>
  Math.abs(Date.parse(modernTimestamp(stored)) - Date.parse(given)) < 1000;
