import { mkdir, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { printTable } from '../../src/commands/print-table';
import { importUsers, type Place, restart, revokeKey } from './disturbances';
import { Lab } from './lab';
import { visit } from './mixed-load';
import { Tally } from './tally';
import { type Trend, trendsOf, type Vitals, vitalsOf } from './vitals';

const { values } = parseArgs({
  options: {
    minutes: { type: 'string', default: '60' },
    clients: { type: 'string', default: '16' },
    /** Where the figures go. */
    figures: { type: 'string', default: '.soak/figures.json' },
  },
});
const minutes = Number(values.minutes);
const say = (line: string) => console.error(line);

const SAMPLE_EVERY = Math.min(10_000, (minutes * 60_000) / 20);
/** After so many things a client connects anew, as clients in the world come and go. */
const THINGS_A_CONNECTION = 40;
const MOST_PROBLEMS = 50;
const EVERY = { import: 20_000, revocation: 30_000, restart: 60_000 };

interface Figures {
  minutes: number;
  requests: number;
  answers: string;
  done: Record<keyof typeof EVERY, number>;
  problems: string[];
  trends: Trend[];
  samples: Vitals[];
}

async function soak(lab: Lab): Promise<Figures> {
  const postgres = await lab.postgres();
  await postgres.start();
  const [enduring, restarted] = [await lab.service(postgres.url), await lab.service(postgres.url)];
  await Promise.all([enduring.start(), restarted.start()]);
  const balancer = await lab.balancer([enduring, restarted]);
  const place: Place = { lab, database: postgres.url, balancer, restarted };

  const begun = performance.now();
  const elapsed = () => performance.now() - begun;
  const goesOn = () => elapsed() < minutes * 60_000;
  const tally = new Tally({ times: false });
  const samples: Vitals[] = [];
  const problems: string[] = [];
  const done = { import: 0, revocation: 0, restart: 0 };
  const tell = (what: string) => {
    if (problems.length < MOST_PROBLEMS) problems.push(`${(elapsed() / 1000).toFixed(0)} s: ${what}`);
  };

  const client = async (number: number) => {
    while (goesOn()) await visit(balancer.url, number, THINGS_A_CONNECTION, tally, tell);
  };
  const repeat = async (what: keyof typeof EVERY, work: () => Promise<string | undefined>) => {
    for (let next = EVERY[what]; ; next += EVERY[what]) {
      while (goesOn() && elapsed() < next) await sleep(100);
      if (!goesOn()) return;
      const problem = await work().catch((error: Error) => `${what}: ${error.message}`);
      if (problem) tell(problem);
      else {
        done[what]++;
        say(`${(elapsed() / 1000).toFixed(0)} s: ${what}`);
      }
    }
  };
  const watch = async () => {
    for (let next = 0; goesOn(); next += SAMPLE_EVERY) {
      while (goesOn() && elapsed() < next) await sleep(100);
      samples.push(await vitalsOf(enduring, elapsed() / 1000));
    }
  };
  await Promise.all([
    ...Array.from({ length: Number(values.clients) }, (_, number) => client(number)),
    repeat('import', () => importUsers(place, done.import)),
    repeat('revocation', () => revokeKey(place)),
    repeat('restart', () => restart(place)),
    watch(),
  ]);
  return {
    minutes,
    requests: tally.total,
    answers: String(tally),
    done,
    problems,
    trends: trendsOf(samples),
    samples,
  };
}

function print({ requests, answers, done, trends, problems }: Figures): void {
  console.log(`${minutes} minutes, ${requests} requests: ${answers}`);
  console.log(`${done.import} imports, ${done.revocation} revocations, ${done.restart} restarts`);
  console.log();
  const shown = (value: number) => value.toFixed(value < 1000 ? 1 : 0);
  printTable([
    ['', 'SECOND QUARTER', 'LAST QUARTER', ''],
    ...trends.map(({ vital, second_quarter, last_quarter, flat }) => [
      vital.replaceAll('_', ' '),
      shown(second_quarter),
      shown(last_quarter),
      flat ? 'flat' : 'GROWS',
    ]),
  ]);
  for (const problem of problems) console.log(problem);
}

async function main(): Promise<number> {
  if (!(minutes > 0)) throw new Error('--minutes takes a number above 0');
  const opening = Lab.open();
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => void opening.then((lab) => lab.close()).finally(() => process.exit(130)));
  const lab = await opening;
  try {
    say(`soaking for ${minutes} minutes`);
    const figures = await soak(lab);
    await mkdir(dirname(values.figures), { recursive: true });
    await writeFile(values.figures, JSON.stringify(figures, undefined, 2));
    print(figures);
    return figures.problems.length > 0 || figures.trends.some(({ flat }) => !flat) ? 1 : 0;
  } finally {
    await lab.close();
  }
}

main().then(
  (code) => process.exit(code),
  (error: unknown) => {
    console.error(error);
    process.exit(1);
  },
);
