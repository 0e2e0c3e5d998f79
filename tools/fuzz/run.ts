import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import { Campaign, LANES, say } from './campaign';
import { checkInvariants } from './invariants';
import { type KindName, KINDS } from './kinds';
import { type Regression, readRegression, regressions, replay } from './regressions';
import { startServer, type Server } from './server';
import { Target } from './target';
import { FIRST_LANE, Tenant } from '../../test/support/world/world';

const { values } = parseArgs({
  options: {
    seed: { type: 'string' },
    requests: { type: 'string', default: '50000' },
    time: { type: 'string' },
    kind: { type: 'string' },
    build: { type: 'string' },
    replay: { type: 'string' },
  },
});

const seed = Number(values.seed ?? randomInt(2 ** 31));
const bounds = { seed, requests: Number(values.requests), seconds: Number(values.time ?? Infinity) };

async function play(target: Target, name: string, regression: Regression): Promise<boolean> {
  try {
    await replay(target, regression);
    say(`${name}: passed`);
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
  const problem = (text: string) => {
    say(`\nFOUND ${text}`);
    good = false;
  };
  for (const name of regressions()) good = (await play(target, name, readRegression(name))) && good;
  const campaign = new Campaign(target, server, values.kind ? [values.kind as KindName] : LANES, bounds);
  await campaign.run();
  good &&= campaign.findings === 0;
  const { log } = server;
  const { retried, coverage } = target;
  const errors = log.errors(retried);
  if (errors.length > 0) problem(`log: ${errors.length} errors, such as\n${errors.slice(0, 30).join('\n')}`);
  if (log.leaks.length > 0) problem(`secret: ${log.leaks.length} log lines, such as ${log.leaks[0]}`);
  if (retried.size > target.sent / 100)
    problem(`status: ${retried.size} responses were 503, more than one in a hundred`);
  await checkInvariants(server.sql).catch((error: Error) => problem(error.message));
  if (values.kind === undefined && coverage.unreached.length > 0)
    problem(`coverage: no request succeeded with ${coverage.unreached.join(', ')}`);
  console.log(
    `${coverage.table}\n\n${campaign.rate}, ${log.lines} log lines, ${retried.size} retried after a 503, ` +
      `seed ${seed}: ${good ? 'nothing found' : 'SEE ABOVE'}`,
  );
  return good;
}

async function main(): Promise<void> {
  if (values.kind !== undefined && !(values.kind in KINDS))
    throw new Error(`--kind is one of ${Object.keys(KINDS).join(', ')}`);
  say(`seed ${seed}`);
  const tenants = Array.from({ length: FIRST_LANE + LANES.length }, (_, number) => new Tenant(number));
  const server = await startServer(tenants, values.build);
  let target: Target | undefined;
  try {
    target = await Target.open(server.bases, server.sql, server.webhook);
    process.exitCode = (await fuzz(server, target)) ? 0 : 1;
  } finally {
    target?.end();
    await server.stop();
  }
}

void main();
