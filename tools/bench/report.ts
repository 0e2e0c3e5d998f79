import { spawnSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { cpus, platform, release, totalmem } from 'node:os';
import { join } from 'node:path';
import type { Store } from './store';

/** One server in one round. */
export interface Measured {
  /** Responses per second. */
  rate: number;
  /** Milliseconds. */
  p50: number;
  p99: number;
  /** CPU time of the server per response, in microseconds. */
  cpu: number;
  rss: number;
  /** Responses that were not 200, by status. */
  failures: Record<string, number>;
}

export type Figure = Exclude<keyof Measured, 'failures'>;

export interface EndpointResult {
  endpoint: string;
  /** Figures by server, one per round. */
  measured: Record<string, Measured[]>;
}

/** Changes per second, ours and the same transactions by pgbench, one per round. */
export interface WriteResult {
  write: string;
  ours: number[];
  pgbench: number[];
}

export interface Results {
  machine: Record<string, string>;
  scale: number;
  /** Processes of each server, one after the other. */
  processes: number;
  /** Results with each of them. */
  rounds: number;
  seconds: number;
  connections: number;
  /** Times from the start of our process to ready, on existing data. */
  starts: number[];
  /** Resident memory before the first request, by server; empty for a short run. */
  idle: Record<string, number>;
  endpoints: EndpointResult[];
  /** Empty without pgbench. */
  writes: WriteResult[];
}

export const machine = (store: Store): Record<string, string> => ({
  date: new Date().toISOString().slice(0, 10),
  commit:
    spawnSync('git', ['rev-parse', '--short', 'HEAD'], { encoding: 'utf8' }).stdout?.trim() || 'unknown',
  processor: `${cpus().length} x ${cpus()[0]?.model.trim() ?? 'unknown'}`,
  memory: `${Math.round(totalmem() / 2 ** 30)} GB`,
  system: `${platform()} ${release()}`,
  node: process.version,
  postgresql: store.version,
  'huge pages': store.huge_pages ?? 'unknown',
  database: `${Math.round(store.bytes / 2 ** 20)} MB`,
  ...(store.import && {
    import: `${store.import.records} records, ${Math.round(store.import.records / store.import.seconds)} a second`,
  }),
});

const SERVERS = ['ours', 'floor', 'stock'];

const failed = (failures: Record<string, number>) => Object.values(failures).reduce((a, b) => a + b, 0);

export const median = (list: number[]) => {
  const sorted = list.toSorted((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
};

export interface Ratio {
  min: number;
  median: number;
  max: number;
}

/**
 * Our figure divided by that of the other server, round by round, because a disturbance affects both of a
 * pair.
 */
export function ratio(result: EndpointResult, other: string, what: 'rate' | 'p99'): Ratio | undefined {
  const [ours, theirs] = [result.measured.ours, result.measured[other]];
  if (!ours || !theirs) return undefined;
  return summarizeRatios(
    ours.map((one) => one[what]),
    theirs.map((one) => one[what]),
  );
}

export function summarizeRatios(ours: number[], theirs: number[]): Ratio {
  const ratios = ours.map((one, round) => one / theirs[round]!);
  return { min: Math.min(...ratios), median: median(ratios), max: Math.max(...ratios) };
}

export const formatRatio = (one: Ratio | undefined) =>
  one ? `**${one.median.toFixed(2)}** (${one.min.toFixed(2)}–${one.max.toFixed(2)})` : '';

export const table = (head: string[], rows: string[][]) =>
  [head, head.map((_, i) => (i === 0 ? '---' : '---:')), ...rows]
    .map((row) => `| ${row.join(' | ')} |`)
    .join('\n');

function ratios({ endpoints }: Results): string {
  const others = SERVERS.slice(1).filter((name) => endpoints.some(({ measured }) => measured[name]));
  return table(
    ['endpoint', ...others.map((name) => `ours / ${name}`), 'p99, ours / floor'],
    endpoints.map((result) => [
      result.endpoint,
      ...others.map((name) => formatRatio(ratio(result, name, 'rate'))),
      formatRatio(ratio(result, 'floor', 'p99')),
    ]),
  );
}

function writeTable({ writes }: Results): string {
  if (writes.length === 0) return 'Not measured: this machine has no pgbench.';
  return table(
    ['write', 'ours / pgbench', 'ours, changes/s', 'pgbench, transactions/s'],
    writes.map(({ write, ours, pgbench }) => [
      write,
      formatRatio(summarizeRatios(ours, pgbench)),
      median(ours).toFixed(0),
      median(pgbench).toFixed(0),
    ]),
  );
}

/** A table for each figure, so that none is too wide to read. */
function figures({ endpoints }: Results): string[] {
  const servers = SERVERS.filter((name) => endpoints.some(({ measured }) => measured[name]));
  const of = (title: string, figure: Figure, digits = 0, unit = 1) => [
    `### ${title}`,
    table(
      ['endpoint', ...servers],
      endpoints.map(({ endpoint, measured }) => [
        endpoint,
        ...servers.map((name) => {
          const list = measured[name];
          return list ? (median(list.map((one) => one[figure])) / unit).toFixed(digits) : '';
        }),
      ]),
    ),
  ];
  return [
    ...of('Requests per second', 'rate'),
    ...of('Median response time, ms', 'p50', 2),
    ...of('99th percentile of the response time, ms', 'p99', 2),
    ...of('CPU time per request, µs', 'cpu'),
    ...of('Memory, MB', 'rss', 0, 2 ** 20),
    '### Failures',
    failures(endpoints),
  ];
}

function failures(endpoints: EndpointResult[]): string {
  const lines = endpoints.flatMap(({ endpoint, measured }) =>
    Object.entries(measured).flatMap(([server, list]) => {
      const count = list.reduce((sum, { failures }) => sum + failed(failures), 0);
      return count > 0 ? [`- ${endpoint}, ${server}: ${count}`] : [];
    }),
  );
  return lines.length > 0 ? lines.join('\n') : 'None: the status of every response was 200.';
}

function markdown(results: Results): string {
  const { machine, scale, processes, rounds, seconds, connections, starts, idle } = results;
  const memory = Object.entries(idle).map(([name, bytes]) => `${name} ${(bytes / 2 ** 20).toFixed(0)} MB`);
  return [
    '# Results of `npm --prefix tools run bench`',
    `${connections} connections; ${processes === 1 ? 'one process' : `${processes} processes`} of each server, ${rounds} paired rounds of ${seconds} s with each for every endpoint; store of scale ${scale}.`,
    table(['machine', ''], Object.entries(machine)),
    '## Throughput',
    'Our requests per second divided by those of the other server in the same round: median (lowest–highest).',
    ratios(results),
    '## Writes',
    'Changes per second divided by the same transactions per second, run by pgbench on as many connections in the same round.',
    writeTable(results),
    '## Figures',
    'Medians over the rounds.',
    ...figures(results),
    '## Start and memory',
    `Start of the process to ready, on existing data: ${starts.map((ms) => `${ms.toFixed(0)} ms`).join(', ')}.`,
    ...(memory.length > 0 ? [`Memory before the first request: ${memory.join(', ')}.`] : []),
    '',
  ].join('\n\n');
}

/** Writes the reports next to this benchmark's sources; returns the table for the terminal. */
export function writeReports(results: Results, keep: boolean): string {
  const text = markdown(results);
  if (keep) {
    const folder = join(process.cwd(), 'tools', 'bench');
    writeFileSync(join(folder, 'RESULTS.md'), text);
  }
  return text;
}
