import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TokensService } from '../src/auth/tokens.service';
import { Settings } from '../src/config/settings';
import { loadDemoStore } from '../src/importing/demo-store';
import { examplesOf, expectAsPrinted, runnable } from './support/page-examples';
import { baseUrl, sql, theApp, useStore } from './support/store';

useStore();

const examples = examplesOf('guides/ownership.md');
const folder = mkdtempSync(join(tmpdir(), 'gamewharf-ownership-'));
let env: Record<string, string>;

beforeAll(async () => {
  const demo = await loadDemoStore({ ...theApp().get(Settings), DATA_DIR: folder } as Settings);
  const [player] = await sql<{ id: number }>(`SELECT id FROM users WHERE username = 'azure-bison'`);
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
  expect(['sh', 'python', 'js', 'go', 'csharp', 'gdscript'].map(count)).toEqual([3, 1, 1, 1, 1, 1]);
});

test.each(runnable(examples).map((one, i) => ({ ...one, i })))('$language, example $i', (example) =>
  expectAsPrinted(example, env),
);
