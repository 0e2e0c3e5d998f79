/** For how long something learned counts. Times are those of `performance.now()`. */
export interface Freshness {
  /** What was learned after this is fresh. */
  freshAfter(now: number): number;
  /** What was learned until this will never be fresh again. */
  staleUntil(now: number): number;
}

export const lasting = (milliseconds: number): Freshness => ({
  freshAfter: (now) => now - milliseconds,
  staleUntil: (now) => now - milliseconds,
});

// For each entry that comes: a pause for each of many thousands at once would be felt.
const SWEPT_AT_ONCE = 8;

/** Remembers what was learned for as long as it is fresh, oldest first out; what is stale counts as not there. */
export class ShortMemory<Value> {
  private readonly entries = new Map<string, { value: Value; learned: number }>();
  private forgotten = -Infinity;
  private weight = 0;

  /** `most`: of entries, or of what `weigh` says of each. */
  constructor(
    private readonly freshness: Freshness,
    private readonly most: number,
    private readonly weigh: (name: string, value: Value) => number = () => 1,
  ) {}

  get size(): number {
    return this.entries.size;
  }

  get(name: string, now: number): Value | undefined {
    const entry = this.entries.get(name);
    return entry && entry.learned > this.freshness.freshAfter(now) ? entry.value : undefined;
  }

  /** Fresh or not. */
  last(name: string): Value | undefined {
    return this.entries.get(name)?.value;
  }

  /** `learned` is when the question was asked, not when the answer came: it may be that old. */
  set(name: string, value: Value, learned: number): void {
    if (learned <= this.forgotten) return;
    const known = this.entries.get(name);
    if (known) this.drop(name, known.value);
    this.entries.set(name, { value, learned });
    this.weight += this.weigh(name, value);
    this.sweep(this.freshness.staleUntil(learned));
  }

  /** Everything, and what is being asked for right now: that answer may be older. */
  forget(): void {
    this.entries.clear();
    this.weight = 0;
    this.forgotten = performance.now();
  }

  /** Entries stand in the order in which they go stale: the stale ones are at the front. */
  private sweep(stale: number): void {
    let swept = 0;
    for (const [name, { value, learned }] of this.entries) {
      const superfluous = this.weight > this.most || (learned <= stale && swept < SWEPT_AT_ONCE);
      if (!superfluous) break;
      this.drop(name, value);
      swept++;
    }
  }

  private drop(name: string, value: Value): void {
    this.entries.delete(name);
    this.weight -= this.weigh(name, value);
  }
}
