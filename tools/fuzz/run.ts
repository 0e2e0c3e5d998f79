import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import fc from 'fast-check';
import { checkInvariants } from './invariants';
import { type KindName, KINDS, kindOf } from './kinds';
import { Finding } from './oracles';
import { keepRegression, type Regression, regressions, replay, readRegression } from './regressions';
import { type Server, startServer } from './server';
import { Target } from './target';
import { Tenant } from './world';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    requests: { type: 'string', default: '50000' },
    time: { type: 'string' },
    kind: { type: 'string' },
    replay: { type: 'string' },
  },
});

const seed = Number(values.seed ?? randomInt(2 ** 31));
const requests = Number(values.requests);
const seconds = Number(values.time ?? Infinity);

/** Tenants 0 to 4 belong to kinds of cases; each lane of sequences has one of its own. */
const FIRST_LANE = 5;
/** What runs beside one another: sequences wait for each answer, so there are many of them. */
const LANES: KindName[] = [
  ...Array.from({ length: 6 }, (): KindName => 'sequence'),
  ...(['ask', 'ask', 'twins', 'page', 'raw', 'grant', 'import'] as KindName[]),
];
/** How many cases of a kind there may be for each request, where waiting for answers does not see to that. */
const SHARE: Partial<Record<KindName, number>> = {
  page: 0.05,
  raw: 0.02,
  grant: 0.02,
  import: 0.002,
  twins: 0.12,
};
const RUNS_A_ROUND = 20;
const SHRINKING_MS = 60_000;
const MOST_FINDINGS = 10;

const say = (line: string) => console.error(line);

class Campaign {
  private readonly found = new Map<string, Finding>();
  private readonly sent = new Map<KindName, number>();
  private readonly last: Promise<void>[] = [];
  private readonly started = performance.now();

  constructor(
    private readonly target: Target,
    private readonly server: Server,
    private readonly lanes: KindName[],
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
    const told = setInterval(() => say(`  ${this.rate}, ${this.findings} findings`), 10_000).unref();
    await Promise.all(this.lanes.map((kind, lane) => this.lane(kind, lane)));
    clearInterval(told);
  }

  private get isOver(): boolean {
    const took = (performance.now() - this.started) / 1000;
    return (
      this.target.sent >= requests ||
      took >= seconds ||
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
      // Each round can be repeated by itself.
      await this.round(kind, lane, (seed + lane * 1_000_003 + round * 7919) | 0);
    }
  }

  private async round(name: KindName, lane: number, roundSeed: number): Promise<void> {
    const tenant = new Tenant(FIRST_LANE + lane);
    const { before, cases, run, together } = kindOf(name);
    await before?.(this.target);
    // A check that is interrupted leaves its last case running, and cases of one tenant must not meet.
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
        // What was found before is not made small again.
        if (error instanceof Finding && this.found.has(error.kind)) return;
        throw error;
      }
    };
    const batch = fc.array(cases(this.target), { minLength: 1, maxLength: together, size: 'max' });
    const property =
      together === 1
        ? fc.asyncProperty(cases(this.target), tryOne)
        : fc.asyncProperty(batch, async (all) => void (await Promise.all(all.map(tryOne))));
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
    await this.keep(name, tenant, together === 1 ? [counterexample] : (counterexample as unknown[]), finding);
    say(`  seed ${roundSeed}, path ${details.counterexamplePath}`);
  }

  /** Of cases that were tried together, the one that fails alone. */
  private async keep(kind: KindName, tenant: Tenant, cases: unknown[], finding: Finding): Promise<void> {
    let failing = cases[0];
    for (const one of cases) {
      const failed = await kindOf(kind)
        .run(this.target, one, tenant)
        .then(
          () => false,
          () => true,
        );
      if (failed) failing = one;
    }
    const file = keepRegression({ kind, finding: finding.message.split('\n')[0]!, case: failing });
    say(`\nFOUND by ${kind}: ${finding.message}\n  kept as ${file}`);
  }
}

async function play(target: Target, name: string, regression: Regression): Promise<boolean> {
  try {
    await replay(target, regression);
    say(`${name}: holds`);
    return true;
  } catch (error) {
    say(`${name}: ${(error as Error).message}`);
    return false;
  }
}

async function fuzz(server: Server, target: Target): Promise<boolean> {
  if (values.replay !== undefined)
    return play(target, values.replay, JSON.parse(readFileSync(values.replay, 'utf8')) as Regression);
  let good = true;
  for (const name of regressions()) good = (await play(target, name, readRegression(name))) && good;
  const lanes = values.kind === undefined ? LANES : [values.kind as KindName];
  const campaign = new Campaign(target, server, lanes);
  await campaign.run();
  good &&= campaign.findings === 0;
  const problem = (text: string) => {
    say(`\nFOUND ${text}`);
    good = false;
  };
  await checkInvariants(server.sql).catch((error: Error) => problem(error.message));
  console.log(target.coverage.table);
  const { unreached } = target.coverage;
  if (values.kind === undefined && unreached.length > 0)
    problem(`coverage: no request succeeded with ${unreached.join(', ')}`);
  if (server.log.leaks.length > 0)
    problem(`secret: ${server.log.leaks.length} lines of the log, such as ${server.log.leaks[0]}`);
  const { turnedAway } = target;
  const errors = server.log.errors(turnedAway);
  if (errors.length > 0) problem(`log: ${errors.length} errors, such as\n${errors.slice(0, 30).join('\n')}`);
  if (turnedAway.size > target.sent / 100)
    problem(`status: ${turnedAway.size} answers were 503, more than one in a hundred`);
  console.log(
    `\n${campaign.rate}, ${server.log.lines} lines of log, ${turnedAway.size} sent again after a 503, seed ${seed}: ${good ? 'nothing found' : 'SEE ABOVE'}`,
  );
  return good;
}

async function main(): Promise<void> {
  if (values.kind !== undefined && !(values.kind in KINDS))
    throw new Error(`--kind is one of ${Object.keys(KINDS).join(', ')}`);
  say(`seed ${seed}`);
  const tenants = Array.from({ length: FIRST_LANE + LANES.length }, (_, number) => new Tenant(number));
  const server = await startServer(tenants);
  let target: Target | undefined;
  try {
    target = await Target.open(server.bases, server.sql);
    process.exitCode = (await fuzz(server, target)) ? 0 : 1;
  } finally {
    target?.end();
    await server.stop();
  }
}

void main();
