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

/** Remembers what was learned for as long as it is fresh, oldest first out; what is stale counts as not there. */
export class ShortMemory<Value> {
  private readonly entries = new Map<string, { value: Value; learned: number }>();
  private forgotten = -Infinity;

  constructor(
    private readonly freshness: Freshness,
    private readonly most: number,
  ) {}

  get(name: string, now: number): Value | undefined {
    const entry = this.entries.get(name);
    return entry && entry.learned > this.freshness.freshAfter(now) ? entry.value : undefined;
  }

  /** `learned` is when the question was asked, not when the answer came: it may be that old. */
  set(name: string, value: Value, learned: number): void {
    if (learned <= this.forgotten) return;
    this.entries.delete(name);
    this.entries.set(name, { value, learned });
    const stale = this.freshness.staleUntil(learned);
    // Entries stand in the order in which they go stale: the stale ones are at the front.
    for (const [oldest, entry] of this.entries) {
      if (this.entries.size <= this.most && entry.learned > stale) break;
      this.entries.delete(oldest);
    }
  }

  /** Everything, and what is being asked for right now: that answer may be older. */
  forget(): void {
    this.entries.clear();
    this.forgotten = performance.now();
  }
}
