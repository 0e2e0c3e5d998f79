import type { Pool, QueryConfig } from 'pg';
import { connectionOptions } from '../data-source';
import { Lane } from './lane';
import { concernsOneStatement, NotConnected } from '../sqlstates';
import type { Statement } from '../statement';
import { sendTogether } from './together';

interface Asked {
  query: QueryConfig;
  resolve: (rows: never[]) => void;
  reject: (error: unknown) => void;
}

// What waits for a slow statement in front of it; more than this many gain little more.
const MOST_TOGETHER = 8;

// Milliseconds. Those that leave together are refused together, when the first of them has waited for too long.
const GATHERS_FOR = 100;

// Shares of the pool. More at once would keep the server's processors from one another; those that wait gather meanwhile.
const SHARE_OF_SMALL_ONES = 0.4;
const SHARE_OF_LONG_ONES = 0.5;

/** What leaves together. */
interface Group {
  since: number;
  asked: Asked[];
}

/**
 * Statements that are asked for in one turn of the event loop leave together, up to eight on one connection, and while many
 * are under way the next gather. A write to a socket, and waking the server's process at its other end, cost more than a
 * small lookup itself: see docs/decisions/statements-leave-together.md. A statement that fails fails alone; one that is not
 * answered in time ends its connection, and with it those that left with it.
 */
export class Gathering {
  /** Who else asks joins it; undefined: it has left. */
  private open: Group | undefined;
  private readonly smallOnes: Lane;
  private readonly longOnes: Lane;

  constructor(private readonly pool: Pool) {
    const lane = (share: number) =>
      new Lane(Math.ceil(pool.options.max * share), connectionOptions.connectionTimeoutMillis);
    this.smallOnes = lane(SHARE_OF_SMALL_ONES);
    this.longOnes = lane(SHARE_OF_LONG_ONES);
  }

  /** How many wait for others of their kind, and not for a connection of the pool's yet. */
  get waiting(): number {
    return this.smallOnes.length + this.longOnes.length;
  }

  rows<Row>(query: QueryConfig, { alone, long }: Statement<Row>): Promise<Row[]> {
    return new Promise((resolve, reject) => {
      const asked = { query, resolve, reject };
      if (long) this.enter(this.longOnes, [asked]);
      else if (alone) this.send([asked]);
      else this.gather(asked);
    });
  }

  private gather(asked: Asked): void {
    const now = performance.now();
    const { open } = this;
    if (open && open.asked.length < MOST_TOGETHER && now - open.since < GATHERS_FOR) {
      open.asked.push(asked);
      return;
    }
    const group = { since: now, asked: [asked] };
    this.open = group;
    const close = () => {
      if (this.open === group) this.open = undefined;
    };
    setImmediate(() => this.enter(this.smallOnes, group.asked, close));
  }

  private enter(lane: Lane, asked: Asked[], close?: () => void): void {
    lane.enter(
      (leave) => {
        close?.();
        this.send(asked, leave);
      },
      () => {
        close?.();
        for (const { reject } of asked) reject(new NotConnected());
      },
    );
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
