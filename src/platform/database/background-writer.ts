/** Further items are dropped, because the database isn't responding. */
const MAX_WAITING = 10_000;

/** Writes items that no request waits for. Those added within an interval share a batch. */
export class BackgroundWriter<Item> {
  private readonly waiting: Item[] = [];
  private timer: NodeJS.Timeout | undefined;
  private writing = Promise.resolve();

  constructor(
    private readonly options: {
      intervalMs: number;
      batchSize: number;
      write: (batch: Item[]) => Promise<unknown>;
      failed: (error: Error, batch: Item[]) => void;
      /** Whether a failed batch is written again after the interval, instead of being dropped. */
      retries?: boolean;
    },
  ) {}

  /** Returns false if too many items are waiting, and drops this one. */
  add(item: Item): boolean {
    this.schedule();
    if (this.waiting.length >= MAX_WAITING) return false;
    this.waiting.push(item);
    return true;
  }

  /** Writes all items added so far. */
  flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    return (this.writing = this.writing.then(() => this.writeAll()));
  }

  private schedule(): void {
    this.timer ??= setTimeout(() => void this.flush(), this.options.intervalMs).unref();
  }

  private async writeAll(): Promise<void> {
    const { batchSize, write, failed, retries } = this.options;
    for (let batch; (batch = this.waiting.splice(0, batchSize)).length > 0;) {
      try {
        await write(batch);
      } catch (error) {
        failed(error as Error, batch);
        if (!retries) continue;
        this.waiting.unshift(...batch);
        this.schedule();
        return;
      }
    }
  }
}
