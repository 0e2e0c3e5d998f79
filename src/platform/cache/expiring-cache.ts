/** How long cached values are valid. Times are those of `Clock.monotonic()`. */
export interface Expiry {
  /** A value that was read after this is fresh. */
  freshAfter(now: number): number;
  /** A value that was read until this will never be fresh again. */
  staleUntil(now: number): number;
}

export const maxAge = (milliseconds: number): Expiry => ({
  freshAfter: (now) => now - milliseconds,
  staleUntil: (now) => now - milliseconds,
});

// For each entry that is added: deleting many thousands at once would take noticeable time.
const DELETED_AT_ONCE = 8;

interface Entry<Value> {
  value: Value;
  readAt: number;
}

/** A cache of bounded size whose entries expire. The oldest are deleted first; a stale one counts as missing. */
export class ExpiringCache<Value> {
  private readonly entries = new Map<string, Entry<Value>>();
  // Kept between calls: a Map has holes where entries were deleted, and a new iterator would pass all of them again.
  private iterator = this.entries.entries();
  private oldest: [string, Entry<Value>] | undefined;
  private clearedAt = -Infinity;
  private used = 0;

  /** `maxSize`: of entries, or of the sizes that `sizeOf` gives them. */
  constructor(
    private readonly expiry: Expiry,
    private readonly maxSize: number,
    private readonly sizeOf: (key: string, value: Value) => number = () => 1,
  ) {}

  get size(): number {
    return this.entries.size;
  }

  get(key: string, now: number): Value | undefined {
    const entry = this.entries.get(key);
    return entry && entry.readAt > this.expiry.freshAfter(now) ? entry.value : undefined;
  }

  /** Also a stale value. */
  peek(key: string): Value | undefined {
    return this.entries.get(key)?.value;
  }

  /** `readAt`: when the value was asked for, not when it came. It may be as old as that. */
  set(key: string, value: Value, readAt: number): void {
    if (readAt <= this.clearedAt) return;
    const old = this.entries.get(key);
    if (old) this.delete(key, old.value);
    this.entries.set(key, { value, readAt });
    this.used += this.sizeOf(key, value);
    this.deleteOldest(this.expiry.staleUntil(readAt));
  }

  /** Values that were requested before are not accepted afterwards either. */
  clear(now: number): void {
    this.entries.clear();
    this.oldest = undefined;
    this.used = 0;
    this.clearedAt = now;
  }

  /** The map keeps entries in the order of `set`: stale ones come first. */
  private deleteOldest(staleUntil: number): void {
    let deleted = 0;
    while ((this.oldest ??= this.next())) {
      const [key, entry] = this.oldest;
      // Unless it was set again, and is further back.
      if (this.entries.get(key) === entry) {
        const isNeedless =
          this.used > this.maxSize || (entry.readAt <= staleUntil && deleted < DELETED_AT_ONCE);
        if (!isNeedless) return;
        this.delete(key, entry.value);
        deleted++;
      }
      this.oldest = undefined;
    }
  }

  private next(): [string, Entry<Value>] | undefined {
    const next = this.iterator.next();
    if (!next.done) return next.value;
    this.iterator = this.entries.entries();
    return this.iterator.next().value;
  }

  private delete(key: string, value: Value): void {
    this.entries.delete(key);
    this.used -= this.sizeOf(key, value);
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

  /** Only callers that already wait get the result of work that is running now. */
  forget(): void {
    this.running = new Map();
  }
}
