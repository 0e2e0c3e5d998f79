import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Command } from 'commander';
import { TokensService } from '../../src/auth/jwt/tokens.service';
import { Settings } from '../../src/platform/config/settings';
import { EXAMPLE_TIME } from '../../src/dev/demo/demo-calendar';
import { loadDemoStore } from '../../src/dev/demo/demo-store';
import { addCommands } from '../../src/commands/program';
import { type Browser, signInBrowser } from '../support/browser';
import {
  readExamples,
  expectAsPrinted,
  isInstalled,
  run,
  runnable,
  withCurl,
} from '../support/page-examples';
import { runIf } from '../support/run-if';
import { type Actor } from '../support/actor';
import { baseUrl, theApp, useStore } from '../support/app';
import { sql } from '../support/sql';

const folder = mkdtempSync(join(tmpdir(), 'gamewharf-ownership-'));
useStore({ FILES_DIR: join(folder, 'files') });

const CONSENT = 'Sign in with a device code';
const REFUND = 'After a refund';

const examples = readExamples('guides/ownership.md');
const page = readFileSync(join(__dirname, '..', '..', 'docs', 'guides', 'ownership.md'), 'utf8');
let env: Record<string, string>;
let player_id: number;

beforeAll(async () => {
  const settings = { ...theApp().get(Settings), DATA_DIR: folder } as Settings;
  const demo = await loadDemoStore(settings, undefined, EXAMPLE_TIME);
  const [player] = await sql<{ id: number }>(`SELECT id FROM users WHERE username = 'azure-bison'`);
  player_id = player!.id;
  // Creates what `gamewharf tokens create` does.
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

test('the pages have an example of every method and language', () => {
  const count = (language: string) => examples.filter((one) => one.language === language).length;
  expect(['sh', 'python', 'js', 'go', 'csharp', 'gdscript'].map(count)).toEqual([5, 1, 4, 1, 1, 1]);
});

const alone = runnable(examples).filter(({ example }) => ![CONSENT, REFUND].includes(example.heading));
for (const [i, { example, when }] of alone.entries())
  when.test(`${example.language}, example ${i}`, () => expectAsPrinted(example, env));

test('works with the consent in between that the page requires', async () => {
  const [ask, , response] = examples.filter(({ heading }) => heading === CONSENT);
  const asked = JSON.parse((await run(ask!, env)).stdout) as Record<string, string>;
  const browser = await signInBrowser({ id: player_id, username: 'azure-bison' } as Actor);
  const { pathname, search } = new URL(asked.verification_uri_complete!);
  await browser.get(pathname + search);
  await browser.submit('/user/oauth/device', {}, 'Allow');
  await expectAsPrinted(response!, { ...env, DEVICE_CODE: asked.device_code! });
});

describe('docs/guides/launcher.md', () => {
  const launcher = readFileSync(join(__dirname, '..', '..', 'docs', 'guides', 'launcher.md'), 'utf8');
  const session = join(folder, 'session.json');
  const withoutTime = (text: string) => text.replace(/until .*/, 'until then.');
  const [asked, ...shown] = withoutTime(/^```text\n([^]*?)^```$/m.exec(launcher)![1]!).split('\n');
  let browser: Browser;

  beforeAll(async () => {
    const program = readExamples('guides/launcher.md').find(({ language }) => language === 'js');
    writeFileSync(join(folder, 'launcher.mjs'), program!.code);
    browser = await signInBrowser({ id: player_id, username: 'azure-bison' } as Actor);
  });

  /** Runs the launcher; returns the page to which it sends the player. */
  async function launch(response: 'Allow' | 'Cancel'): Promise<string[]> {
    const options = { cwd: folder, env: { ...process.env, ...env }, stdio: 'pipe' } as const;
    const running = spawn(process.execPath, ['launcher.mjs'], options);
    const ended = once(running, 'close');
    let said = '';
    running.stderr.on('data', (text) => (said += String(text)));
    for await (const text of running.stdout) {
      said += String(text);
      const [, page] = /^Sign in: (\S+)\n$/.exec(String(text)) ?? [];
      if (!page) continue;
      const { pathname, search } = new URL(page);
      await browser.get(pathname + search);
      if (!browser.page.location) await browser.submit('/user/oauth', {}, response);
      expect(await (await fetch(browser.page.location!)).text()).toBe('You can close this page.');
    }
    await ended;
    return withoutTime(said).split('\n');
  }

  const spoil = (...names: string[]) => {
    const tokens = JSON.parse(readFileSync(session, 'utf8')) as object;
    writeFileSync(
      session,
      JSON.stringify({ ...tokens, ...Object.fromEntries(names.map((name) => [name, 'x'])) }),
    );
  };

  test('does not sign in a player who cancels', async () => {
    expect((await launch('Cancel')).join('\n')).toContain('Error: access_denied');
    expect(existsSync(session)).toBe(false);
  });

  test('asks a player once and identifies them as documented', async () => {
    expect(asked).toMatch(/^Sign in: http/);
    const [first, ...rest] = await launch('Allow');
    expect(first).toMatch(/^Sign in: http/);
    expect(rest).toEqual(shown);
    const [downloaded] = readdirSync(folder).filter((name) => name.endsWith('.zip'));
    expect(readFileSync(join(folder, downloaded!)).subarray(0, 2).toString()).toBe('PK');
    expect(await launch('Cancel')).toEqual(shown);
    if (process.platform !== 'win32') expect(statSync(session).mode & 0o777).toBe(0o600);
  });

  test('continues an interrupted download and rejects a damaged one', async () => {
    const [name] = readdirSync(folder).filter((one) => one.endsWith('.zip'));
    const [zip, part] = [readFileSync(join(folder, name!)), join(folder, `${name}.part`)];
    rmSync(join(folder, name!));
    writeFileSync(part, zip.subarray(0, 50));
    expect(await launch('Cancel')).toEqual(shown);
    expect(readFileSync(join(folder, name!)).equals(zip)).toBe(true);
    writeFileSync(part, Buffer.concat([Buffer.from('??'), zip.subarray(2, 50)]));
    expect((await launch('Cancel')).join('\n')).toContain(`${name} is damaged`);
    expect(existsSync(part)).toBe(false);
  });

  test('replaces an expired token and repeats an expired sign-in', async () => {
    spoil('access_token');
    expect(await launch('Cancel')).toEqual(shown);
    spoil('access_token', 'refresh_token');
    expect((await launch('Allow')).slice(1)).toEqual(shown);
  });
});

const withMono = runIf(isInstalled(['mcs', '--version']), 'mcs (Mono) is not installed');
withMono.test('C#, with stubs for the parts of Unity that it uses', () => {
  const { code } = examples.find(({ language }) => language === 'csharp')!;
  const [source, program] = [join(folder, 'Ownership.cs'), join(folder, 'game.exe')];
  writeFileSync(source, code);
  const unity = join(__dirname, '..', 'support', 'Unity.cs');
  execFileSync('mcs', [`-out:${program}`, unity, source], { stdio: 'pipe' });
  return expect(run({ language: 'sh', code: `mono ${program}` }, env)).resolves.toMatchObject({
    stdout: 'True \n 404 {"errors":["invalid game"]}\n 401 {"errors":["invalid token"]}\n',
    stderr: '',
  });
});

/** Runs the refunds of the page, in its order. */
async function refund(id: string): Promise<void> {
  const out = jest.spyOn(console, 'log').mockImplementation();
  const program = new Command().exitOverride();
  addCommands(program, (work) => work(theApp(), new AbortController().signal), ['refund']);
  await program.parseAsync(['refund', id], { from: 'user' });
  out.mockRestore();
}

// Last, because it removes what the others request.
withCurl.test('works after the refunds of the page', async () => {
  const ids = [...page.matchAll(/^ {4}npm run --silent gamewharf -- refund (\d+)$/gm)].map(([, id]) => id!);
  const responses = examples.filter(({ heading }) => heading === REFUND);
  expect([ids.length, responses.length]).toEqual([2, 2]);
  for (const [i, id] of ids.entries()) {
    await refund(id);
    await expectAsPrinted(responses[i]!, env);
  }
});
