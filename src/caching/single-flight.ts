/**
 * Runs the work for a key once at a time: who asks meanwhile gets the same result. An object and not a Map, whose tables
 * keep garbage alive: docs/explanation/decisions/fast-requests.md.
 */
export class SingleFlight<Result> {
  private running = nothing<Result>();

  run(key: string, work: () => Promise<Result>): Promise<Result> {
    const { running } = this;
    return (running[key] ??= work().finally(() => delete running[key]));
  }

  /** Nobody gets the result of work that is running now, except those who wait for it already. */
  forget(): void {
    this.running = nothing();
  }
}

const nothing = <Result>() => Object.create(null) as Record<string, Promise<Result>>;
