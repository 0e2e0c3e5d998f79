import { Bystander, LEAST_SHARE } from './bystander';
import { type Metrics, Watch } from './metrics';
import type { Tenant } from '../world/world';
import { Child } from './child';
import type { ShapeName } from './shapes';

/** Floods a replica with one type of traffic for a while, during which a control client must be served. */
export interface Flood {
  shape: ShapeName;
  seconds: number;
  seed: number;
}

/** The parameters of a flooding process. `database`: the URL of the replica's database. */
export interface AttackOrder extends Flood {
  base: string;
  database: string;
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
/** The memory, in MB, by which the service may grow in one flood. */
const MOST_MEMORY = 400;
const MOST_DELAY = 500;

/** A replica, and a control client whose rows are in its database. */
export interface Flooded {
  base: string;
  metrics: Metrics;
  bystander: Tenant;
  database: string;
  isRunning: () => boolean;
}

export interface Outcome {
  seen: string;
  /** The violated expectations. */
  broken: string[];
}

export async function flood(at: Flooded, { shape, seconds, seed }: Flood): Promise<Outcome> {
  const { base, database, metrics, isRunning } = at;
  const bystander = await Bystander.start(base, at.bystander);
  const watch = new Watch(metrics);
  await sleep(BEFORE);
  const { sent, failed, broken } = await attack({ base, database, shape, seconds, seed });
  await bystander.stop();
  const left = await metrics.lowest(SETTLED_WITHIN).catch(() => NaN);
  await watch.stop();
  const { resident_mb, delay_ms } = watch.most;
  const grown = resident_mb - (watch.first?.resident_mb ?? 0);
  if (!isRunning()) broken.push('the process has ended');
  if (failed > 0) broken.push(`${failed} responses are 500`);
  if (!bystander.isServed({ busy: watch.isStarved }))
    broken.push(`a bystander is served less than ${LEAST_SHARE * 100} %`);
  if (isRunning() && left !== 0) broken.push('requests stay in flight after their clients have gone');
  if (grown > MOST_MEMORY) broken.push('memory grows without bounds');
  if (!watch.isStarved && delay_ms > MOST_DELAY)
    broken.push(`the event loop is held up for more than ${MOST_DELAY} ms`);
  return {
    seen: `${sent}; bystander: ${bystander}; service: ${watch}, ${left} in flight afterwards`,
    broken,
  };
}

const sleep = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms));
