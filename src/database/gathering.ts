import type { Pool, QueryConfig } from 'pg';
import { connectionOptions } from './data-source';
import { Lane } from './lane';
import { concernsOneStatement, NotConnected } from './sqlstates';
import type { Statement } from './statement';
import { sendTogether } from './together';

interface Asked {
  query: QueryConfig;
  resolve: (rows: never[]) => void;
  reject: (error: unknown) => void;
}

// What waits for a slow statement in front of it; more than this many gain little more.
const MOST_TOGETHER = 8;

/**
 * Statements that are asked for in one turn of the event loop leave together, up to eight on one connection. A write to a
 * socket, and waking the server's process at its other end, cost more than a small lookup itself: see
 * docs/decisions/statements-leave-together.md. A statement that fails fails alone; one that is not answered in time ends
 * its connection, and with it those that left with it.
 */
export class Gathering {
  private asked: Asked[] = [];
  // The other half is for those that are answered in no time, and need not wait for all of these.
  private readonly longOnes: Lane;

  constructor(private readonly pool: Pool) {
    this.longOnes = new Lane(Math.ceil(pool.options.max / 2), connectionOptions.connectionTimeoutMillis);
  }

  /** How many wait for others of their kind, and not for a connection of the pool's yet. */
  get waiting(): number {
    return this.longOnes.length;
  }

  rows<Row>(query: QueryConfig, { alone, long }: Statement): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      if (long)
        return this.longOnes.enter(
          (leave) => this.send([{ query, resolve, reject }], leave),
          () => reject(new NotConnected()),
        );
      if (alone) return this.send([{ query, resolve, reject }]);
      if (this.asked.length === 0) setImmediate(() => this.leave());
      this.asked.push({ query, resolve, reject });
    });
  }

  private leave(): void {
    const { asked } = this;
    this.asked = [];
    for (let i = 0; i < asked.length; i += MOST_TOGETHER) this.send(asked.slice(i, i + MOST_TOGETHER));
  }

  private send(asked: Asked[], ended?: () => void): void {
    const queries = asked.map(({ query }) => query);
    let answered = 0;
    sendTogether(this.pool, queries, {
      answered: (rows) => asked[answered++]!.resolve(rows as never[]),
      done: (error) => {
        ended?.();
        const [failed, ...behind] = asked.slice(answered);
        if (!failed) return;
        failed.reject(error);
        if (behind.length === 0) return;
        // They were not run, and the connection may be fine.
        if (concernsOneStatement(error)) this.send(behind);
        else for (const { reject } of behind) reject(error);
      },
    });
  }
}
