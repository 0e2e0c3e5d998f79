import { execFile, spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Settings } from '../src/config/settings';
import { loadDemoStore } from '../src/importing/demo-store';
import { LossyNetwork } from './support/lossy-network';
import { baseUrl, sql, theApp, useStore } from './support/store';

useStore();

// How the examples of a language are run; `code` comes as the last argument.
const PROGRAMS: Record<string, { needs: [string, ...string[]]; run: [string, ...string[]] }> = {
  sh: { needs: ['curl', '--version'], run: ['sh', '-c'] },
  python: { needs: ['python3', '--version'], run: ['python3', '-c'] },
  js: { needs: ['node', '--version'], run: ['node', '--input-type=module', '-e'] },
};

const page = readFileSync(join(__dirname, '..', 'docs', 'clients.md'), 'utf8');
// Examples below this heading are run on a network that breaks.
const [LOSSY_FROM, LOSSY_TO] = [page.indexOf('## When a connection is lost'), page.indexOf('## Go')];
const examples = [...page.matchAll(/^```(\w+)\n([^]*?)^```\n(?:\n```text\n([^]*?)^```$)?/gm)]
  .map(({ index, 1: language, 2: code, 3: prints }) => ({
    language: language!,
    code: code!,
    prints,
    lossy: index > LOSSY_FROM && index < LOSSY_TO,
  }))
  .filter(({ language }) => language !== 'text');

const isHere = ([program, ...args]: [string, ...string[]]) => spawnSync(program, args).status === 0;
const missing = Object.keys(PROGRAMS).filter((language) => !isHere(PROGRAMS[language]!.needs));
if (missing.length > 0)
  console.warn(`Not run, for lack of ${missing.map((one) => PROGRAMS[one]!.needs[0]).join(', ')}`);

const LOSSES = 2;
const folder = mkdtempSync(join(tmpdir(), 'gamewharf-clients-'));
let key: string;

beforeAll(async () => {
  const demo = await loadDemoStore({ ...theApp().get(Settings), DATA_DIR: folder } as Settings);
  key = demo!.api_key;
});

afterAll(() => rmSync(folder, { recursive: true }));

test('the page has the examples that it should', () => {
  const count = (language: string) => examples.filter((one) => one.language === language).length;
  expect(['sh', 'python', 'js', 'go', 'gdscript', 'csharp'].map(count)).toEqual([5, 2, 2, 1, 2, 1]);
  expect(examples.filter(({ lossy }) => lossy)).toHaveLength(3);
});

const runnable = examples.filter(({ language }) => language in PROGRAMS && !missing.includes(language));

test.each(runnable.map((one, i) => ({ ...one, i })))(
  '$language, example $i',
  async ({ language, code, prints, lossy }) => {
    const network = lossy ? await LossyNetwork.before(baseUrl(), LOSSES) : undefined;
    const { stdout, stderr } = await run(language, code, network?.url ?? baseUrl());
    expect(stderr).toBe('');
    expect(stdout.trimEnd()).toBe(prints!.trimEnd());
    expect(network?.lost).toBe(lossy ? LOSSES : undefined);
    network?.close();
  },
);

test.each(runnable.filter(({ lossy }) => lossy))(
  '$language without the key writes once for each attempt: the control',
  async ({ language, code }) => {
    const network = await LossyNetwork.before(baseUrl(), LOSSES);
    const [title] = /Made with \w+/.exec(code)!;
    const careless = code
      .replaceAll(/idempotency-key/gi, 'X-Nothing')
      .replaceAll(title, `Without ${language}`);
    await run(language, careless, network.url);
    expect(await sql('SELECT id FROM collections WHERE title = $1', [`Without ${language}`])).toHaveLength(
      LOSSES + 1,
    );
    network.close();
  },
);

function run(language: string, code: string, url: string) {
  const [program, ...args] = PROGRAMS[language]!.run;
  return promisify(execFile)(program, [...args, code], {
    env: { ...process.env, PYTHONUTF8: '1', GAMEWHARF_URL: url, GAMEWHARF_KEY: key },
    timeout: 15_000,
  });
}
