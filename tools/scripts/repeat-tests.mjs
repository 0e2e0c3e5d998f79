// Finds flaky tests: runs the suite repeatedly, with its files in random order and busy loops in parallel, and lists the failures.
//
//     node tools/scripts/repeat-tests.mjs --times 10
//     node tools/scripts/repeat-tests.mjs --times 3 --busy 4 -- test/api/oauth
//     node tools/scripts/repeat-tests.mjs -- --config jest.system.config.js
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { loadavg, tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { parseArgs } from 'node:util';

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { times: { type: 'string', default: '10' }, busy: { type: 'string', default: '2' } },
});
const folder = mkdtempSync(path.join(tmpdir(), 'gamewharf-repeat-'));
const loops = Array.from({ length: Number(values.busy) }, () =>
  spawn(process.execPath, ['-e', 'for (;;);'], { stdio: 'ignore' }),
);
let jest;
const stop = () => {
  for (const loop of loops) loop.kill('SIGKILL');
  jest?.kill('SIGTERM');
  rmSync(folder, { recursive: true, force: true });
};
process.once('exit', stop);
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

async function run() {
  const output = path.join(folder, 'results.json');
  rmSync(output, { force: true });
  const args = ['--testSequencer=./test/support/random-order.mjs', '--json', `--outputFile=${output}`];
  jest = spawn(process.execPath, ['node_modules/jest/bin/jest.js', ...args, ...positionals], {
    stdio: 'ignore',
  });
  await once(jest, 'exit');
  return JSON.parse(readFileSync(output, 'utf8'));
}

const counts = new Map();
for (let i = 1; i <= Number(values.times); i++) {
  const began = performance.now();
  const { numPassedTests, numFailedTests, testResults } = await run();
  const messages = [];
  const failed = testResults
    .filter(({ status }) => status === 'failed')
    .flatMap(({ name, assertionResults, message }) => {
      const file = path.relative(process.cwd(), name);
      const titles = assertionResults.filter(({ status }) => status === 'failed');
      for (const { failureMessages } of titles) messages.push(...failureMessages);
      if (titles.length === 0) messages.push(message);
      return titles.length > 0
        ? titles.map(({ fullName }) => `${file}: ${fullName}`)
        : [`${file}: did not run`];
    });
  for (const test of failed) counts.set(test, (counts.get(test) ?? 0) + 1);
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  const load = loadavg()[0].toFixed(1);
  console.log(`run ${i}: ${numPassedTests} passed, ${numFailedTests} failed, ${seconds} s, load ${load}`);
  for (const test of failed) console.log(`  ${test}`);
  for (const message of messages) console.log(message.split('\n').slice(0, 20).join('\n'));
}

console.log(
  counts.size === 0 ? `\nNothing failed in ${values.times} runs.` : `\nFailed in ${values.times} runs:`,
);
for (const [test, count] of [...counts].sort((a, b) => b[1] - a[1])) console.log(`  ${count} x ${test}`);
process.exitCode = counts.size === 0 ? 0 : 1;
