import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { flameGraph, type CpuProfile, selfTimes } from './flame-graph';
import { workloadOf } from './requests';
import { LoadGenerator, MeasuredServer, type ServerName } from './servers';
import { openStore } from './store';
import { READS } from './workload';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    scale: { type: 'string', default: '1' },
    server: { type: 'string', default: 'ours' },
    seconds: { type: 'string', default: '5' },
  },
});

async function main(): Promise<void> {
  const name = positionals.join(' ') || 'profile';
  const endpoint = READS.find((one) => one.name === name);
  if (!endpoint)
    throw new Error(`There is no endpoint ${name}; there are: ${READS.map((one) => one.name).join(', ')}`);
  const seconds = Number(values.seconds);
  const store = await openStore(Number(values.scale), (line) => console.error(line));
  const load = new LoadGenerator();
  let server: MeasuredServer | undefined;
  try {
    const { file, endpoint: called } = await workloadOf(endpoint, store);
    server = await MeasuredServer.start(values.server as ServerName, store);
    const order = { port: server.port, file, connections: 32 };
    await load.drive({ ...order, seconds: 3, from: 0 });
    const folder = join('.bench', 'profiles');
    mkdirSync(folder, { recursive: true });
    const target = join(folder, `${values.server}-${called.replace(/[^a-z0-9]+/g, '-')}`);
    const before = await server.usage();
    const [outcome] = await Promise.all([
      load.drive({ ...order, seconds: seconds + 0.5, from: 0.5 }),
      server.profile(seconds, `${target}.cpuprofile`),
    ]);
    const after = await server.usage();
    const profile = JSON.parse(readFileSync(`${target}.cpuprofile`, 'utf8')) as CpuProfile;
    writeFileSync(`${target}.svg`, flameGraph(profile, `${values.server}: ${called}`));
    console.log(
      `${outcome.answers} answers, ${((after.cpu - before.cpu) / outcome.answers).toFixed(0)} us of processor time each`,
    );
    console.log(selfTimes(profile, 45).join('\n'));
    console.log(`${target}.cpuprofile\n${target}.svg`);
  } finally {
    load.stop();
    await server?.stop();
    await store.stop();
  }
}

void main();
