import { parseArgs } from 'node:util';
import { hasRedis } from '../../test/support/redis';
import { Lab } from './lab';
import type { Outcome, Scenario } from './scenario';
import { SCENARIOS } from './scenarios';

const { values } = parseArgs({
  options: {
    /** Comma-separated names. */
    only: { type: 'string' },
    quick: { type: 'boolean', default: false },
    list: { type: 'boolean', default: false },
  },
});
const { quick } = values;
const names = values.only?.split(',');
const INTERRUPTED = 130;
const say = (line: string) => console.error(line);

/** `broken` is undefined if it couldn't be run, which proves nothing either way. */
type Attempt = Pick<Outcome, 'happened'> & Partial<Outcome>;

interface Verdict {
  scenario: Scenario;
  kept: Attempt;
  control: Attempt;
}

async function judge(lab: Lab, scenario: Scenario): Promise<Verdict> {
  const attempt = async (guarded: boolean): Promise<Attempt> => {
    const begun = performance.now();
    try {
      const outcome = await scenario.run({ lab, guarded, quick });
      const seconds = ((performance.now() - begun) / 1000).toFixed(0);
      say(`${scenario.name}${guarded ? '' : ', control'} (${seconds} s): ${outcome.happened}`);
      return outcome;
    } catch (error) {
      say(`${scenario.name}${guarded ? '' : ', control'}: ${(error as Error).stack}`);
      return { happened: `it could not be run: ${(error as Error).message}` };
    } finally {
      await lab.clear();
    }
  };
  return { scenario, kept: await attempt(true), control: await attempt(false) };
}

const describeKept = ({ happened, broken }: Attempt) =>
  broken?.length === 0 ? happened : `BROKEN: ${broken?.join('; ') ?? happened}`;
const describeControl = ({ happened, broken }: Attempt) =>
  broken && broken.length > 0 ? broken.join('; ') : `PASSED: ${happened}`;

/** A broken guarantee, or a control that didn't break it. */
function listProblems({ scenario: { name }, kept, control }: Verdict): string[] {
  return [
    ...(kept.broken?.length === 0 ? [] : [`${name}: ${describeKept(kept)}`]),
    ...(control.broken?.length ? [] : [`${name}, control: ${describeControl(control)}`]),
  ];
}

const printRow = (cells: string[]) =>
  console.log(`| ${cells.map((cell) => cell.replaceAll('|', '/')).join(' | ')} |`);

const printVerdict = ({ scenario: { fault, promise, control }, ...seen }: Verdict) =>
  printRow([fault, promise, describeKept(seen.kept), control, describeControl(seen.control)]);

async function main(): Promise<number> {
  const chosen = SCENARIOS.filter(({ name, long }) => names?.includes(name) ?? !(quick && long));
  if (values.list || chosen.length === 0) {
    for (const { name, fault } of SCENARIOS) console.log(`${name}: ${fault}`);
    return values.list ? 0 : 1;
  }
  if (!hasRedis && !quick) say('redis-lost is skipped: this machine has no redis-server');
  const opening = Lab.open();
  const verdicts: Verdict[] = [];
  let interrupted = false;
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      interrupted = true;
      void opening.then((lab) => lab.close()).finally(() => process.exit(INTERRUPTED));
    });
  const lab = await opening;
  printRow(['fault', 'promised', 'what happened', 'control', 'how it failed']);
  printRow(Array<string>(5).fill('---'));
  try {
    for (const scenario of chosen) {
      if (interrupted) return INTERRUPTED;
      const verdict = await judge(lab, scenario);
      verdicts.push(verdict);
      printVerdict(verdict);
    }
  } finally {
    await lab.close();
  }
  const problems = verdicts.flatMap(listProblems);
  for (const problem of problems) say(problem);
  return problems.length > 0 ? 1 : 0;
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
