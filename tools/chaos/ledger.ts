import { setTimeout as sleep } from 'node:timers/promises';

/** Asks, when all is over, whether a write that was acknowledged is there. */
export type IsKept = () => Promise<boolean>;

/** A write that was refused with this status, on its way to be acknowledged. */
export class Refused extends Error {
  constructor(
    readonly status: number,
    readonly body: string,
  ) {
    super(`${status} ${body}`);
  }
}

/** One kind of write. `write` resolves once it is acknowledged, and rejects where it was refused or not answered. */
export interface WriteKind {
  name: string;
  /** How many write at once; one, where that is not said. */
  writers?: number;
  write: (n: number) => Promise<IsKept>;
}

const PAUSE = 20;

/** The writers of a kind, who keep a ledger. */
export class Ledger {
  readonly unexpected: string[] = [];
  private readonly acknowledged: IsKept[] = [];
  private refusals = 0;
  private over = false;
  private readonly work: Promise<unknown>;
  private n = 0;

  constructor(private readonly kind: WriteKind) {
    this.work = Promise.all(Array.from({ length: kind.writers ?? 1 }, () => this.run()));
  }

  /** How many acknowledged writes are not there. */
  async stop(): Promise<number> {
    this.over = true;
    await this.work;
    let lost = 0;
    for (const isKept of this.acknowledged) if (!(await isKept())) lost++;
    return lost;
  }

  get isEmpty(): boolean {
    return this.acknowledged.length === 0;
  }

  toString(): string {
    return `${this.acknowledged.length} × ${this.kind.name} (${this.refusals} not acknowledged)`;
  }

  private async run(): Promise<void> {
    while (!this.over) {
      try {
        this.acknowledged.push(await this.kind.write(this.n++));
      } catch (error) {
        this.refusals++;
        const told = error instanceof Refused && error.status === 503;
        // Of a connection that was closed nobody knows anything: that is for whoever asks whether the process lives.
        if (!told && error instanceof Refused)
          this.unexpected.push(`${this.kind.name}: ${error.message.slice(0, 300)}`);
      }
      await sleep(PAUSE);
    }
  }
}
