import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Settings } from '../src/config/settings';
import { loadDemoStore } from '../src/importing/demo-store';
import { baseUrl, theApp, useStore } from './support/store';

useStore();

// How the examples of a language are run; `code` comes as the last argument.
const PROGRAMS: Record<string, { needs: [string, ...string[]]; run: [string, ...string[]] }> = {
  sh: { needs: ['curl', '--version'], run: ['sh', '-c'] },
  python: { needs: ['python3', '--version'], run: ['python3', '-c'] },
  js: { needs: ['node', '--version'], run: ['node', '--input-type=module', '-e'] },
};

const page = readFileSync(join(__dirname, '..', 'docs', 'clients.md'), 'utf8');
const examples = [...page.matchAll(/^```(\w+)\n([^]*?)^```\n(?:\n```text\n([^]*?)^```$)?/gm)]
  .map(([, language, code, prints]) => ({ language: language!, code: code!, prints }))
  .filter(({ language }) => language !== 'text');

const isHere = ([program, ...args]: [string, ...string[]]) => spawnSync(program, args).status === 0;
const missing = Object.keys(PROGRAMS).filter((language) => !isHere(PROGRAMS[language]!.needs));
if (missing.length > 0)
  console.warn(`Not run, for lack of ${missing.map((one) => PROGRAMS[one]!.needs[0]).join(', ')}`);

const folder = mkdtempSync(join(tmpdir(), 'gamewharf-clients-'));
let key: string;

beforeAll(async () => {
  const demo = await loadDemoStore({ ...theApp().get(Settings), DATA_DIR: folder } as Settings);
  key = demo!.api_key;
});

afterAll(() => rmSync(folder, { recursive: true }));

test('the page has the examples that it should', () => {
  const count = (language: string) => examples.filter((one) => one.language === language).length;
  expect(['sh', 'python', 'js', 'go', 'gdscript', 'csharp'].map(count)).toEqual([4, 1, 1, 1, 2, 1]);
});

const runnable = examples.filter(({ language }) => language in PROGRAMS && !missing.includes(language));

test.each(runnable.map((one, i) => ({ ...one, i })))(
  '$language, example $i',
  async ({ language, code, prints }) => {
    const [program, ...args] = PROGRAMS[language]!.run;
    const { stdout, stderr } = await promisify(execFile)(program, [...args, code], {
      env: { ...process.env, PYTHONUTF8: '1', GAMEWHARF_URL: baseUrl(), GAMEWHARF_KEY: key },
      timeout: 15_000,
    });
    expect(stderr).toBe('');
    expect(stdout.trimEnd()).toBe(prints!.trimEnd());
  },
);
