import type { Clock } from '../../config/clock';
import type { Pool, QueryConfig } from 'pg';
import { connectionOptions } from '../data-source';
import { ConcurrencyLimit } from '../../limits/concurrency-limit';
import { concernsOneStatement } from '../sqlstates';
import type { Statement } from '../statement';
import { noneFree, sendPipeline } from './pipeline';

interface Request {
  query: QueryConfig;
  resolve: (rows: never[]) => void;
  reject: (error: unknown) => void;
}

/** Statements that are sent together. */
interface Batch {
  opened: number;
  requests: Request[];
}

// A statement waits for slow statements ahead of it; larger batches gain little.
const MAX_STATEMENTS = 8;

// In milliseconds. A batch times out as a whole, when its oldest statement has waited too long.
const MAX_AGE = 100;

// Shares of the pool's connections. More concurrent backends would only compete for the server's CPUs.
const SMALL_SHARE = 0.4;
const LONG_SHARE = 0.5;

/**
 * Sends the small reads of one tick of the event loop as a batch on one connection. A failed statement affects no
 * other; a timeout ends the connection and fails the rest of the batch:
 * docs/contributing/decisions/statement-batches.md.
 */
export class StatementBatcher {
  /** The batch that accepts more statements; undefined: the last one was sent. */
  private open: Batch | undefined;
  private readonly small: ConcurrencyLimit;
  private readonly long: ConcurrencyLimit;

  constructor(
    private readonly pool: Pool,
    private readonly clock: Clock,
  ) {
    const limit = (share: number) =>
      new ConcurrencyLimit({ accepted: Infinity, each: Math.ceil(pool.options.max * share) });
    this.small = limit(SMALL_SHARE);
    this.long = limit(LONG_SHARE);
  }

  /** Batches and long statements that wait for their limit, before they wait for a connection of the pool. */
  get waiting(): number {
    return [this.small, this.long].reduce((sum, { accepted, running }) => sum + accepted - running, 0);
  }

  rows<Row>(query: QueryConfig, { group }: Statement<Row>): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      const request = { query, resolve, reject };
      if (group === 'small') this.join(request);
      else if (group === 'long') this.sendWith(this.long, [request]);
      else this.send([request]);
    });
  }

  private join(request: Request): void {
    const now = this.clock.monotonic();
    const { open } = this;
    if (open && open.requests.length < MAX_STATEMENTS && now - open.opened < MAX_AGE) {
      open.requests.push(request);
      return;
    }
    const batch = { opened: now, requests: [request] };
    this.open = batch;
    const close = () => {
      if (this.open === batch) this.open = undefined;
    };
    setImmediate(() => this.sendWith(this.small, batch.requests, close));
  }

  private sendWith(limit: ConcurrencyLimit, requests: Request[], close?: () => void): void {
    const since = this.clock.monotonic();
    const leave = () => limit.leave(limit.anyone);
    const reject = () => {
      for (const request of requests) request.reject(noneFree());
    };
    const begin = () => {
      close?.();
      const waited = this.clock.monotonic() - since;
      if (waited < connectionOptions.connectionTimeoutMillis) return this.send(requests, leave, waited);
      reject();
      leave();
    };
    limit.enter({ client: limit.anyone, begin, reject });
  }

  private send(requests: Request[], release?: () => void, waited?: number): void {
    const queries = requests.map(({ query }) => query);
    let finished = 0;
    const listener = {
      onRows: (rows: unknown[]) => requests[finished++]!.resolve(rows as never[]),
      onEnd: (error: unknown) => {
        release?.();
        const [failed, ...skipped] = requests.slice(finished);
        if (!failed) return;
        failed.reject(error);
        if (skipped.length === 0) return;
        // The server did not run them, and the connection may be fine.
        if (concernsOneStatement(error)) this.send(skipped);
        else for (const { reject } of skipped) reject(error);
      },
    };
    sendPipeline(this.pool, queries, listener, waited);
  }
}
