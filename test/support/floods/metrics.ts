import { readFileSync } from 'node:fs';
import { get } from 'node:http';

/** What a replica reports on its metrics port. */
interface Sample {
  in_flight: number;
  resident_mb: number;
  /** Open file descriptors; NaN on systems other than Linux. */
  open_files: number;
  /** The longest event-loop delay since the previous sample. */
  delay_ms: number;
}

const MEGABYTE = 1024 ** 2;
const PATIENCE = 15_000;
const EVERY = 500;
const MOST_WAITING = 0.25;

/**
 * How long the main thread of a process has waited for a CPU since this was created; 0 on systems other than
 * Linux.
 */
export class CpuWait {
  private readonly begun = performance.now();
  private readonly before: number;

  constructor(private readonly pid: number) {
    this.before = this.waited_ms;
  }

  /** The share of the time that has passed. */
  get share(): number {
    return (this.waited_ms - this.before) / (performance.now() - this.begun);
  }

  /** Whether the machine is too busy to judge times, so that late responses prove nothing. */
  get isStarved(): boolean {
    return this.share > MOST_WAITING;
  }

  private get waited_ms(): number {
    try {
      const [, waited_ns] = readFileSync(`/proc/${this.pid}/schedstat`, 'utf8').split(' ');
      return Number(waited_ns) / 1e6;
    } catch {
      return 0;
    }
  }
}

export class Metrics {
  constructor(
    private readonly base: string,
    readonly pid: number,
  ) {}

  async sample(): Promise<Sample> {
    const text = await fetchText(`${this.base}/metrics`);
    const value = (name: string) => Number(new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]);
    return {
      in_flight: value('gamewharf_http_in_flight'),
      resident_mb: value('process_resident_memory_bytes') / MEGABYTE,
      open_files: value('process_open_fds'),
      delay_ms: value('nodejs_eventloop_lag_max_seconds') * 1000,
    };
  }

  /** The lowest value during that time; returns as soon as it is down to `enough`. */
  async lowest(name: keyof Sample, within: number, enough: number): Promise<number> {
    const begun = performance.now();
    for (let lowest = Infinity; ;) {
      lowest = Math.min(lowest, (await this.sample())[name]);
      if (!(lowest > enough) || performance.now() - begun > within) return lowest;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }
}

/** Samples the metrics of a replica until stopped. */
export class Watch {
  most: Omit<Sample, 'open_files'> = { in_flight: 0, resident_mb: 0, delay_ms: 0 };
  first: Sample | undefined;
  private readonly timer: NodeJS.Timeout;
  private last: Promise<void> = Promise.resolve();
  private readonly cpu: CpuWait;
  private waiting = '';
  isStarved = false;

  constructor(private readonly metrics: Metrics) {
    this.cpu = new CpuWait(metrics.pid);
    this.timer = setInterval(() => (this.last = this.last.then(() => this.look())), EVERY).unref();
    this.last = this.look();
  }

  async stop(): Promise<this> {
    clearInterval(this.timer);
    await this.last;
    this.isStarved = this.cpu.isStarved;
    this.waiting = `waited for a CPU ${(this.cpu.share * 100).toFixed(0)} % of the time${this.isStarved ? ': too busy a machine to judge times' : ''}`;
    await this.look();
    return this;
  }

  toString(): string {
    const { in_flight, resident_mb, delay_ms } = this.most;
    return `up to ${in_flight} in flight, ${resident_mb.toFixed(0)} MB (${(this.first?.resident_mb ?? 0).toFixed(0)} before), event-loop delay up to ${delay_ms.toFixed(0)} ms, ${this.waiting}`;
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

const fetchText = (url: string) =>
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
