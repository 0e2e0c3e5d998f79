import type { Pool, QueryConfig } from 'pg';
import { concernsOneStatement, isLockTimeout } from '../sqlstates';
import { type RowLock, statement } from '../statement';
import { inTransaction, queryOf } from './pipeline';

interface QueuedWrite {
  lock: number;
  queries: QueryConfig[];
  /** It was in a transaction that failed. */
  isAlone: boolean;
  resolve: (rows: unknown[][]) => void;
  reject: (error: unknown) => void;
}

const MAX_WRITES = 32;

// One is sent while another waits for the disk. With more concurrent transactions, each would contain fewer writes.
const MAX_TRANSACTIONS = 2;

// In milliseconds. A slower transaction waits for a lock, and others need not wait for it.
const SLOW = 100;

/** Short, because a transaction with several locks keeps the others while it waits for one. */
export const SHORT_LOCK_TIMEOUT = statement(
  'short_lock_timeout',
  `SELECT set_config('lock_timeout', '50ms', true) AS lock_timeout`,
);

/**
 * Queues writes here, so that those with the same lock don't wait in the database. Waiting writes share a transaction,
 * which takes their locks in order; each write still succeeds or fails separately:
 * docs/contributing/decisions/collection-locking.md.
 */
export class WriteQueue {
  /** First in, first out. */
  private waiting: QueuedWrite[] = [];
  /** Locks of running transactions. */
  private readonly busy = new Set<number>();
  private transactions = 0;

  constructor(
    private readonly pool: Pool,
    private readonly prepared: boolean,
  ) {}

  /** The rows of each query, after the commit. */
  run({ id: lock }: RowLock, queries: QueryConfig[]): Promise<unknown[][]> {
    return new Promise((resolve, reject) => {
      this.waiting.push({ lock, queries, isAlone: false, resolve, reject });
      this.startTransactions();
    });
  }

  private startTransactions(): void {
    while (this.transactions < MAX_TRANSACTIONS) {
      const writes = this.takeNext();
      if (writes.length === 0) return;
      void this.runTogether(writes);
    }
  }

  /** Takes the first writes whose locks aren't busy, in the order of the locks. */
  private takeNext(): QueuedWrite[] {
    const next: QueuedWrite[] = [];
    const left: QueuedWrite[] = [];
    for (const write of this.waiting) {
      const fits = next.length === 0 || (next.length < MAX_WRITES && !next[0]!.isAlone && !write.isAlone);
      (fits && !this.busy.has(write.lock) ? next : left).push(write);
    }
    this.waiting = left;
    return next.sort((one, other) => one.lock - other.lock);
  }

  private async runTogether(writes: QueuedWrite[]): Promise<void> {
    this.transactions++;
    for (const { lock } of writes) this.busy.add(lock);
    let counted = true;
    const uncount = () => {
      if (counted) this.transactions--;
      counted = false;
      this.startTransactions();
    };
    const slow = setTimeout(uncount, SLOW);
    await this.commit(writes);
    clearTimeout(slow);
    for (const { lock } of writes) this.busy.delete(lock);
    uncount();
  }

  private async commit(writes: QueuedWrite[]): Promise<void> {
    const haveOneLock = writes[0]!.lock === writes.at(-1)!.lock;
    try {
      const before = haveOneLock ? [] : [queryOf(SHORT_LOCK_TIMEOUT, [], this.prepared)];
      const queries = writes.flatMap((write) => write.queries);
      const rows = await inTransaction(this.pool, [...before, ...queries]);
      let next = before.length;
      for (const { queries, resolve } of writes) resolve(rows.slice(next, (next += queries.length)));
    } catch (error) {
      if (!concernsOneStatement(error) || (haveOneLock && isLockTimeout(error)))
        this.rejectAll(writes, error);
      else if (writes.length === 1) writes[0]!.reject(error);
      else this.waiting.unshift(...writes.map((write) => ({ ...write, isAlone: true })));
    }
  }

  /** Includes those that still wait: they would only wait longer for the same error. */
  private rejectAll(writes: QueuedWrite[], error: unknown): void {
    const behind = this.waiting.filter(({ lock }) => writes.some((write) => write.lock === lock));
    this.waiting = this.waiting.filter((write) => !behind.includes(write));
    for (const { reject } of [...writes, ...behind]) reject(error);
  }
}
