import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { temporaryFolder } from '../support/temporary';
import { until } from '../support/time';

let folder: string;
let compiler: ChildProcess;

const git = (...words: string[]) =>
  execFileSync('git', ['-c', 'user.name=test', '-c', 'user.email=test@example.com', ...words], {
    cwd: folder,
  });

// A project of one file with the options of this one, because compiling all of it takes much longer.
beforeAll(async () => {
  folder = await temporaryFolder('gamewharf-watch-');
  mkdirSync(join(folder, 'src'));
  const options = {
    extends: resolve('tsconfig.build.json'),
    compilerOptions: { types: [], rootDir: '.', outDir: 'dist', tsBuildInfoFile: 'dist/buildinfo' },
    include: ['src'],
  };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify(options));
  writeFileSync(join(folder, '.gitignore'), 'dist\n');
  writeFileSync(join(folder, 'src', 'main.ts'), 'export const first = 1;\n');
  git('init', '--quiet');
  git('add', '.');
  git('commit', '--quiet', '--message', 'all');
  compiler = spawn(process.execPath, [resolve('node_modules/typescript/bin/tsc'), '--watch'], {
    cwd: folder,
    stdio: 'ignore',
  });
});
afterAll(async () => {
  compiler.kill();
  await once(compiler, 'exit');
  rmSync(folder, { recursive: true });
});

const isCompiled = (name: string) => {
  const output = join(folder, 'dist', 'src', 'main.js');
  return until(() => existsSync(output) && readFileSync(output, 'utf8').includes(name));
};

test('the watcher of `npm run start:dev` detects edits of a file that git has replaced twice', async () => {
  const edit = (name: string) =>
    appendFileSync(join(folder, 'src', 'main.ts'), `export const ${name} = 1;\n`);
  await isCompiled('first');
  for (const round of [1, 2, 3]) {
    edit(`before${round}`);
    git('stash', '--quiet');
    git('stash', 'pop', '--quiet');
    await isCompiled(`before${round}`);
    edit(`after${round}`);
    await isCompiled(`after${round}`);
  }
});
