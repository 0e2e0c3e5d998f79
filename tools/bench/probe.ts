import { openSync, readSync } from 'node:fs';

/**
 * Loaded into every measured server (`node -r`) before its own code. Reports memory and CPU time on request, and is the
 * same in all servers.
 */
export interface Usage {
  /** Microseconds of CPU time since the start. */
  cpu: number;
  rss: number;
}

/** The longest delays of the event loop since the previous request, in milliseconds. */
export interface Delays {
  delay: number;
  /** The delay without the time in which the thread waited for a CPU. */
  blocked: number;
}

const PERIOD_MS = 1;

/** Measures how late a timer is. Needs Linux. */
class LoopDelays {
  private readonly schedule = openSync('/proc/self/schedstat', 'r');
  private readonly text = Buffer.alloc(64);
  private longest: Delays = { delay: 0, blocked: 0 };
  private last = performance.now();
  private waited = this.waitedMs();

  constructor() {
    setInterval(() => this.measure(), PERIOD_MS).unref();
  }

  take(): Delays {
    this.measure();
    const { longest } = this;
    this.longest = { delay: 0, blocked: 0 };
    return longest;
  }

  private measure(): void {
    const [now, waited] = [performance.now(), this.waitedMs()];
    const delay = Math.max(0, now - this.last - PERIOD_MS);
    this.longest.delay = Math.max(this.longest.delay, delay);
    this.longest.blocked = Math.max(this.longest.blocked, delay - (waited - this.waited));
    this.last = now;
    this.waited = waited;
  }

  /** The milliseconds that the main thread has waited for a CPU since its start. */
  private waitedMs(): number {
    const length = readSync(this.schedule, this.text, 0, this.text.length, 0);
    return Number(this.text.toString('latin1', 0, length).split(' ')[1]) / 1e6;
  }
}

// Delays are only measured on request, because a timer every millisecond costs CPU time.
let delays: LoopDelays | undefined;

process.on('message', (question: 'usage' | 'delays') => {
  if (question === 'delays') {
    process.send!((delays ??= new LoopDelays()).take());
    return;
  }
  const { user, system } = process.cpuUsage();
  process.send!({ cpu: user + system, rss: process.memoryUsage.rss() } satisfies Usage);
});
// The server must not survive an interrupted run.
process.once('disconnect', () => process.exit());
process.channel?.unref();
