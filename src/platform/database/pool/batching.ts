import type { Pool, PoolClient } from 'pg';
import type { Clock } from '../../config/clock';
import { ConcurrencyLimit, type LimitedClient } from '../../limits/concurrency-limit';
import { connectionOptions } from '../data-source';
import { concernsOneStatement, NoneFree } from '../sqlstates';
import { type BoundStatement, bindConcurrencyKey } from '../statement';
import { sendPipeline, sendTogether } from './pipeline';

interface Request {
  bound: BoundStatement;
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

// A batch times out as a whole, when its oldest statement has waited too long.
const MAX_AGE_MS = 100;

// Shares of the pool's connections. More concurrent reads would only compete for the server's CPUs; writes also wait for
// its disk. No kind uses all connections, unless the pool has only one.
const SMALL_SHARE = 0.4;
const LONG_SHARE = 0.5;
const WRITE_SHARE = 0.75;
// Maximum number of concurrent long reads of one client, unless no other client has any.
const LONG_READS_EACH = 3;
// More writes would only wait for the lock of the row, on connections that other writes need.
const WRITES_PER_ROW = 2;

/**
 * Sends statements on connections of the pool. The small reads of one tick of the event loop form a batch on one
 * connection; a failed statement affects no other, and a timeout ends the connection and fails the rest of the batch:
 * docs/contributing/decisions/performance.md.
 */
export class StatementBatcher {
  /** The batch that accepts more statements; undefined: the last one was sent. */
  private open: Batch | undefined;
  private readonly small: ConcurrencyLimit;
  private readonly long: ConcurrencyLimit;
  private readonly writes: ConcurrencyLimit;
  /** The clients and rows by concurrency key, as long as they have statements. */
  private readonly clients = new Map<string, { client: LimitedClient; statements: number }>();

  constructor(
    private readonly pool: Pool,
    private readonly clock: Clock,
    private readonly isPrepared: boolean,
  ) {
    const { max } = pool.options;
    const limit = (share: number, each = Infinity, soleClientLimit?: number) =>
      new ConcurrencyLimit(
        {
          accepted: Infinity,
          running: Math.max(1, Math.min(Math.ceil(max * share), max - 1)),
          each,
          soleClientLimit,
        },
        clock,
      );
    this.small = limit(SMALL_SHARE);
    this.long = limit(LONG_SHARE, LONG_READS_EACH, Infinity);
    this.writes = limit(WRITE_SHARE, WRITES_PER_ROW);
  }

  /** Work that waits for its limit, before it waits for a connection of the pool. */
  get waiting(): number {
    return [this.small, this.long, this.writes].reduce(
      (sum, { accepted, running }) => sum + accepted - running,
      0,
    );
  }

  async rows<Row>(bound: BoundStatement<Row>): Promise<Row[]> {
    const { group } = bound.statement;
    if (group === 'small') return new Promise((resolve, reject) => this.join({ bound, resolve, reject }));
    if (group === 'own connection') return (await this.transaction([bound]))[0] as Row[];
    const [rows] = await this.runWithKey(this.long, bindConcurrencyKey(bound), (waited_ms) =>
      this.sendAll([bound], waited_ms),
    );
    return rows as Row[];
  }

  /**
   * Sends the statements as one transaction; returns the rows of each after the commit. The first one with
   * a concurrency key determines the key of the transaction.
   */
  transaction(statements: BoundStatement[]): Promise<unknown[][]> {
    const concurrencyKey = statements.map(bindConcurrencyKey).find((one) => one !== undefined);
    return this.runWithKey(this.writes, concurrencyKey, (waited_ms) => this.sendAll(statements, waited_ms));
  }

  /** Runs a transaction on a connection that `work` takes from the pool. `concurrencyKey`: as in `bindConcurrencyKey`. */
  inTransaction<Result>(concurrencyKey: string | undefined, work: () => Promise<Result>): Promise<Result> {
    return this.runWithKey(this.writes, concurrencyKey, (waited_ms) => {
      requireTime(waited_ms);
      return work();
    });
  }

