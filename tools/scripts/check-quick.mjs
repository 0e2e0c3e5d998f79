// `npm run check:quick`: lint, types, the contract tests, and the tests of what changed since main. docs: CONTRIBUTING.md
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
process.chdir(root);

const git = (...args) => execFileSync('git', args, { encoding: 'utf8' }).split('\n').filter(Boolean);
const bin = (name) => path.join('node_modules', ...name.split('/'));

// A clone without the remote compares with its own branch.
const [main = 'main'] = git('branch', '--remotes', '--list', 'origin/main', '--format=%(refname)');
const changed = [
  ...git('diff', '--name-only', '--diff-filter=d', git('merge-base', 'HEAD', main)[0]),
  ...git('ls-files', '--others', '--exclude-standard'),
];
const tests = readdirSync('test', { recursive: true })
  .map((name) => `test/${name.split(path.sep).join('/')}`)
  .filter((name) => /^test\/(api|dashboard|operator|platform|deploy)\/[\w-]+\.test\.ts$/.test(name));

// Every test starts the whole service, so the import graph would select all of them. A source file selects the tests
// named after it or its folder: src/collections/*.ts selects test/api/collections*.test.ts.
const words = new Set(
  changed
    .filter((name) => /^(src|migrations)\//.test(name))
    .flatMap((name) => [...name.split('/').slice(1, -1), path.basename(name).split('.')[0]])
    .filter((word) => word.length > 2)
    .map((word) => word.replace(/s$/, '')),
);
const isNamedAfter = (test) => {
  const name = path.basename(test, '.test.ts');
  return [...words].some(
    (word) => name === word || name.startsWith(`${word}-`) || name.startsWith(`${word}s`),
  );
};
const selected = tests.filter((test) => changed.includes(test) || isNamedAfter(test));

const steps = {
  lint: [bin('eslint/bin/eslint.js'), '--cache', '--cache-location', 'node_modules/.cache/eslint/', '.'],
  types: [bin('typescript/bin/tsc'), '--noEmit'],
  tests: [bin('jest/bin/jest.js'), 'test/contract/', ...selected],
};

async function run(name) {
  const began = performance.now();
  const child = spawn(process.execPath, steps[name], { stdio: 'inherit' });
  const [code] = await once(child, 'exit');
  return { name, passed: code === 0, seconds: ((performance.now() - began) / 1000).toFixed(0) };
}

const results = [...(await Promise.all(['lint', 'types'].map(run))), await run('tests')];
console.log(`\n${selected.length} test files were selected by the changes since main.`);
for (const { name, passed, seconds } of results)
  console.log(`${passed ? 'passed' : 'FAILED'}  ${name}  ${seconds} s`);
process.exitCode = results.every(({ passed }) => passed) ? 0 : 1;
