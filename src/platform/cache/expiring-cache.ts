/** How long cached values are valid. Times are those of `Clock.monotonic()`. */
export interface Expiry {
  /** A value read after this time is fresh. */
  freshAfter(now: number): number;
  /** A value read until this time will never be fresh again. */
  staleUntil(now: number): number;
}

export const maxAge = (milliseconds: number): Expiry => ({
  freshAfter: (now) => now - milliseconds,
  staleUntil: (now) => now - milliseconds,
});

interface Entry<Value> {
  value: Value;
  readAt: number;
}

/**
 * A cache of bounded size whose entries expire; a stale one counts as missing. It has two generations of entries. The
 * older one is dropped as a whole when all of it is stale, or when the recent one reaches half the size. One Map in the
 * order of insertion would be shorter, but V8 skips its deleted entries each time: at 100,000 entries an eviction took
 * 43 µs instead of 0.6, and dropping all of them blocked the event loop for 40 ms.
 */
export class ExpiringCache<Value> {
  private recent = new Map<string, Entry<Value>>();
  private older = new Map<string, Entry<Value>>();
  /** Of the recent entries. */
  private used = 0;
  /** When the older entries were no longer recent. */
  private closedAt = -Infinity;
  private clearedAt = -Infinity;

  /** `maxSize`: the number of entries, or the total of their `sizeOf`. */
  constructor(
    private readonly expiry: Expiry,
    private readonly maxSize: number,
    private readonly sizeOf: (key: string, value: Value) => number = () => 1,
  ) {}

  get size(): number {
    return this.recent.size + this.older.size;
  }

  get(key: string, now: number): Value | undefined {
    const entry = this.entry(key);
    return entry && entry.readAt > this.expiry.freshAfter(now) ? entry.value : undefined;
  }

  /** Also a stale value. */
  peek(key: string): Value | undefined {
    return this.entry(key)?.value;
  }

  /** `readAt`: when the value was requested, not when it arrived. It may be that old. */
  set(key: string, value: Value, readAt: number): void {
    const [size, half] = [this.sizeOf(key, value), this.maxSize / 2];
    if (readAt <= this.clearedAt || size > half) return;
    const old = this.recent.get(key);
    if (old) this.used -= this.sizeOf(key, old.value);
    if (this.used + size > half || this.closedAt <= this.expiry.staleUntil(readAt)) {
      this.older = this.recent;
      this.recent = new Map();
      this.used = 0;
      this.closedAt = readAt;
    }
    this.older.delete(key);
    this.recent.set(key, { value, readAt });
    this.used += size;
  }

  /** Values requested earlier are not accepted afterwards either. */
  clear(now: number): void {
    this.recent = new Map();
    this.older = new Map();
    this.used = 0;
    this.clearedAt = now;
  }

  private entry(key: string): Entry<Value> | undefined {
    return this.recent.get(key) ?? this.older.get(key);
  }
}

/** Runs the work for a key once at a time: concurrent callers get the same result. */
export class SingleFlight<Result> {
  private running = new Map<string, Promise<Result>>();

  run(key: string, work: () => Promise<Result>): Promise<Result> {
    const { running } = this;
    let result = running.get(key);
    if (!result) running.set(key, (result = work().finally(() => running.delete(key))));
    return result;
  }

  /** Only callers that already wait get the result of the work in progress. */
  forget(): void {
    this.running = new Map();
  }
}