  private join(request: Request): void {
    const now = this.clock.monotonic();
    const { open } = this;
    if (open && open.requests.length < MAX_STATEMENTS && now - open.opened < MAX_AGE_MS) {
      open.requests.push(request);
      return;
    }
    const batch: Batch = { opened: now, requests: [request] };
    this.open = batch;
    setImmediate(() => {
      this.runWithin(this.small, this.small.anyone, (waited_ms) => {
        if (this.open === batch) this.open = undefined;
        return this.connected((client) => this.sendEach(client, batch.requests), waited_ms);
      }).catch((error: unknown) => {
        for (const { reject } of batch.requests) reject(error);
      });
    });
  }

  /** Sends the statements after a failed one again, because the server skipped them. */
  private sendEach(client: PoolClient, requests: Request[]): Promise<void> {
    return new Promise((resolve, reject) => {
      let finished = 0;
      const statements = requests.map(({ bound }) => bound);
      sendPipeline(client, statements, this.isPrepared, {
        onRows: (rows) => requests[finished++]!.resolve(rows as never[]),
        onEnd: (error) => {
          if (!error) return resolve();
          if (!concernsOneStatement(error)) return reject(error);
          const [failed, ...skipped] = requests.slice(finished);
          failed?.reject(error);
          resolve(skipped.length > 0 ? this.sendEach(client, skipped) : undefined);
        },
      });
    });
  }

  private async runWithKey<Result>(
    limit: ConcurrencyLimit,
    concurrencyKey: string | undefined,
    work: (waited_ms: number) => Promise<Result>,
  ): Promise<Result> {
    if (concurrencyKey === undefined) return this.runWithin(limit, { queues: new Map() }, work);
    const queued = this.clients.get(concurrencyKey) ?? { client: { queues: new Map() }, statements: 0 };
    this.clients.set(concurrencyKey, queued);
    queued.statements++;
    try {
      return await this.runWithin(limit, queued.client, work);
    } finally {
      if (--queued.statements === 0) this.clients.delete(concurrencyKey);
    }
  }

  /** Waits for the limit, at most as long as for a connection, and tells `work` how long that took. */
  private async runWithin<Result>(
    limit: ConcurrencyLimit,
    client: LimitedClient,
    work: (waited_ms: number) => Promise<Result>,
  ): Promise<Result> {
    const since = this.clock.monotonic();
    await new Promise<void>((resolve, reject) => {
      let [isWaiting, timer] = [true, undefined as NodeJS.Timeout | undefined];
      const begin = () => {
        isWaiting = false;
        clearTimeout(timer);
        resolve();
      };
      const waiter = { client, begin, reject: () => reject(new NoneFree()) };
      limit.enter(waiter);
      // Ends transactions that wait for each other, such as one within another one. A signal for `run` would be created
      // for each statement, even if it doesn't wait.
      if (isWaiting)
        timer = setTimeout(() => limit.cancel(waiter), connectionOptions.connectionTimeoutMillis);
    });
    try {
      return await work(this.clock.monotonic() - since);
    } finally {
      limit.leave(client);
    }
  }

  private sendAll(statements: BoundStatement[], waited_ms: number): Promise<unknown[][]> {
    return this.connected((client) => sendTogether(client, statements, this.isPrepared), waited_ms);
  }

  private async connected<Result>(
    work: (client: PoolClient) => Promise<Result>,
    waited_ms: number,
  ): Promise<Result> {
    const client = await acquireConnection(this.pool, waited_ms);
    let failure: unknown;
    try {
      return await work(client);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      // A lost connection does not return to the pool.
      client.release(failure !== undefined && !concernsOneStatement(failure));
    }
  }
}

/**
 * `waited_ms`: the wait before the call, because the pool counts only its own waiting time. Both waits together take
 * at most as long as a wait for a connection alone.
 */
async function acquireConnection(pool: Pool, waited_ms: number): Promise<PoolClient> {
  if (waited_ms === 0) return pool.connect();
  const left_ms = requireTime(waited_ms);
  return new Promise((resolve, reject) => {
    let gaveUp = false;
    const timer = setTimeout(() => {
      gaveUp = true;
      reject(new NoneFree());
    }, left_ms);
    pool.connect((error, client, release) => {
      clearTimeout(timer);
      if (error) reject(error);
      else if (gaveUp) release();
      else resolve(client!);
    });
  });
}

/** The milliseconds that are left for a connection. */
function requireTime(waited_ms: number): number {
  const left_ms = connectionOptions.connectionTimeoutMillis - waited_ms;
  if (left_ms <= 0) throw new NoneFree();
  return left_ms;
}
