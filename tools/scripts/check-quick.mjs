// `npm run check:quick`: lint, format, types, the contract tests, and the tests of what changed since main. Prints what
// failed last. docs: CONTRIBUTING.md
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';
import { selectTests } from './select-tests.mjs';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
process.chdir(root);
const outputs = mkdtempSync(path.join(tmpdir(), 'gamewharf-check-'));
process.once('exit', () => rmSync(outputs, { recursive: true, force: true }));

const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).split('\n').filter(Boolean);
const bin = (name) => path.join('node_modules', ...name.split('/'));

// A clone without the remote compares with its own branch.
const [main = 'main'] = git('branch', '--remotes', '--list', 'origin/main', '--format=%(refname)');
const changed = [
  ...git('diff', '--name-only', '--diff-filter=d', git('merge-base', 'HEAD', main)[0]),
  ...git('ls-files', '--others', '--exclude-standard'),
];
const tests = new Map(
  readdirSync('test', { recursive: true })
    .map((name) => `test/${name.split(path.sep).join('/')}`)
    .filter((name) => /^test\/(api|dashboard|operator|platform|deploy)\/[\w-]+\.test\.ts$/.test(name))
    .map((name) => [name, readFileSync(name, 'utf8')]),
);
const selected = selectTests(changed, tests);
const results = path.join(outputs, 'tests.json');

const ESLINT = ['--cache', '--cache-location', 'node_modules/.cache/eslint/', '--no-warn-ignored'];
const steps = {
  lint: [bin('eslint/bin/eslint.js'), ...ESLINT, ...changed.filter((name) => /\.[cm]?[jt]s$/.test(name))],
  format: [bin('prettier/bin/prettier.cjs'), '--check', '--ignore-unknown', ...changed],
  types: [bin('typescript/bin/tsc'), '--noEmit'],
  tests: [
    bin('jest/bin/jest.js'),
    '--json',
    `--outputFile=${results}`,
    'test/contract/',
    ...selected.filter((name) => !name.startsWith('test/contract/')),
  ],
};

/** Shows the progress of the tests; the output of other steps is printed at the end, if they fail. */
async function run(name) {
  const began = performance.now();
  const isTest = name === 'tests';
  const child = spawn(process.execPath, steps[name], {
    stdio: isTest ? ['inherit', 'ignore', 'inherit'] : ['inherit', 'pipe', 'pipe'],
  });
  let printed = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (text) => (printed += text));
  const [code] = await once(child, 'close');
  const seconds = ((performance.now() - began) / 1000).toFixed(0);
  return { name, passed: code === 0, seconds, printed: isTest && code !== 0 ? failedTests() : printed };
}

function failedTests() {
  const { testResults } = JSON.parse(readFileSync(results, 'utf8'));
  return testResults
    .filter(({ status }) => status === 'failed')
    .flatMap(({ name, message, assertionResults }) => {
      const file = path.relative(root, name);
      const failed = assertionResults.filter(({ status }) => status === 'failed');
      return failed.length > 0 ? failed.map(({ fullName }) => `${file}: ${fullName}`) : `${file}: ${message}`;
    })
    .join('\n');
}

const isEmpty = (name) => name !== 'types' && changed.length === 0;
const first = ['lint', 'format', 'types'].filter((name) => !isEmpty(name));
const done = [...(await Promise.all(first.map(run))), await run('tests')];
console.log(`\n${selected.length} test files were selected by the changes since main.`);
for (const { name, passed, seconds } of done)
  console.log(`${passed ? 'passed' : 'FAILED'}  ${name}  ${seconds} s`);
for (const { name, passed, printed } of done)
  if (!passed) console.log(`\n${name} failed:\n${printed.trimEnd()}`);
process.exitCode = done.every(({ passed }) => passed) ? 0 : 1;
