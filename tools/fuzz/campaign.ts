import fc from 'fast-check';
import { type KindName, findKind } from './kinds';
import { Finding } from './oracles';
import { keepRegression } from './regressions';
import type { Server } from './server';
import type { Target } from './target';
import { FIRST_LANE, Tenant } from '../../test/support/world/world';

/** Kinds that run concurrently: sequences wait for each response, so there are many of them. */
export const LANES: KindName[] = [
  ...Array.from({ length: 6 }, (): KindName => 'sequence'),
  ...(['ask', 'ask', 'import', 'sale'] as KindName[]),
];
/** The maximum number of cases of a kind per request, unless waiting for responses already limits it. */
const SHARE: Partial<Record<KindName, number>> = {
  import: 0.002,
  sale: 0.01,
};
const RUNS_A_ROUND = 20;
const SHRINKING_MS = 60_000;
const MOST_FINDINGS = 10;

export const say = (line: string) => console.error(line);

export interface Bounds {
  seed: number;
  requests: number;
  seconds: number;
}

/** Runs cases of several kinds concurrently, up to a number of requests. */
export class Campaign {
  private readonly found = new Map<string, Finding>();
  private readonly sent = new Map<KindName, number>();
  private readonly last: Promise<void>[] = [];
  /** The case in which it was found, alone or because of concurrent cases. */
  private readonly failing = new WeakMap<object, unknown>();
  private readonly started = performance.now();

  constructor(
    private readonly target: Target,
    private readonly server: Server,
    private readonly lanes: KindName[],
    private readonly bounds: Bounds,
  ) {}

  get findings(): number {
    return this.found.size;
  }

  get rate(): string {
    const { sent } = this.target;
    const took = (performance.now() - this.started) / 1000;
    return `${sent} requests in ${took.toFixed(1)} s, ${Math.round(sent / took)} a second`;
  }

  async run(): Promise<void> {
    const progress = setInterval(() => say(`  ${this.rate}, ${this.findings} findings`), 10_000).unref();
    await Promise.all(this.lanes.map((kind, lane) => this.lane(kind, lane)));
    clearInterval(progress);
  }

  private get isOver(): boolean {
    const took = (performance.now() - this.started) / 1000;
    return (
      this.target.sent >= this.bounds.requests ||
      took >= this.bounds.seconds ||
      this.findings >= MOST_FINDINGS ||
      !this.server.isRunning()
    );
  }

  private async lane(kind: KindName, lane: number): Promise<void> {
    for (let round = 0; !this.isOver; round++) {
      const share = SHARE[kind];
      if (
        share !== undefined &&
        this.lanes.length > 1 &&
        (this.sent.get(kind) ?? 0) > share * this.target.sent
      ) {
        await new Promise((resolve) => setTimeout(resolve, 20));
        continue;
      }
      // Each round can be repeated on its own.
      await this.round(kind, lane, (this.bounds.seed + lane * 1_000_003 + round * 7919) | 0);
    }
  }

  private async round(name: KindName, lane: number, roundSeed: number): Promise<void> {
    const tenant = new Tenant(FIRST_LANE + lane);
    const { before, cases, run, together } = findKind(name);
    await before?.(this.target);
    // An interrupted check leaves its last case running, and cases of one tenant must not overlap.
    const tryOne = (one: unknown) =>
      together > 1 ? tryNow(one) : (this.last[lane] = after(this.last[lane], one));
    const after = (last: Promise<void> | undefined, one: unknown) =>
      Promise.resolve(last).then(
        () => tryNow(one),
        () => tryNow(one),
      );
    const tryNow = async (one: unknown) => {
      if (this.isOver) return;
      this.sent.set(name, (this.sent.get(name) ?? 0) + 1);
      try {
        await run(this.target, one, tenant);
      } catch (error) {
        if (this.isKnown(error)) return;
        this.failing.set(error as object, one);
        throw error;
      }
    };
    const tryTogether = async (all: unknown[]) => {
      await Promise.all(all.map(tryOne));
    };
    const batch = fc.array(cases(this.target), { minLength: 1, maxLength: together, size: 'max' });
    const property =
      together === 1 ? fc.asyncProperty(cases(this.target), tryOne) : fc.asyncProperty(batch, tryTogether);
    const details = await fc.check(property as fc.IAsyncProperty<[unknown]>, {
      seed: roundSeed,
      numRuns: together === 1 ? RUNS_A_ROUND : 5,
      interruptAfterTimeLimit: SHRINKING_MS,
    });
    if (!details.failed) return;
    const error = details.errorInstance as Error;
    const finding = error instanceof Finding ? error : new Finding('crash', error.stack ?? String(error));
    if (this.found.has(finding.kind)) return;
    this.found.set(finding.kind, finding);
    const [counterexample] = details.counterexample ?? [];
    await this.keep(
      name,
      tenant,
      together === 1 ? [counterexample] : (counterexample as unknown[]),
      finding,
      this.failing.get(error),
    );
    say(`  seed ${roundSeed}, path ${details.counterexamplePath}`);
  }

  /** Earlier findings are not shrunk again. */
  private isKnown(error: unknown): boolean {
    return error instanceof Finding && this.found.has(error.kind);
  }

  /** Stores the case that fails alone, of cases that ran concurrently. */
  private async keep(
    kind: KindName,
    tenant: Tenant,
    cases: unknown[],
    finding: Finding,
    otherwise: unknown,
  ): Promise<void> {
    let failing = otherwise ?? cases[0];
    for (const one of cases) {
      const failed = await findKind(kind)
        .run(this.target, one, tenant)
        .then(
          () => false,
          () => true,
        );
      if (failed) failing = one;
    }
    const file = keepRegression({ kind, finding: finding.message.split('\n')[0]!, case: failing });
    say(`\nFOUND by ${kind}: ${finding.message}\n  saved as ${file}`);
  }
}
