import { Injectable } from '@nestjs/common';
import { Audit, type AuditEvent } from '../auth/audit';
import { IdempotencyService, type RetryKey } from '../collections/idempotency.service';
import { Database } from '../database/database';
import { bind, write } from '../database/statement';
import { invalidGame } from '../games/refusals';
import { badRequest, failure } from '../http/failure';
import { type Counter, Measurements } from '../http/measurements';
import { newDownloadKey } from '../purchases/new-download-key';
import {
  type RefundAnswer,
  refundAnswer,
  type RefundRequest,
  type SaleAnswer,
  saleAnswer,
  type SaleRequest,
} from './sale.dto';
import { ORDER, PURCHASE_GAMES, refund, SALE, type Sale, type SaleRow, sell } from './sale-statements';
import { differences, gamesOf, purchaseTypeOf, withKey } from './same-sale';

/** Who sells, and for which request. */
export interface Seller {
  /** The name of the operator's token; absent: a command. */
  token?: string;
  request_id?: string;
  /** An Idempotency-Key. */
  retry?: RetryKey;
}

const ATTEMPTS = 5;
// What was found is not so any more: somebody else sold under this reference, imported this id, or deleted a game. Or a deadlock.
const MEANWHILE = /^(23503|23505|40P01)$/;

interface DatabaseProblem {
  code?: string;
  constraint?: string;
}

@Injectable()
export class SalesService {
  private readonly counters = new Map<string, Counter>();

  constructor(
    private readonly database: Database,
    private readonly idempotency: IdempotencyService,
    private readonly audit: Audit,
    private readonly measurements: Measurements,
  ) {}

  /** Sells once for each reference. */
  sell(request: SaleRequest, seller: Seller): Promise<SaleAnswer> {
    return again(() => this.trySelling(request, seller));
  }

  /** Takes a purchase back, once. */
  refund(request: RefundRequest, seller: Seller): Promise<RefundAnswer> {
    return again(() => this.tryRefunding(request, seller));
  }

  private async trySelling(request: SaleRequest, { retry, ...by }: Seller): Promise<SaleAnswer> {
    const { user_id = null, reference = null } = request;
    const game_ids = gamesOf(request);
    const [order] = await this.database.rows(ORDER, [game_ids, user_id, request.email ?? null, reference]);
    const { sold, purchase_id, games_exist, user_exists, verified, of_another, editors } = order!;
    if (sold !== null) return this.soldBefore(sold, request);
    if (!games_exist) throw invalidGame();
    if (!user_exists) throw failure(404, 'invalid user');
    if (of_another) throw badRequest('email is verified by another user');
    const email = request.email ?? verified;
    if (email === null) throw badRequest('email is required, as the user has verified no address');

    const id = purchase_id!;
    const keys = withKey(request) ? game_ids.map(newDownloadKey) : [];
    const event: AuditEvent = {
      event: 'sale',
      ...by,
      purchase_id: id,
      games: game_ids.length,
      keys: keys.length,
    };
    const sale: Sale = {
      ...request,
      id,
      email,
      user_id,
      reference,
      game_ids,
      keys,
      purchase_type: purchaseTypeOf(request),
      created_at: request.created_at ?? null,
    };
    let done = false;
    const selling = write([...sell(sale), this.audit.storing(event), bind(SALE, [id])], (rows) => {
      done = true;
      return saleAnswer(rows.at(-1)![0] as SaleRow);
    });
    const answer = await this.idempotency.once(null, retry, request, selling, {
      of: 'games',
      id: game_ids[0]!,
      user_ids: user_id === null ? editors : [...editors, user_id],
    });
    if (done) this.happened(event, request.currency);
    return answer;
  }

  private async soldBefore(id: number, request: SaleRequest): Promise<SaleAnswer> {
    const [row] = await this.database.rows(SALE, [id]);
    if (!row) throw new Error('a purchase was deleted meanwhile');
    const different = differences(row, request);
    if (different.length === 0) return saleAnswer(row);
    throw failure(
      409,
      `reference \`${request.reference}\` is another sale`,
      ...different.map((name) => `${name} differs`),
    );
  }

  private async tryRefunding(
    { purchase_id, keep_keys }: RefundRequest,
    { retry, request_id, ...by }: Seller,
  ): Promise<RefundAnswer> {
    const [found] = await this.database.rows(PURCHASE_GAMES, [purchase_id]);
    if (!found) throw failure(404, 'invalid purchase');
    const { game_ids, editors } = found;
    const details = { ...by, purchase_id, games: game_ids.length, kept_keys: keep_keys };
    let currency: string | undefined;
    const refunding = write(
      [...refund(purchase_id, game_ids, { keep_keys, request_id: request_id ?? null, details })],
      (rows) => {
        const row = rows.at(-1)![0] as SaleRow | undefined;
        if (!row) throw failure(404, 'invalid purchase');
        if (rows.at(-2)!.length > 0) ({ currency } = row);
        return refundAnswer(row);
      },
    );
    const answer = await this.idempotency.once(null, retry, { purchase_id, keep_keys }, refunding, {
      of: 'games',
      id: game_ids[0] ?? 0,
      user_ids: editors,
    });
    if (currency !== undefined) this.happened({ event: 'refund', request_id, ...details }, currency);
    return answer;
  }

  private happened(event: AuditEvent, currency: string): void {
    this.audit.note(event);
    const name = event.event === 'sale' ? 'gamewharf_sales_total' : 'gamewharf_refunds_total';
    const key = `${name} ${currency}`;
    let counter = this.counters.get(key);
    if (!counter) {
      counter = this.measurements.counter(name, HELP[name], { currency });
      this.counters.set(key, counter);
    }
    counter.value++;
  }
}

const HELP = {
  gamewharf_sales_total: 'Purchases that were sold',
  gamewharf_refunds_total: 'Purchases that were taken back',
};

/** Tries again where what was found is not so any more; the next attempt finds out why. */
async function again<Answer>(attempt: () => Promise<Answer>): Promise<Answer> {
  for (let attempts = 1; ; attempts++)
    try {
      return await attempt();
    } catch (error) {
      const { code, constraint } = error as DatabaseProblem;
      if (constraint === 'game_earnings_amount_max')
        throw badRequest('amount would bring the earnings of a game above 9007199254740991');
      if (attempts === ATTEMPTS || !MEANWHILE.test(code ?? '')) throw error;
    }
}
