import { setTimeout as sleep } from 'node:timers/promises';
import { ControlClient, LEAST_SHARE } from './control-client';
import { type Metrics, Watch } from './metrics';
import type { Tenant } from '../world/world';
import { Child } from './child';
import type { PatternName } from './patterns';

/** Floods a replica with one type of traffic for a while, during which a control client must be served. */
interface Flood {
  pattern: PatternName;
  seconds: number;
  seed: number;
}

/**
 * The parameters of a flooding process. `database`: the URL of the replica's database. `files`: its folder of files.
 */
export interface AttackOrder extends Flood {
  base: string;
  database: string;
  files: string;
}

export interface AttackReport {
  sent: string;
  /** Responses with status 500. */
  failed: number;
  /** Violated expectations of the traffic pattern itself. */
  broken: string[];
}

export const attack = (order: AttackOrder) =>
  new Child<AttackOrder, AttackReport>('attack-process').exchange(order);

/** Before and after the flood the control client runs alone. */
const BEFORE = 300;
const SETTLED_WITHIN = 5000;
const CLOSED_WITHIN = 20_000;
/** The memory, in MB, by which the service may grow in one flood. */
const MOST_MEMORY = 400;
/** Connections to the database may be opened during a flood. */
const MOST_FILES = 50;
const MOST_DELAY = 500;

/** A replica, and a control client whose rows are in its database. */
export interface Flooded {
  base: string;
  metrics: Metrics;
  controlClient: Tenant;
  database: string;
  files: string;
  isRunning: () => boolean;
}

export interface Outcome {
  seen: string;
  /** The violated expectations. */
  broken: string[];
}

export async function flood(at: Flooded, { pattern, seconds, seed }: Flood): Promise<Outcome> {
  const { base, database, files, metrics, isRunning } = at;
  const controlClient = await ControlClient.start(base, at.controlClient);
  const watch = new Watch(metrics);
  await sleep(BEFORE);
  const { sent, failed, broken } = await attack({ base, database, files, pattern, seconds, seed });
  await controlClient.stop();
  const left = await metrics.lowest('in_flight', SETTLED_WITHIN, 0).catch(() => NaN);
  await watch.stop();
  const before = watch.first?.open_files ?? 0;
  // On a busy machine the connections close later.
  const open = await metrics.lowest('open_files', CLOSED_WITHIN, before + MOST_FILES).catch(() => 0);
  const { resident_mb, delay_ms } = watch.most;
  const grown = resident_mb - (watch.first?.resident_mb ?? 0);
  if (!isRunning()) broken.push('the process has ended');
  if (failed > 0) broken.push(`${failed} responses are 500`);
  if (!controlClient.isServed(watch.isStarved ? 1 : 0))
    broken.push(`less than ${LEAST_SHARE * 100}% of the control client's responses were right and on time`);
  if (isRunning() && left !== 0) broken.push('requests stay in flight after their clients have disconnected');
  if (open > before + MOST_FILES) broken.push(`${open - before} descriptors stay open`);
  if (grown > MOST_MEMORY) broken.push('memory grows without bounds');
  if (!watch.isStarved && delay_ms > MOST_DELAY)
    broken.push(`the event loop is blocked for more than ${MOST_DELAY} ms`);
  return {
    seen: `${sent}; control client: ${controlClient}; service: ${watch}, ${left} in flight afterwards`,
    broken,
  };
}
