import type { Tenant } from '../world/world';
import type { Seen } from './request-loop';
import { Child } from './child';

export const LEAST_SHARE = 0.95;

export type ToControlClient =
  { type: 'start'; base: string; tenant: number; in_time: number; connects: boolean } | { type: 'stop' };
export type FromControlClient = { type: 'started' } | { type: 'stopped'; seen: Seen };

/** Runs the control client in its own process, so that it measures the service and not the event loop of the fuzzer. */
export class ControlClient {
  private seen: Seen = { results: {}, slowest_ms: 0, wrong: '' };

  private readonly child = new Child<ToControlClient, FromControlClient>('control-client-process');

  /** `in_time`: a response that takes longer, in milliseconds, is late. `connects`: each request uses a new connection. */
  static async start(
    base: string,
    { number }: Tenant,
    in_time = 1000,
    connects = false,
  ): Promise<ControlClient> {
    const controlClient = new ControlClient();
    await controlClient.child.exchange({ type: 'start', base, tenant: number, in_time, connects });
    return controlClient;
  }

  async stop(): Promise<this> {
    const response = await this.child.exchange({ type: 'stop' });
    if (response.type === 'stopped') this.seen = response.seen;
    return this;
  }

  /**
   * Whether nearly all responses were right and on time. `mostLate`: the share of them that may be late; 1 if the machine
   * is too busy to judge times.
   */
  isServed(mostLate = 0): boolean {
    const { right = 0, late = 0, 'no response': missing = 0 } = this.seen.results;
    const allLate = late + (mostLate === 1 ? missing : 0);
    return right + Math.min(allLate, mostLate * this.total) >= LEAST_SHARE * this.total;
  }

  toString(): string {
    const { results, slowest_ms, wrong } = this.seen;
    const counts = Object.entries(results)
      .sort(([, a], [, b]) => b - a)
      .map(([result, count]) => `${count} ${result}`);
    const example = wrong && `, such as ${wrong}`;
    return `${(this.share * 100).toFixed(1)} % of ${this.total} served (${counts.join(', ')}${example}), the slowest in ${slowest_ms.toFixed(0)} ms`;
  }

  private get total(): number {
    return Object.values(this.seen.results).reduce((sum, count) => sum + count, 0);
  }

  get slowest_ms(): number {
    return this.seen.slowest_ms;
  }

  private get share(): number {
    return (this.seen.results.right ?? 0) / Math.max(1, this.total);
  }
}
