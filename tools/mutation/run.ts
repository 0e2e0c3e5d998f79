/**
 * Changes the code that decides who gets in, with what, in which order and for how much, one place at a time, and counts
 * the changes that no test notices. See docs/explanation/mutation.md.
 */
import { parseArgs } from 'node:util';
import type { Stryker } from '@stryker-mutator/core';
import startDatabase from '../../test/support/global-setup';
import { type Target, TARGETS } from './targets';

type Options = ConstructorParameters<typeof Stryker>[0];

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    mutate: { type: 'string', multiple: true },
    test: { type: 'string', multiple: true },
    incremental: { type: 'boolean', default: false },
  },
});

async function main(): Promise<void> {
  const names = positionals.length > 0 ? positionals : Object.keys(TARGETS);
  const unknown = names.filter((name) => !TARGETS[name]);
  if (unknown.length > 0)
    throw new Error(
      `There is no target ${unknown.join(', ')}; there are: ${Object.keys(TARGETS).join(', ')}`,
    );

  const stryker = await import('@stryker-mutator/core');
  await startDatabase();
  try {
    for (const name of names) await new stryker.Stryker(optionsOf(name, TARGETS[name]!)).runMutationTest();
  } finally {
    await globalThis.testServer?.stop();
  }
}

const optionsOf = (name: string, { mutate, tests }: Target): Options => ({
  mutate: values.mutate ?? mutate,
  incremental: values.incremental,
  incrementalFile: `reports/mutation/${name}-incremental.json`,
  htmlReporter: { fileName: `reports/mutation/${name}.html` },
  jsonReporter: { fileName: `reports/mutation/${name}.json` },
  jest: {
    configFile: 'tools/mutation/jest.config.js',
    enableFindRelatedTests: false,
    config: { testMatch: (values.test ?? tests).map((test) => `<rootDir>/${test}`) },
  },
});

main().catch((error: unknown) => {
  console.error((error as Error).message);
  process.exitCode = 1;
});
