import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, dirname, join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { until } from '../support/time';

// Runs `npm run package` unchanged, and creates a folder with only the tarball and its dependencies.
const OPERATOR_TOKEN = 'operator-token-of-the-package-test';
const root = resolve(__dirname, '..', '..');
let work: string;
let folder: string;
let contents: string[];
let environment: NodeJS.ProcessEnv;
let service: ChildProcess | undefined;
let printed = '';

interface Manifest {
  private?: boolean;
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
}

const readJson = <T>(...path: string[]) => JSON.parse(readFileSync(join(...path), 'utf8')) as T;

function run(program: string, args: string[], cwd: string, env: NodeJS.ProcessEnv = environment): string {
  const { status, stdout, stderr } = spawnSync(program, args, { cwd, encoding: 'utf8', env });
  if (status !== 0) throw new Error(`${program} ${args.join(' ')}\n${stdout}${stderr}`);
  return stdout;
}

/** Hard links, which are fast, if both are on one disk. */
function copyTree(from: string, to: string): void {
  mkdirSync(to, { recursive: true });
  for (const name of readdirSync(from)) {
    if (name === 'node_modules') continue;
    const [source, target] = [join(from, name), join(to, name)];
    if (lstatSync(source).isDirectory()) copyTree(source, target);
    else if (!lstatSync(source).isSymbolicLink())
      try {
        linkSync(source, target);
      } catch {
        copyFileSync(source, target);
      }
  }
}

/** The production packages at the versions of the lock file, without those of other platforms. */
async function addDependencies(): Promise<void> {
  const script = pathToFileURL(join(root, 'tools', 'scripts', 'production-packages.mjs')).href;
  // jest cannot import() it.
  const program = `import { readFileSync } from 'node:fs'; import { forProduction } from '${script}';
    console.log(Object.keys(forProduction(JSON.parse(readFileSync('package-lock.json', 'utf8'))).packages).join('\\n'))`;
  const places = run(process.execPath, ['--input-type=module', '-e', program], root).trim().split('\n');
  for (const place of places)
    if (place !== '' && existsSync(join(root, place))) copyTree(join(root, place), join(folder, place));
}

beforeAll(async () => {
  work = mkdtempSync(join(tmpdir(), 'gamewharf-package-'));
  // Root runs PostgreSQL as another account, which needs access here.
  chmodSync(work, 0o755);
  folder = join(work, 'empty');
  environment = {
    PATH: [dirname(process.execPath), process.env.PATH].join(delimiter),
    HOME: work,
    npm_config_cache: join(work, 'npm'),
    npm_config_offline: 'true',
    npm_config_update_notifier: 'false',
  };
  run('npm', ['run', 'package', '--', '--pack-destination', work], root);
  const { version } = readJson<Manifest>(root, 'package.json');
  const tarball = join(work, `gamewharf-${version}.tgz`);
  contents = run('tar', ['-tzf', tarball], work).trim().split('\n');
  const installed = join(folder, 'node_modules', 'gamewharf');
  mkdirSync(installed, { recursive: true });
  run('tar', ['-xzf', tarball, '--strip-components=1', '-C', installed], work);
  writeFileSync(
    join(folder, 'package.json'),
    JSON.stringify({ private: true, dependencies: { gamewharf: version } }),
  );
  await addDependencies();
  // Creates the programs of packages like an install does.
  run('npm', ['rebuild', '--ignore-scripts', 'gamewharf'], folder);
});

afterAll(async () => {
  if (service?.exitCode === null && service.signalCode === null) {
    const ended = once(service, 'exit');
    service.kill('SIGTERM');
    await ended;
  }
  rmSync(work, { recursive: true, force: true });
});

test('the tarball contains only the compiled service, the migrations and the clients', () => {
  const others = contents.filter(
    (name) =>
      !/^package\/(package\.json|README\.md|LICENSE|client\/((index|mock|operator)\.(js|d\.ts)|(operator-)?api\.d\.ts))$/.test(
        name,
      ) && !/^package\/dist\/(src|migrations)\/.+\.js$/.test(name),
  );
  expect(
    others.filter((name) => !/^package\/dist\/src\/.+\/assets\/[\w-]+\.(css|html|svg|json)$/.test(name)),
  ).toEqual([]);
  for (const name of ['dist/src/cli.js', 'dist/src/main.js', 'client/api.d.ts', 'client/operator-api.d.ts'])
    expect(contents).toContain(`package/${name}`);
});

