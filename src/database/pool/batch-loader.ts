interface Waiting<Key, Value> {
  key: Key;
  resolve: (value: Value) => void;
  reject: (error: unknown) => void;
}

/** Loads the keys that are asked for in one turn of the event loop together. */
export class BatchLoader<Key, Value> {
  private waiting: Waiting<Key, Value>[] = [];

  /** `loadAll` answers a value for each key, in their order. */
  constructor(private readonly loadAll: (keys: Key[]) => Promise<Value[]>) {}

  load(key: Key): Promise<Value> {
    return new Promise((resolve, reject) => {
      if (this.waiting.length === 0) setImmediate(() => void this.send());
      this.waiting.push({ key, resolve, reject });
    });
  }

  private async send(): Promise<void> {
    const { waiting } = this;
    this.waiting = [];
    try {
      const values = await this.loadAll(waiting.map(({ key }) => key));
      waiting.forEach(({ resolve }, i) => resolve(values[i]!));
    } catch (error) {
      for (const { reject } of waiting) reject(error);
    }
  }
}
