import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import type { Measured } from './report';
import type { Usage } from './probe';
import type { Workload } from './requests';
import type { LoadGenerator, MeasuredServer } from './servers';

export const CONNECTIONS = 32;

export interface Stretch {
  seconds: number;
  /** Where among the requests it begins, as a share of them. */
  from: number;
  /**
   * Seconds of load before it that are not measured: while the others took their turns the server was idle, and V8 gave
   * memory back that the first requests have it take again. They come on the same connections: opened all at once, of a long
   * list each would wait for all the others, which is no part of how long a response takes in the middle of the load.
   */
  leadIn: number;
}

export async function measure(
  server: MeasuredServer,
  load: LoadGenerator,
  { file, endpoint }: Workload,
  stretch: Stretch,
): Promise<Measured> {
  let asked: Promise<Usage> | undefined;
  const order = { port: server.port, file, connections: CONNECTIONS, ...stretch };
  const outcome = await load.drive(order, () => (asked = server.usage()));
  const [before, after] = [(await asked)!, await server.usage()];
  if (Object.keys(outcome.failures).length > 0)
    console.error(`${server.name} failed at ${endpoint}: ${JSON.stringify(outcome.failures)}`);
  return {
    // None at all is told apart from a division by nothing.
    rate: Math.max(1, outcome.responses) / outcome.seconds,
    p50: outcome.p50,
    p99: outcome.p99,
    cpu: (after.cpu - before.cpu) / Math.max(1, outcome.responses),
    rss: after.rss,
    failures: outcome.failures,
  };
}

/**
 * Lets several be measured in turns, each at the same place among the requests in the same round. Whoever goes first meets
 * another machine than whoever goes last, so the order changes.
 */
export async function inTurns<One>(
  all: One[],
  rounds: number,
  turn: (one: One, from: number) => Promise<void>,
): Promise<void> {
  for (let round = 0; round < rounds; round++) {
    const order = round % 2 === 0 ? all : all.toReversed();
    for (const one of order) await turn(one, (round + 1) / (rounds + 1));
  }
}

const LOOK = 25;
// Of a look in which nothing is answered; a collection of garbage or a timer may fall into it.
const IDLE = 0.2;

/**
 * Waits until a server has ended what it was still doing when its time was over, and ends what it was still asking the
 * database: one that needs seconds for a response would go on with it while the next one is measured.
 */
export async function settle(server: MeasuredServer, client: Client): Promise<void> {
  for (let quiet = 0; quiet < 2; quiet++) {
    const { cpu } = await server.usage();
    await sleep(LOOK);
    const busy = (await server.usage()).cpu - cpu > IDLE * LOOK * 1000;
    const { rowCount: asking } = await client.query(
      `SELECT pg_cancel_backend(pid) FROM pg_stat_activity
       WHERE pid <> pg_backend_pid() AND datname = current_database() AND backend_type = 'client backend' AND state = 'active'
         AND query_start < clock_timestamp() - interval '20 ms'`,
    );
    if (busy || asking) quiet = -1;
  }
}