test('every compiled file has its source in this project', () => {
  const compiled = contents
    .map((name) => name.replace(/^package\/dist\//, ''))
    .filter((name) => /^(src|migrations)\//.test(name));
  const stale = compiled.filter(
    (name) => ![name, name.replace(/\.js$/, '.ts')].some((source) => existsSync(join(root, source))),
  );
  expect(stale).toEqual([]);
});

test('the package is private and needs no development packages', () => {
  const manifest = readJson<Manifest>(folder, 'node_modules', 'gamewharf', 'package.json');
  const { devDependencies } = readJson<Manifest>(root, 'package.json');
  expect(manifest.private).toBe(true);
  const has = (name: string) => existsSync(join(folder, 'node_modules', name));
  // A tool of the tests that is also a part of openid-client.
  expect(Object.keys(devDependencies).filter(has)).toEqual(['oauth4webapi']);
  expect(Object.keys(manifest.dependencies).filter((name) => !has(name))).toEqual([]);
});

test('`npx gamewharf --help` prints the help, and a mistyped command does not start the service', () => {
  expect(run('npx', ['gamewharf', '--help'], folder)).toMatch(/Usage: gamewharf[^]*migrate[^]*import/);
  expect(() => run('npx', ['gamewharf', 'migrte'], folder)).toThrow("Unknown command 'migrte'");
});

test('`npx gamewharf` in an empty folder starts the demo store on its own PostgreSQL', async () => {
  service = spawn('npx', ['gamewharf'], { cwd: folder, env: { ...environment, PORT: '0', OPERATOR_TOKEN } });
  for (const stream of [service.stdout, service.stderr])
    stream?.on('data', (data: Buffer) => (printed += String(data)));
  await until(() => {
    if (service!.exitCode !== null) throw new Error(printed);
    return printed.includes('Press Ctrl-C to stop the service');
  });
  const [, address, key] = /listens on (\S+)[^]*?(gw_\w+)/.exec(printed)!;
  const profile = await fetch(`${address}/profile`, { headers: { authorization: `Bearer ${key}` } });
  expect([profile.status, await profile.json()]).toEqual([200, { user: expect.any(Object) as object }]);
  expect(existsSync(join(folder, '.data', 'postgres'))).toBe(true);
  expect(existsSync(join(folder, 'node_modules', 'gamewharf', '.data'))).toBe(false);
});

test('the README is about the package, not about a clone', () => {
  const readme = readFileSync(join(folder, 'node_modules', 'gamewharf', 'README.md'), 'utf8');
  expect(readme).toContain('npm install --ignore-scripts ./gamewharf-');
  expect(readme).not.toMatch(/npm (ci|test|start)|\]\((?!https:)/);
});

test('TypeScript files that use gamewharf/client and gamewharf/operator compile and work', () => {
  const [, address, key] = /listens on (\S+)[^]*?(gw_\w+)/.exec(printed)!;
  const files = ['shop.ts', 'checkout.ts'];
  for (const file of files) copyFileSync(join(__dirname, 'package-client', file), join(folder, file));
  const options = {
    module: 'nodenext',
    target: 'ES2023',
    lib: ['ES2023', 'DOM'],
    strict: true,
    typeRoots: [join(root, 'node_modules', '@types')],
    types: ['node'],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files }));
  run(process.execPath, [join(root, 'node_modules', 'typescript', 'bin', 'tsc')], folder);
  expect(JSON.parse(run(process.execPath, ['shop.js', address!, key!], folder))).toEqual({
    username: expect.any(String) as string,
    title: 'Typed',
    games_count: 1,
    rejected: ['invalid game'],
  });
  expect(JSON.parse(run(process.execPath, ['checkout.js', address!, OPERATOR_TOKEN], folder))).toEqual({
    reference: 'order-1',
    keys: 1,
    status: 'refunded',
  });
});

test('a signal to npx ends the service and its PostgreSQL', async () => {
  const pid = join(folder, '.data', 'postgres', 'postmaster.pid');
  expect(existsSync(pid)).toBe(true);
  service!.kill('SIGTERM');
  await until(() => !existsSync(pid));
});

test('no page mentions `npx gamewharf` before the installation', () => {
  const pages = [
    'README.md',
    'CONTRIBUTING.md',
    ...readdirSync(join(root, 'docs'), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.md'))
      .map((name) => join('docs', name)),
  ];
  const wrong = pages.filter((page) => {
    const text = readFileSync(join(root, page), 'utf8');
    const bare = text.search(/npx gamewharf/);
    return bare >= 0 && !text.slice(0, bare).includes('npm install --ignore-scripts ./gamewharf-');
  });
  expect(wrong).toEqual([]);
});
