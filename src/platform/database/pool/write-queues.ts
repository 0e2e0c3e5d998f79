import type { Pool, QueryConfig } from 'pg';
import { concernsOneStatement } from '../sqlstates';
import { type RowLock, statement } from '../statement';
import { inTransaction, queryOf } from './pipeline';

interface QueuedWrite {
  queries: QueryConfig[];
  resolve: (rows: unknown[][]) => void;
  reject: (error: unknown) => void;
}

/** The writes that take one lock. */
interface Queue {
  lock: number;
  waiting: QueuedWrite[];
}

/** The writes of one queue in a shared transaction. */
interface Share {
  queue: Queue;
  writes: QueuedWrite[];
}

const MAX_WRITES = 32;

// One is sent while another waits for the disk. With more concurrent transactions, each would contain fewer writes.
const MAX_TRANSACTIONS = 2;

// In milliseconds. A slower transaction waits for a lock, and others need not wait for it.
const SLOW = 100;

// Short, because a transaction with several locks keeps the others while it waits for one.
const SHORT_LOCK_TIMEOUT = statement(
  'short_lock_timeout',
  `SELECT set_config('lock_timeout', '50ms', true) AS lock_timeout`,
);

/**
 * A queue per lock, so that its writes wait here and not in the database. Waiting writes share a transaction, which
 * takes their locks in order; each write still succeeds or fails separately:
 * docs/contributing/decisions/collection-locking.md.
 */
export class WriteQueues {
  // No Map and no Set: docs/contributing/decisions/fast-requests.md.
  private readonly queues: Record<number, Queue> = {};
  /** Queues that wait without a running transaction, first in, first out. */
  private readonly ready: Queue[] = [];
  private transactions = 0;

  constructor(
    private readonly pool: Pool,
    private readonly prepared: boolean,
  ) {}

  /** The rows of each query, after the commit. */
  run({ id }: RowLock, queries: QueryConfig[]): Promise<unknown[][]> {
    return new Promise((resolve, reject) => this.enqueue(id, { queries, resolve, reject }));
  }

  private enqueue(lock: number, write: QueuedWrite): void {
    const queue = this.queues[lock];
    if (queue) {
      queue.waiting.push(write);
      return;
    }
    const opened = { lock, waiting: [write] };
    this.queues[lock] = opened;
    this.ready.push(opened);
    this.startTransactions();
  }

  private startTransactions(): void {
    while (this.transactions < MAX_TRANSACTIONS && this.ready.length > 0) void this.runNext();
  }

  private async runNext(): Promise<void> {
    this.transactions++;
    let counted = true;
    const uncount = () => {
      if (counted) this.transactions--;
      counted = false;
    };
    const slow = setTimeout(() => {
      uncount();
      this.startTransactions();
    }, SLOW);
    await this.serve(this.takeShares());
    clearTimeout(slow);
    uncount();
    this.startTransactions();
  }

  private takeShares(): Share[] {
    const shares: Share[] = [];
    let room = MAX_WRITES;
    while (room > 0 && this.ready.length > 0) {
      const queue = this.ready.shift()!;
      const writes = queue.waiting.splice(0, room);
      shares.push({ queue, writes });
      room -= writes.length;
    }
    return shares.sort((one, other) => one.queue.lock - other.queue.lock);
  }

  private async serve(shares: Share[]): Promise<void> {
    await this.commit(shares);
    for (const { queue } of shares)
      if (queue.waiting.length > 0) this.ready.push(queue);
      else delete this.queues[queue.lock];
  }

  private async commit(shares: Share[]): Promise<void> {
    const writes = shares.flatMap((share) => share.writes);
    try {
      const before = shares.length > 1 ? [queryOf(SHORT_LOCK_TIMEOUT, [], this.prepared)] : [];
      const queries = writes.flatMap((write) => write.queries);
      const rows = await inTransaction(this.pool, [...before, ...queries]);
      let next = before.length;
      for (const { queries, resolve } of writes) resolve(rows.slice(next, (next += queries.length)));
    } catch (error) {
      if (!concernsOneStatement(error)) this.rejectAll(shares, error);
      else if (shares.length > 1) await Promise.all(shares.map((share) => this.commit([share])));
      else await this.commitEach(shares[0]!, error);
    }
  }

  private async commitEach({ queue, writes }: Share, error: unknown): Promise<void> {
    if (writes.length === 1) writes[0]!.reject(error);
    else for (const write of writes) await this.commit([{ queue, writes: [write] }]);
  }

  /** Includes those that still wait: they would only wait longer for the same error. */
  private rejectAll(shares: Share[], error: unknown): void {
    for (const { queue, writes } of shares)
      for (const { reject } of [...writes, ...queue.waiting.splice(0)]) reject(error);
  }
}
