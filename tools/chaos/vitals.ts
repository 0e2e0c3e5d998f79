import { ask } from './ask';
import { memoryOf, openFilesOf } from './processes';
import type { Service } from './service';

/** What a process holds at one moment. */
export interface Vitals {
  seconds: number;
  resident_mb: number;
  heap_mb: number;
  handles: number;
  open_files: number;
}

export type Vital = Exclude<keyof Vitals, 'seconds'>;

/** By how much each may grow between the second quarter of the time and the last: as a share, and in absolute terms. */
const GROWTH: Record<Vital, { share: number; least: number }> = {
  resident_mb: { share: 0.15, least: 20 },
  heap_mb: { share: 0.15, least: 15 },
  handles: { share: 0.1, least: 10 },
  open_files: { share: 0.1, least: 10 },
};

const MEGABYTE = 1024 ** 2;

export async function vitalsOf(service: Service, seconds: number): Promise<Vitals> {
  const { body } = await ask(`http://127.0.0.1:${service.metrics_port}/metrics`, { timeout: 5000 });
  const metric = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(body)?.[1]);
  return {
    seconds: Math.round(seconds),
    resident_mb: (await memoryOf(service.pid)) / MEGABYTE,
    heap_mb: metric('nodejs_heap_size_used_bytes') / MEGABYTE,
    handles: metric('nodejs_active_handles_total'),
    open_files: await openFilesOf(service.pid),
  };
}

export interface Trend {
  vital: Vital;
  second_quarter: number;
  last_quarter: number;
  flat: boolean;
}

/** The first quarter is left out: caches fill, and code is compiled. */
export function trendsOf(samples: Vitals[]): Trend[] {
  const quarter = (n: number) =>
    samples.slice(Math.floor((samples.length * n) / 4), Math.floor((samples.length * (n + 1)) / 4));
  return (Object.keys(GROWTH) as Vital[]).map((vital) => {
    const [second_quarter, last_quarter] = [quarter(1), quarter(3)].map((part) =>
      levelOf(part.map((sample) => sample[vital])),
    ) as [number, number];
    const { share, least } = GROWTH[vital];
    const allowed = Math.max(second_quarter * share, least);
    return { vital, second_quarter, last_quarter, flat: last_quarter - second_quarter <= allowed };
  });
}

// The lower quartile: what is left between two collections of garbage rather than just before one.
const levelOf = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 4)] ?? NaN;
