import { execFile } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { type Actor } from '../support/actor';
import { baseUrl, useStore } from '../support/app';
import { make } from '../support/make';
import { HANGING } from '../support/time';

useStore();

const root = join(__dirname, '..', '..');
const page = readFileSync(join(root, 'docs', 'reference', 'credentials.md'), 'utf8');
const programs = [...page.matchAll(/^```js\n([^]*?)^```$/gm)].map(([, code]) => code!);
const [, game_id] = /^const game_id = (\d+);$/m.exec(programs[0]!)!;

const folder = mkdtempSync(join(tmpdir(), 'gamewharf-credentials-'));
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'), 'junction');
afterAll(() => rmSync(folder, { recursive: true }));

let player: Actor;
beforeAll(async () => {
  player = await make.user();
  await make.game({ owner: player, id: game_id });
});

const launch = async (game: number | string) =>
  ((await player.post('/credentials/subkey', { game_id: game, scope: 'profile:me' })).body as { key: string })
    .key;

async function run(code: string, token: string, more: Record<string, string> = {}): Promise<string> {
  const file = join(folder, 'player.mjs');
  writeFileSync(file, code);
  const env = { ...process.env, GAMEWHARF_URL: baseUrl(), GAMEWHARF_ISSUER: baseUrl(), ...more };
  const { stdout } = await promisify(execFile)(process.execPath, [file, token], { env, timeout: HANGING });
  return stdout.trim();
}

test('the page has the expected programs', () => {
  expect(programs).toHaveLength(2);
  expect(programs[0]).toContain(`from 'jose'`);
  expect(programs.map((code) => /^const game_id = (\d+);$/m.exec(code)![1])).toEqual(['1', '1']);
});

describe.each([
  ['with jose', 0],
  ['with Node only', 1],
])('%s', (_, index) => {
  const code = programs[index]!;

  test("identifies the player of a JWT with the page's code unchanged", async () => {
    expect(await run(code, await launch(game_id!))).toBe(String(player.id));
  });

  test('rejects a JWT of another game and a modified one', async () => {
    const other = await make.game({ owner: player, id: 1000 + index });
    await expect(run(code, await launch(other.id))).rejects.toThrow('another game');
    const [header, claims, signature] = (await launch(game_id!)).split('.');
    const changed = `${signature!.startsWith('A') ? 'B' : 'A'}${signature!.slice(1)}`;
    await expect(run(code, `${header}.${claims}.${changed}`)).rejects.toThrow();
  });

  test('rejects a JWT of another issuer, whatever the URL of its keys', async () => {
    const GAMEWHARF_ISSUER = 'https://api.your-store.example';
    await expect(run(code, await launch(game_id!), { GAMEWHARF_ISSUER })).rejects.toThrow(
      /another store|unexpected "iss"/,
    );
  });
});

test('fetches the keys once with Node only', async () => {
  const counted = `let requests = 0;
    const real = fetch;
    globalThis.fetch = (...call) => (requests++, real(...call));
    ${programs[1]!}
    await verifyPlayer(process.argv[2]);
    console.log(requests);`;
  expect(await run(counted, await launch(game_id!))).toBe(`${player.id}\n1`);
});
