import type { Pool } from 'pg';
import { concernsOneStatement } from './sqlstates';
import { type Flight, inTransaction } from './transactions';

// A transaction that waits for the disk holds up its queue for as long, whether it carries one change or many.
const MOST_TOGETHER = 32;

/**
 * Transactions that would wait for one another, as those that lock one row, wait here and not in the database: while one is
 * under way the next gather, and leave as one, with one wait for the disk. Each still happens as a whole and after those
 * before it. Where one of them fails, each is run by itself. See docs/decisions/collection-locking.md.
 */
export class Queues {
  private readonly waiting = new Map<string, Flight[]>();

  constructor(private readonly pool: Pool) {}

  join(name: string, flight: Flight): void {
    const queue = this.waiting.get(name);
    if (queue) {
      queue.push(flight);
      return;
    }
    this.waiting.set(name, []);
    void this.serve(name, [flight]);
  }

  private async serve(name: string, first: Flight[]): Promise<void> {
    const queue = this.waiting.get(name)!;
    for (let flights = first; flights.length > 0; flights = queue.splice(0, MOST_TOGETHER))
      // Whoever waits behind a connection that was lost would only wait longer for the same answer.
      await this.run(flights).catch((error: unknown) => {
        for (const flight of [...flights, ...queue.splice(0)]) flight.fail(error);
      });
    this.waiting.delete(name);
  }

  private async run(flights: Flight[]): Promise<void> {
    const queries = flights.map((flight) => flight.close());
    try {
      const rows = await inTransaction(this.pool, queries.flat());
      let next = 0;
      flights.forEach((flight, i) => flight.answer(rows.slice(next, (next += queries[i]!.length))));
    } catch (error) {
      if (!concernsOneStatement(error)) throw error;
      if (flights.length === 1) flights[0]!.fail(error);
      else for (const flight of flights) await this.run([flight]);
    }
  }
}
