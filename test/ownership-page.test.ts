import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TokensService } from '../src/auth/tokens.service';
import { Settings } from '../src/config/settings';
import { loadDemoStore } from '../src/importing/demo-store';
import { browserOf } from './support/browser';
import { examplesOf, expectAsPrinted, isHere, run, runnable } from './support/page-examples';
import { type Actor, baseUrl, sql, theApp, useStore } from './support/store';

useStore();

const CONSENT = 'With a token after consent';

const examples = examplesOf('guides/ownership.md');
const folder = mkdtempSync(join(tmpdir(), 'gamewharf-ownership-'));
let env: Record<string, string>;
let player_id: number;

beforeAll(async () => {
  const demo = await loadDemoStore({ ...theApp().get(Settings), DATA_DIR: folder } as Settings);
  const [player] = await sql<{ id: number }>(`SELECT id FROM users WHERE username = 'azure-bison'`);
  player_id = player!.id;
  // As `gamewharf tokens create` makes it.
  const { key } = await theApp()
    .get(TokensService)
    .issue({
      user_id: player!.id,
      game_id: 1,
      scopes: ['profile:me', 'game:view:ownership'],
      api_key_id: null,
    });
  env = { GAMEWHARF_URL: baseUrl(), GAMEWHARF_KEY: demo!.api_key, PLAYER_TOKEN: key };
});

afterAll(() => rmSync(folder, { recursive: true }));

test('the page has an example for every way and language', () => {
  const count = (language: string) => examples.filter((one) => one.language === language).length;
  expect(['sh', 'python', 'js', 'go', 'csharp', 'gdscript'].map(count)).toEqual([5, 1, 1, 1, 1, 1]);
});

const alone = runnable(examples).filter(({ heading }) => heading !== CONSENT);
test.each(alone.map((one, i) => ({ ...one, i })))('$language, example $i', (example) =>
  expectAsPrinted(example, env),
);

test('with the consent that the page asks for in between', async () => {
  const [ask, answer] = examples.filter(({ heading }) => heading === CONSENT);
  const asked = await run({ language: 'sh', code: `${ask!.code}echo "$DEVICE_CODE"` }, env);
  const [address, DEVICE_CODE] = asked.stdout.split('\n');
  const browser = await browserOf({ id: player_id, username: 'azure-bison' } as Actor);
  const { pathname, search } = new URL(address!);
  await browser.get(pathname + search);
  await browser.submit('/user/oauth/device', {}, 'Allow');
  await expectAsPrinted(answer!, { ...env, DEVICE_CODE: DEVICE_CODE! });
});

const withMono = isHere(['mcs', '--version']) ? test : test.skip;
withMono('C#, with stand-ins for what it uses of Unity', () => {
  const { code } = examples.find(({ language }) => language === 'csharp')!;
  const [source, program] = [join(folder, 'Ownership.cs'), join(folder, 'game.exe')];
  writeFileSync(source, code);
  const unity = join(__dirname, 'support', 'Unity.cs');
  execFileSync('mcs', [`-out:${program}`, unity, source], { stdio: 'pipe' });
  return expect(run({ language: 'sh', code: `mono ${program}` }, env)).resolves.toMatchObject({
    stdout: 'True\nFalse\n',
    stderr: '',
  });
});
