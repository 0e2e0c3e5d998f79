import type { Pool, QueryConfig } from 'pg';
import { concernsOneStatement } from '../sqlstates';
import { queryOf, type Statement, statement } from '../statement';
import { inTransaction } from './together';

/** What a write locks, by a number that is its place in the order in which all lock; and whose write it is. */
export interface Lock {
  id: number;
  user_id: number;
}

interface Change {
  user_id: number;
  queries: QueryConfig[];
  resolve: (rows: unknown[][]) => void;
  reject: (error: unknown) => void;
}

/** The changes that lock one thing. */
interface Queue {
  lock: number;
  waiting: Change[];
}

/** What one transaction carries of a queue. */
interface Load {
  queue: Queue;
  changes: Change[];
}

// A transaction that waits for the disk holds up its queues for as long, whether it carries one change or many.
const MOST_TOGETHER = 32;

// Enough for one to be sent while another waits for the disk. More would each carry less.
const MOST_UNDER_WAY = 2;

// A transaction that takes longer waits for somebody, and others need not wait for it.
const PATIENCE = 100;

// Several locks are asked for in one transaction only where nobody holds them for long.
const NOT_FOR_LONG = statement(
  'queues_not_for_long',
  `SELECT set_config('lock_timeout', '50ms', true) AS lock_timeout`,
);

/**
 * Changes that would wait for one another, as those that lock one row, wait here and not in the database: while one is
 * under way the next gather. Where transactions are under way already, changes of different things gather as well. What has
 * gathered leaves as one, with one wait for the disk, and takes its locks in their order. Each change still happens as a
 * whole and after those of the same thing before it. See docs/decisions/collection-locking.md.
 */
export class Queues {
  // No Map and no Set: docs/decisions/fast-requests.md.
  private readonly queues: Record<number, Queue> = {};
  /** Those with changes waiting and none under way; who came first goes first. */
  private readonly ready: Queue[] = [];
  private underWay = 0;

  /** `mark` tells in the same transaction whose changes it carries. */
  constructor(
    private readonly pool: Pool,
    private readonly prepared: boolean,
    private readonly mark: Statement | undefined,
  ) {}

  /** The rows of each query, once all is committed. */
  run({ id, user_id }: Lock, queries: QueryConfig[]): Promise<unknown[][]> {
    return new Promise((resolve, reject) => this.join(id, { user_id, queries, resolve, reject }));
  }

  private join(lock: number, change: Change): void {
    const queue = this.queues[lock];
    if (queue) {
      queue.waiting.push(change);
      return;
    }
    const opened = { lock, waiting: [change] };
    this.queues[lock] = opened;
    this.ready.push(opened);
    this.leave();
  }

  private leave(): void {
    while (this.underWay < MOST_UNDER_WAY && this.ready.length > 0) void this.carry(this.gather());
  }

  private async carry(loads: Load[]): Promise<void> {
    this.underWay++;
    let counted = true;
    const discount = () => {
      if (counted) this.underWay--;
      counted = false;
    };
    const patience = setTimeout(() => {
      discount();
      this.leave();
    }, PATIENCE);
    await this.serve(loads);
    clearTimeout(patience);
    discount();
    this.leave();
  }

  private gather(): Load[] {
    const loads: Load[] = [];
    let room = MOST_TOGETHER;
    while (room > 0 && this.ready.length > 0) {
      const queue = this.ready.shift()!;
      const changes = queue.waiting.splice(0, room);
      loads.push({ queue, changes });
      room -= changes.length;
    }
    return loads.sort((one, other) => one.queue.lock - other.queue.lock);
  }

  private async serve(loads: Load[]): Promise<void> {
    await this.commit(loads);
    for (const { queue } of loads)
      if (queue.waiting.length > 0) this.ready.push(queue);
      else delete this.queues[queue.lock];
  }

  private async commit(loads: Load[]): Promise<void> {
    const changes = loads.flatMap((load) => load.changes);
    try {
      const before = loads.length > 1 ? [queryOf(NOT_FOR_LONG, [], this.prepared)] : [];
      const queries = changes.flatMap((change) => change.queries);
      const rows = await inTransaction(this.pool, [...before, ...queries, ...this.marks(changes)]);
      let next = before.length;
      for (const { queries, resolve } of changes) resolve(rows.slice(next, (next += queries.length)));
    } catch (error) {
      if (!concernsOneStatement(error)) this.lose(loads, error);
      else if (loads.length > 1) await Promise.all(loads.map((load) => this.commit([load])));
      else await this.apart(loads[0]!, error);
    }
  }

  private async apart({ queue, changes }: Load, error: unknown): Promise<void> {
    if (changes.length === 1) changes[0]!.reject(error);
    else for (const change of changes) await this.commit([{ queue, changes: [change] }]);
  }

  /** Whoever waits behind a connection that was lost would only wait longer for the same answer. */
  private lose(loads: Load[], error: unknown): void {
    for (const { queue, changes } of loads)
      for (const { reject } of [...changes, ...queue.waiting.splice(0)]) reject(error);
  }

  /** Behind all other locks: who writes in two transactions at once is no reason for them to wait in a circle. */
  private marks(changes: Change[]): QueryConfig[] {
    if (!this.mark) return [];
    const users = new Set(changes.map(({ user_id }) => user_id));
    return [queryOf(this.mark, [[...users]], this.prepared)];
  }
}
