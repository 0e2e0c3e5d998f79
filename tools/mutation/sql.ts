/** Changes one place of one SQL statement at a time, and counts the changes that no test notices. See docs/explanation/mutation.md. */
import { spawn } from 'node:child_process';
import { parseArgs } from 'node:util';
import startDatabase from '../../test/support/global-setup';
import { changesIn, type SqlChange } from './sql-changes';
import { TARGETS } from './targets';

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    mutate: { type: 'string', multiple: true },
    test: { type: 'string', multiple: true },
    at: { type: 'string', multiple: true },
    list: { type: 'boolean', default: false },
  },
});

async function main(): Promise<void> {
  const target = TARGETS[positionals[0] ?? ''];
  if (!target || positionals.length > 1)
    throw new Error(`Name one target: ${Object.keys(TARGETS).join(', ')}`);
  const changes = (values.mutate ?? target.mutate)
    .flatMap(changesIn)
    .filter(({ start }) => !values.at || values.at.includes(String(start)));
  if (values.list) return changes.forEach((change) => console.log(shown(change)));
  await startDatabase();
  try {
    const tests = values.test ?? target.tests;
    if ((await outcomeOf(tests)) !== 'survived') throw new Error('Without any change the tests fail');
    const survived: SqlChange[] = [];
    for (const [i, change] of changes.entries()) {
      const outcome = await outcomeOf(tests, change);
      if (outcome === 'survived') survived.push(change);
      console.log(`${i + 1}/${changes.length} ${outcome} ${shown(change)}`);
    }
    console.log(
      `\n${changes.length - survived.length} of ${changes.length} changes were noticed, not these:`,
    );
    for (const change of survived) console.log(shown(change));
  } finally {
    await globalThis.testServer?.stop();
  }
}

async function outcomeOf(tests: string[], change?: SqlChange): Promise<'noticed' | 'survived'> {
  const jest = spawn(
    process.execPath,
    [
      'node_modules/jest/bin/jest.js',
      '--config',
      'tools/mutation/sql.jest.config.js',
      '--runInBand',
      '--bail',
      ...tests,
    ],
    {
      stdio: 'ignore',
      env: {
        ...process.env,
        // Ends each file at its first failure.
        __STRYKER_ACTIVE_MUTANT__: '0',
        ...(change && { SQL_CHANGE: JSON.stringify(change) }),
      },
    },
  );
  const code = await new Promise((resolve) => jest.once('close', resolve));
  return code === 0 ? 'survived' : 'noticed';
}

const shown = ({ file, start, from, to }: SqlChange) =>
  `${file} at ${start}: \`${from.replace(/\s+/g, ' ').trim()}\` is \`${to.trim()}\``;

main().catch((error: unknown) => {
  console.error((error as Error).message);
  process.exitCode = 1;
});
