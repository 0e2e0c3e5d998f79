import type { Pool, PoolClient, QueryConfig } from 'pg';
import { concernsOneStatement } from './sqlstates';
import { type Asked, Together } from './together';

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

  constructor(private readonly pool: Pool) {}

  rows<Row>(query: QueryConfig, alone: boolean): Promise<Row[]> {
    return new Promise((resolve, reject) => {
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

  private send(asked: Asked[]): void {
    this.pool.connect((error, client, release) => {
      if (error) {
        for (const { reject } of asked) reject(error);
        return;
      }
      let lost = false;
      // The statements are told as well; without a listener the event would end the process.
      const lose = () => void (lost = true);
      client!.once('error', lose);
      const together = new Together(asked, (behind) => this.send(behind));
      together.callback = (problem) => {
        client!.removeListener('error', lose);
        release(lost || (problem !== undefined && !concernsOneStatement(problem)));
      };
      client!.query(together as never);
    });
  }
}

/** Whatever `ask` asks of the client goes out in one write to its socket. */
export function inOneWrite<Result>(client: PoolClient, ask: () => Result): Result {
  const { stream } = (client as unknown as { connection: { stream: NodeJS.WritableStream & Corkable } })
    .connection;
  stream.cork();
  const result = ask();
  stream.uncork();
  return result;
}

interface Corkable {
  cork(): void;
  uncork(): void;
}
