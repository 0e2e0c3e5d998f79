import { readFileSync } from 'node:fs';
import { get } from 'node:http';

/** What a replica reports on its metrics port. */
export interface Sample {
  in_flight: number;
  resident_mb: number;
  /** The longest event-loop delay since the previous sample. */
  delay_ms: number;
}

const MEGABYTE = 1024 ** 2;
const PATIENCE = 15_000;
const EVERY = 500;
/** Above this limit the machine is too busy to judge times. */
const MOST_WAITING = 0.25;

export class Metrics {
  constructor(
    private readonly base: string,
    private readonly pid: number,
  ) {}

  /** How long its main thread has waited for a CPU so far; 0 on systems that don't report it (only Linux does). */
  get waited_ms(): number {
    try {
      const [, waited_ns] = readFileSync(`/proc/${this.pid}/schedstat`, 'utf8').split(' ');
      return Number(waited_ns) / 1e6;
    } catch {
      return 0;
    }
  }

  async sample(): Promise<Sample> {
    const text = await textOf(`${this.base}/metrics`);
    const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    return {
      in_flight: value('gamewharf_http_in_flight'),
      resident_mb: value('process_resident_memory_bytes') / MEGABYTE,
      delay_ms: value('nodejs_eventloop_lag_max_seconds') * 1000,
    };
  }

  /** The lowest number of requests in flight during that time; returns as soon as it is down to `enough`. */
  async lowest(within: number, enough = 0): Promise<number> {
    const begun = performance.now();
    for (let lowest = Infinity; ;) {
      lowest = Math.min(lowest, (await this.sample()).in_flight);
      if (lowest <= enough || performance.now() - begun > within) return lowest;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Samples the metrics of a replica until stopped. */
export class Watch {
  most: Sample = { in_flight: 0, resident_mb: 0, delay_ms: 0 };
  first: Sample | undefined;
  private readonly timer: NodeJS.Timeout;
  private last: Promise<void> = Promise.resolve();
  private readonly begun = performance.now();
  private readonly waited_before: number;
  /** The share of the time in which the process waited for a CPU. */
  private waiting = 0;

  constructor(private readonly metrics: Metrics) {
    this.waited_before = metrics.waited_ms;
    this.timer = setInterval(() => (this.last = this.last.then(() => this.look())), EVERY).unref();
    this.last = this.look();
  }

  async stop(): Promise<this> {
    clearInterval(this.timer);
    await this.last;
    this.waiting = Math.max(
      0,
      (this.metrics.waited_ms - this.waited_before) / (performance.now() - this.begun),
    );
    await this.look();
    return this;
  }

  /** Late responses prove nothing then. */
  get isStarved(): boolean {
    return this.waiting > MOST_WAITING;
  }

  toString(): string {
    const { in_flight, resident_mb, delay_ms } = this.most;
    return `up to ${in_flight} in flight, ${resident_mb.toFixed(0)} MB (${(this.first?.resident_mb ?? 0).toFixed(0)} before), event-loop delay up to ${delay_ms.toFixed(0)} ms, waited for a processor ${(this.waiting * 100).toFixed(0)} % of the time${this.isStarved ? ': too busy a machine to judge times' : ''}`;
  }

  private async look(): Promise<void> {
    const sample = await this.metrics.sample().catch(() => undefined);
    if (!sample) return;
    // Values from before the first sample don't count.
    if (!this.first) {
      this.first = sample;
      return;
    }
    for (const name of ['in_flight', 'resident_mb', 'delay_ms'] as const)
      this.most[name] = Math.max(this.most[name], sample[name]);
  }
}

const textOf = (url: string) =>
  new Promise<string>((resolve, reject) => {
    const request = get(url, { timeout: PATIENCE }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () => resolve(Buffer.concat(chunks).toString()));
    });
    request.on('timeout', () => request.destroy(new Error('the metrics are unavailable')));
    request.on('error', reject);
  });
