import { spawnSync, type SpawnSyncReturns } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type MockStore, startMock } from '../../client/mock';
import { isInstalled } from '../support/page-examples';
import { runIf } from '../support/run-if';

// The programs in docs/guides/test-your-integration.md: each test finds the mistake, and passes without it.
const root = resolve(__dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'guides', 'test-your-integration.md'), 'utf8');

let store: MockStore;
let folder: string;

beforeAll(async () => {
  expect(spawnSync(process.execPath, ['tools/scripts/compile.mjs'], { cwd: root }).status).toBe(0);
  store = await startMock();
});
afterAll(() => store.stop());
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'integration-page-'));
});
afterEach(() => rmSync(folder, { recursive: true }));

/** The blocks whose first line is a comment with this text. */
const blocks = (title: string): string[] =>
  [...page.matchAll(/^```\w+\n([^]*?)^```$/gm)]
    .map(([, code]) => code!)
    .filter((code) => code.slice(0, code.indexOf('\n')).replace(/^(\/\/|#) /, '') === title);

const write = (name: string, code: string) => writeFileSync(join(folder, name), code);

const PYTHON = ['/usr/bin/python3', 'python3'].find((program) =>
  isInstalled([program, '-m', 'pytest', '--version']),
);

function run(program: string, ...args: string[]): SpawnSyncReturns<string> {
  const { JEST_WORKER_ID: _, ...env } = process.env;
  return spawnSync(program, args, {
    cwd: folder,
    encoding: 'utf8',
    env: { ...env, GAMEWHARF_URL: store.url, GOCACHE: join(tmpdir(), 'go-cache'), GOFLAGS: '-mod=mod' },
  });
}

/** Runs the test with the mistake, and without it. */
function expectRedThenGreen(
  name: string,
  [wrong, right]: string[],
  test: () => SpawnSyncReturns<string>,
  red: RegExp,
) {
  write(name, wrong!);
  const failed = test();
  expect(failed.status).not.toBe(0);
  expect(failed.stdout + failed.stderr).toMatch(red);
  write(name, right!);
  const passed = test();
  expect([passed.status, passed.stdout + passed.stderr]).toEqual([0, expect.any(String)]);
}

test('Node, with its own test runner', () => {
  write('owns.test.mjs', blocks('owns.test.mjs')[0]!);
  const test = () => run(process.execPath, '--test', 'owns.test.mjs');
  expectRedThenGreen('owns.mjs', blocks('owns.mjs'), test, /Missing expected rejection/);
});

/** The package, as if it were installed in the folder. */
function installGamewharf() {
  mkdirSync(join(folder, 'node_modules'), { recursive: true });
  symlinkSync(root, join(folder, 'node_modules', 'gamewharf'));
}

test('Node, with jest and gamewharf/mock', () => {
  installGamewharf();
  write('refund.test.js', blocks('refund.test.js')[0]!);
  write('package.json', '{}');
  const jest = join(root, 'node_modules', 'jest', 'bin', 'jest.js');
  const test = () => run(process.execPath, '--experimental-vm-modules', jest, 'refund.test.js');
  expectRedThenGreen('owns.mjs', blocks('owns.mjs'), test, /Received promise resolved instead of rejected/);
});

/** vitest isn't a dependency of this repository, whose own tests use jest. */
const VITEST = 'vitest@4.1.12';
const runners = mkdtempSync(join(tmpdir(), 'integration-page-'));
afterAll(() => rmSync(runners, { recursive: true }));
const { status: installed } = spawnSync(
  'npm',
  ['install', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', VITEST],
  { cwd: runners },
);

runIf(installed === 0, 'vitest could not be installed').test('Node, with vitest and gamewharf/mock', () => {
  symlinkSync(join(runners, 'node_modules'), join(folder, 'node_modules'));
  installGamewharf();
  write('refund.test.mjs', blocks('refund.test.mjs')[0]!);
  const vitest = join(runners, 'node_modules', 'vitest', 'vitest.mjs');
  const test = () => run(process.execPath, vitest, 'run', 'refund.test.mjs');
  expectRedThenGreen('owns.mjs', blocks('owns.mjs'), test, /promise resolved "false" instead of rejecting/);
});

runIf(PYTHON !== undefined, 'pytest is not installed').test('Python, with pytest', () => {
  write('test_owns.py', blocks('test_owns.py')[0]!);
  const test = () => run(PYTHON!, '-B', '-m', 'pytest', '-q', '-p', 'no:cacheprovider', 'test_owns.py');
  expectRedThenGreen('owns.py', blocks('owns.py'), test, /DID NOT RAISE/);
});

/** The first block, whose last lines the second replaces. */
const corrected = ([wrong, end]: string[], from: string) => [
  wrong!,
  wrong!.slice(0, wrong!.indexOf(from)) + end!.slice(end!.indexOf('\n') + 1),
];

runIf(isInstalled(['go', 'version']), 'go is not installed').test('Go', () => {
  write('go.mod', 'module store\n\ngo 1.19\n');
  write('owns_test.go', blocks('owns_test.go')[0]!);
  const code = corrected(
    [blocks('owns.go')[0]!, blocks('owns.go, the end of Owns')[0]!],
    '\treturn response.Status',
  );
  expectRedThenGreen('owns.go', code, () => run('go', 'test', './...'), /an outage must be an error/);
});

const MONO = [
  'sh',
  '-c',
  'mcs --version && mono --version && ls /usr/lib/mono/*/System.Net.Http.dll',
] as const;
runIf(isInstalled([...MONO]), 'mono with System.Net.Http is not installed').test('C#', () => {
  write('OwnsTest.cs', blocks('OwnsTest.cs')[0]!);
  const code = corrected(
    [blocks('Owns.cs')[0]!, blocks('Owns.cs, the end of Owns')[0]!],
    '        return response.Is',
  );
  const test = () => {
    const compiled = run('mcs', '-r:System.Net.Http.dll', '-out:test.exe', 'Owns.cs', 'OwnsTest.cs');
    return compiled.status === 0 ? run('mono', 'test.exe') : compiled;
  };
  expectRedThenGreen('Owns.cs', code, test, /failed: an outage is not an answer/);
});
