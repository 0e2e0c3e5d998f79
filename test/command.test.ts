import { spawnSync } from 'node:child_process';
import { appendFileSync, cpSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { readdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

// A checkout of its own, since this compiles into dist.
const folder = mkdtempSync(join(tmpdir(), 'gamewharf-command-'));
const at = (...path: string[]) => join(folder, ...path);

beforeAll(() => {
  for (const name of ['src', 'migrations', 'tools/scripts/compile.mjs', 'test/support/swc.json'])
    cpSync(name, at(name), { recursive: true });
  for (const name of ['nest-cli.json', 'package.json', 'package-lock.json']) cpSync(name, at(name));
  symlinkSync(join(process.cwd(), 'node_modules'), at('node_modules'));
});
afterAll(() => rmSync(folder, { recursive: true }));

function node(...words: string[]) {
  const env = { ...process.env, DATABASE_URL: undefined, DATA_DIR: undefined };
  const { status, stdout, stderr } = spawnSync(process.execPath, words, {
    cwd: folder,
    env,
    encoding: 'utf8',
  });
  return { status, stdout, stderr };
}

const compile = () => node('tools/scripts/compile.mjs');
const nothing = { status: 0, stdout: '', stderr: '' };
const compiled = { status: 0, stdout: '', stderr: expect.stringMatching(/^Compiling.*: \d+\.\d s\.\n$/) };

describe('what npm start and npm run gamewharf do first', () => {
  test('the first time it compiles, and says so; the next time it has nothing to do', () => {
    expect(compile()).toEqual(compiled);
    expect(existsSync(at('dist/src/accounts/web/assets/pages.css'))).toBe(true);
    expect(compile()).toEqual(nothing);
  });

  test('a changed file is compiled, and one that is gone leaves nothing behind', () => {
    writeFileSync(at('migrations/20990101000100-later.ts'), 'export const later = 1;\n');
    expect(compile()).toEqual(compiled);
    appendFileSync(at('migrations/20990101000100-later.ts'), 'export const more = 2;\n');
    expect(compile()).toEqual(compiled);
    expect(readFileSync(at('dist/migrations/20990101000100-later.js'), 'utf8')).toContain('more');
    rmSync(at('migrations/20990101000100-later.ts'));
    expect(compile()).toEqual(compiled);
    expect(readdirSync(at('dist/migrations')).filter((name) => name.includes('later'))).toEqual([]);
  });

  test('a file that cannot be compiled is named, and tried again', () => {
    const before = readFileSync(at('src/main.ts'), 'utf8');
    appendFileSync(at('src/main.ts'), 'const = 1;\n');
    for (let i = 0; i < 2; i++)
      expect(compile()).toMatchObject({ status: 1, stderr: expect.stringContaining('src/main.ts') });
    writeFileSync(at('src/main.ts'), before);
    expect(compile()).toEqual(compiled);
  });

  test('dist, or a part of it, may be removed', () => {
    for (const path of ['dist', 'dist/src/cli.js']) {
      rmSync(at(path), { recursive: true });
      expect(compile()).toEqual(compiled);
      expect(existsSync(at('dist/src/cli.js'))).toBe(true);
    }
  });

  test('what `nest build` left is compiled anew, and `nest build` will not take it for its own', () => {
    mkdirSync(at('dist'), { recursive: true });
    writeFileSync(at('dist/tsconfig.build.tsbuildinfo'), '{}');
    expect(compile()).toEqual(compiled);
    expect(existsSync(at('dist/tsconfig.build.tsbuildinfo'))).toBe(false);
    expect(compile()).toEqual(nothing);
  });
});

describe('gamewharf', () => {
  const gamewharf = (...words: string[]) => node('dist/src/cli.js', ...words);

  test('--version', () => {
    const { version } = JSON.parse(readFileSync('package.json', 'utf8')) as { version: string };
    expect(gamewharf('--version')).toEqual({ ...nothing, stdout: `${version}\n` });
  });

  test.each([
    ['keys', 'list', '--user', 'leaf'],
    ['backup', 'store.gz'],
    ['users', 'list'],
  ])('%s %s makes no store where there is none', (...words) => {
    expect(gamewharf(...words)).toEqual({
      status: 1,
      stdout: '',
      stderr: `There is no store in ${at('.data')}: set DATA_DIR to the folder of the store, or start Gamewharf once to make one.\n`,
    });
    expect(existsSync(at('.data'))).toBe(false);
  });

  test('completion of an unknown shell', () => {
    expect(gamewharf('completion', 'csh')).toMatchObject({
      status: 1,
      stderr: expect.stringContaining('Allowed choices are bash, zsh, fish.'),
    });
  });

  test('completion bash', () => {
    writeFileSync(at('completion'), gamewharf('completion', 'bash').stdout);
    const tried = [
      ['op', 'operator-tokens'],
      ['keys ', 'create list revoke help --help'],
      ['keys create --us', '--user'],
      ['keys create --user ', ''],
      ['keys create --user leaf --la', '--label'],
      ['completion ', 'bash zsh fish --help'],
      ['nothing ', ''],
    ] as const;
    const script = tried.map(
      ([line]) => `COMP_WORDS=(gamewharf ${line.replace(/ $/, " ''")}); COMP_CWORD=$((\${#COMP_WORDS[@]} - 1))
        _gamewharf; echo "\${COMPREPLY[*]}"`,
    );
    const { stdout, stderr } = spawnSync('bash', ['-c', `. ./completion\n${script.join('\n')}`], {
      cwd: folder,
      encoding: 'utf8',
    });
    expect(stderr).toBe('');
    expect(stdout.trimEnd().split('\n')).toEqual(tried.map(([, answer]) => answer).slice(0, -1));
  });

  test.each([
    ['zsh', "'keys create '*)", "'--user:whom it acts for'"],
    ['fish', "__gamewharf_at 'keys create'", "-l user -r -d 'whom it acts for'"],
  ])('completion %s has every command and option', (shell, place, option) => {
    const { stdout } = gamewharf('completion', shell);
    expect(stdout.replaceAll("\\'", "'")).toContain(place);
    expect(stdout).toContain(option);
    const bash = readFileSync(at('completion'), 'utf8');
    const words = [...bash.matchAll(/ all='([^']*)'/g)].flatMap(([, all]) => all!.split(' '));
    expect(words.length).toBeGreaterThan(50);
    const plain = shell === 'fish' ? stdout.replaceAll('-l ', '--') : stdout;
    expect(words.filter((word) => !plain.includes(word))).toEqual([]);
  });
});
