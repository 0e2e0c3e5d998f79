/** Runs the work for a key once at a time: who asks meanwhile gets the same result. */
export class SingleFlight<Result> {
  private running = new Map<string, Promise<Result>>();

  run(key: string, work: () => Promise<Result>): Promise<Result> {
    const { running } = this;
    let result = running.get(key);
    if (!result) running.set(key, (result = work().finally(() => running.delete(key))));
    return result;
  }

  /** Nobody gets the result of work that is running now, except those who wait for it already. */
  forget(): void {
    this.running = new Map();
  }
}
