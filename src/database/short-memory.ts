/** Remembers what was learned for a moment, oldest first out; what is too old counts as not there. */
export class ShortMemory<Value> {
  private readonly entries = new Map<string, { value: Value; learned: number }>();

  constructor(
    private readonly milliseconds: number,
    private readonly most: number,
  ) {}

  get(name: string, now: number): Value | undefined {
    const entry = this.entries.get(name);
    return entry && now - entry.learned < this.milliseconds ? entry.value : undefined;
  }

  /** `learned` is when the question was asked, not when the answer came: it may be that old. */
  set(name: string, value: Value, learned: number): void {
    this.entries.delete(name);
    this.entries.set(name, { value, learned });
    // Entries stand in the order in which they go stale: the stale ones are at the front.
    for (const [oldest, entry] of this.entries) {
      if (this.entries.size <= this.most && learned - entry.learned < this.milliseconds) break;
      this.entries.delete(oldest);
    }
  }

  clear(): void {
    this.entries.clear();
  }
}
