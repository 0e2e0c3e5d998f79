import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { createEmptyTestResult } from '@jest/test-result';
import circus from 'jest-circus/runner';
import { isKilled } from './failure.mjs';

const skipped = { ancestorTitles: [], failureMessages: [], fullName: '', status: 'pending', title: '' };

// Beside the tests, in a copy of the project that lives as long as the run.
const NAMES = new URL('../test-names.json', import.meta.url);
const names = existsSync(NAMES) ? JSON.parse(readFileSync(NAMES, 'utf8')) : {};

/** Loads a file, which costs more than most tests in it, only where none has failed yet and a test in it is asked for. */
export default async function untilFailure(globalConfig, config, environment, runtime, path, ...others) {
  const asked = new RegExp(globalConfig.testNamePattern ?? '', 'i');
  // Jest takes a file without any test for an error.
  if (isKilled() || names[path]?.every((name) => !asked.test(name)))
    return { ...createEmptyTestResult(), numPendingTests: 1, testResults: [skipped] };
  const result = await circus.default(globalConfig, config, environment, runtime, path, ...others);
  if (!names[path]) {
    names[path] = result.testResults.map(({ fullName }) => fullName);
    writeFileSync(NAMES, JSON.stringify(names));
  }
  return result;
}
