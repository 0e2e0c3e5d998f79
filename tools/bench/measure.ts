import { setTimeout as sleep } from 'node:timers/promises';
import type { Client } from 'pg';
import type { Measured } from './report';
import type { Usage } from './probe';
import type { Workload } from './requests';
import type { LoadGenerator, MeasuredServer } from './servers';

export const CONNECTIONS = 32;

export interface Stretch {
  seconds: number;
  /** The position among the requests at which it starts, as a share of their number. */
  from: number;
  /**
   * Seconds of unmeasured load before it. While the others were measured, the server was idle, and V8 released memory
   * that the first requests allocate again. It uses the same connections: if all were opened at once, each request of a
   * long list would wait for all the others, which doesn't happen under steady load.
   */
  leadIn: number;
  /** Requests per second, instead of as many as possible. */
  rate?: number;
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
    // A server without responses counts as one, so that no ratio divides by zero.
    rate: Math.max(1, outcome.responses) / outcome.seconds,
    p50: outcome.p50,
    p99: outcome.p99,
    cpu: (after.cpu - before.cpu) / Math.max(1, outcome.responses),
    rss: after.rss,
    failures: outcome.failures,
  };
}

/**
 * Measures several servers alternately, each at the same position of the requests in the same round. The machine
 * differs between the first and the last one, so the order changes.
 */
export async function alternately<One>(
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
// CPU use of a poll without requests; a garbage collection or a timer may occur during it.
const IDLE = 0.2;

/**
 * Waits until a server has finished its remaining work, and cancels its running statements: a server that needs seconds
 * for a response would otherwise disturb the next measurement.
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
