import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Campaign, LANES, say } from './campaign';
import { Company } from './company';
import { terminateConnections } from './floods/kills';
import { type Flood, runFlood } from './floods/flood';
import { SHAPES, type ShapeName } from './floods/shapes';
import { checkInvariants } from './invariants';
import { type KindName, KINDS } from './kinds';
import { type Regression, regressions, replay, readRegression } from './regressions';
import { type Server, startServer } from './server';
import { Target } from './target';
import { FIRST_LANE, Tenant } from './world';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    requests: { type: 'string', default: '50000' },
    time: { type: 'string' },
    kind: { type: 'string' },
    kills: { type: 'boolean', default: false },
    flood: { type: 'string' },
    floods: { type: 'string', default: '5' },
    build: { type: 'string' },
    replay: { type: 'string' },
  },
});

const seed = Number(values.seed ?? randomInt(2 ** 31));
const requests = Number(values.requests);
const seconds = Number(values.time ?? Infinity);
const floodSeconds = Number(values.floods);
/** Half of an import may be there when it is interrupted, and a sale or none: that is for chaos to judge. */
const NOT_INTERRUPTED: KindName[] = ['import', 'sale'];
const KILL_EVERY = 1000;

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

const lanesOf = (): KindName[] => {
  if (values.kind !== undefined) return [values.kind as KindName];
  if (values.flood !== undefined) return [];
  return LANES.filter((kind) => !(values.kills && NOT_INTERRUPTED.includes(kind)));
};

const shapesOf = (): ShapeName[] => {
  if (values.flood !== undefined) return values.flood.split(',') as ShapeName[];
  return values.kind !== undefined || floodSeconds === 0 ? [] : (Object.keys(SHAPES) as ShapeName[]);
};

/** One after the other; answers how many of them found something. */
async function flood(target: Target): Promise<number> {
  let found = 0;
  for (const shape of shapesOf()) {
    const one: Flood = { shape, seconds: floodSeconds, seed };
    try {
      say(`flood ${shape}: ${await runFlood(target, one)}`);
    } catch (error) {
      found++;
      say(
        `\nFOUND by flood: ${(error as Error).message}\n  again: --flood ${shape} --floods ${floodSeconds} --seed ${seed}`,
      );
    }
  }
  return found;
}

async function campaign(server: Server, target: Target): Promise<Campaign> {
  const campaign = new Campaign(target, server, lanesOf(), { seed, requests, seconds });
  target.kills = values.kills;
  const kill = () => void terminateConnections(server.sql).catch(() => undefined);
  const killing = values.kills ? setInterval(kill, KILL_EVERY) : undefined;
  await campaign.run();
  clearInterval(killing);
  return campaign;
}

async function fuzz(server: Server, target: Target): Promise<boolean> {
  if (values.replay !== undefined)
    return play(target, values.replay, JSON.parse(readFileSync(values.replay, 'utf8')) as Regression);
  const lanes = lanesOf();
  let good = true;
  const problem = (text: string) => {
    say(`\nFOUND ${text}`);
    good = false;
  };
  if (values.flood === undefined)
    for (const name of regressions()) {
      good = (await play(target, name, readRegression(name))) && good;
    }
  let summary = '';
  if (lanes.length > 0) {
    const company = await Company.join([...server.replicas, server.front], values.kills);
    const { findings, rate } = await campaign(server, target);
    good &&= findings === 0;
    for (const text of await company.leave()) problem(text);
    summary = `${target.coverage.table}\n\n${company}\n\n${rate}, `;
  }
  const { turnedAway } = target;
  // Floods end in refusals, each of which is a line: what must not be in them is a status of its own.
  const errors = server.log.errors(turnedAway, values.kills);
  if (errors.length > 0) problem(`log: ${errors.length} errors, such as\n${errors.slice(0, 30).join('\n')}`);
  if (!values.kills && turnedAway.size > target.sent / 100)
    problem(`status: ${turnedAway.size} answers were 503, more than one in a hundred`);
  if ((await flood(target)) > 0) good = false;
  await checkInvariants(server.sql).catch((error: Error) => problem(error.message));
  // Sales are left out where backends are killed.
  const played = (operation: string) => !values.kills || !operation.includes(' /operator/');
  const unreached = target.coverage.unreached.filter(played);
  if (lanes.length > 1 && unreached.length > 0)
    problem(`coverage: no request succeeded with ${unreached.join(', ')}`);
  if (server.log.leaks.length > 0)
    problem(`secret: ${server.log.leaks.length} lines of the log, such as ${server.log.leaks[0]}`);
  console.log(
    `${summary}${server.log.lines} lines of log, ${turnedAway.size} sent again after a 503, seed ${seed}: ${good ? 'nothing found' : 'SEE ABOVE'}`,
  );
  return good;
}

const requireKnown = (option: string, names: string[], known: object) => {
  for (const name of names)
    if (!(name in known)) throw new Error(`--${option} is one of ${Object.keys(known).join(', ')}`);
};

async function main(): Promise<void> {
  requireKnown('kind', values.kind === undefined ? [] : [values.kind], KINDS);
  requireKnown('flood', values.flood?.split(',') ?? [], SHAPES);
  say(`seed ${seed}`);
  const tenants = Array.from({ length: FIRST_LANE + LANES.length }, (_, number) => new Tenant(number));
  const server = await startServer(tenants, values.build);
  let target: Target | undefined;
  try {
    target = await Target.open(
      server.replicas.map(({ base }) => base),
      server.sql,
      server.front,
      server.webhook,
    );
    process.exitCode = (await fuzz(server, target)) ? 0 : 1;
  } finally {
    target?.end();
    await server.stop();
  }
}

void main();
