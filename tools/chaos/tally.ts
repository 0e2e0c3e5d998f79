import type { HttpResponse } from './ask';

/** What clients received: responses by status, their times, and requests without a response. */
export class Tally {
  readonly failures: string[] = [];
  private readonly counts = new Map<number, number>();
  private readonly times = new Map<number, number[]>();

  /** Long runs keep no times, because they would collect too many. */
  constructor(private readonly keep: { times: boolean } = { times: true }) {}

  /** Records one request; returns undefined if it failed. */
  async of(request: Promise<HttpResponse>): Promise<HttpResponse | undefined> {
    const started = performance.now();
    try {
      const response = await request;
      this.add(response.status, performance.now() - started);
      return response;
    } catch (error) {
      this.failures.push((error as Error).message);
      return undefined;
    }
  }

  count(status: number): number {
    return this.counts.get(status) ?? 0;
  }

  get total(): number {
    return [...this.counts.values()].reduce((sum, count) => sum + count, this.failures.length);
  }

  /** The number of responses with other statuses than the expected ones. */
  other(...expected: number[]): number {
    return this.total - expected.reduce((sum, status) => sum + this.count(status), 0);
  }

  /** The time within which this share of the responses arrived, of all or of one status; 0 if there are none. */
  within(share: number, status?: number): number {
    const times = status === undefined ? [...this.times.values()].flat() : (this.times.get(status) ?? []);
    return times.toSorted((a, b) => a - b)[Math.ceil(times.length * share) - 1] ?? 0;
  }

  toString(): string {
    const responses = [...this.counts]
      .sort(([a], [b]) => a - b)
      .map(([status, count]) => `${count} × ${status}`);
    const kinds = new Map<string, number>();
    for (const failure of this.failures) kinds.set(failure, (kinds.get(failure) ?? 0) + 1);
    return [...responses, ...[...kinds].map(([failure, count]) => `${count} × ${failure}`)].join(', ');
  }

  private add(status: number, ms: number): void {
    this.counts.set(status, this.count(status) + 1);
    if (!this.keep.times) return;
    if (!this.times.has(status)) this.times.set(status, []);
    this.times.get(status)!.push(ms);
  }
}
