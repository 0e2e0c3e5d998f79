import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { TokensService } from '../../src/auth/jwt/tokens.service';
import { readExamples, expectAsPrinted, isInstalled, run } from '../support/page-examples';
import { runIf } from '../support/run-if';
import { baseUrl, theApp, useStore } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';

useStore();

const folder = mkdtempSync(join(tmpdir(), 'gamewharf-proofs-'));
afterAll(() => rmSync(folder, { recursive: true }));

const examples = readExamples('guides/ownership-offline.md');
const exampleIn = (language: string) => examples.find((one) => one.language === language)!;
let env: Record<string, string>;
let proofOfAnotherGame: string;

const issueToken = async (user_id: number, game_id: number) =>
  (
    await theApp()
      .get(TokensService)
      .issue({ user_id, game_id, scopes: ['game:view:ownership'], api_key_id: null })
  ).key;

const fetchProof = async (token: string, game_id: number) => {
  const headers = { authorization: `Bearer ${token}` };
  const { body } = await send('GET', `/games/${game_id}/ownership?proof=true`, { headers });
  return (body as { proof: string }).proof;
};

beforeAll(async () => {
  const owner = await make.user({ id: 1 });
  const player = await make.user({ id: 2 });
  const games = [await make.game({ owner, id: 1 }), await make.game({ owner, id: 2 })];
  for (const game of games) await make.purchase({ games: [game], user_id: player.id });
  const PLAYER_TOKEN = await issueToken(player.id, 1);
  const PROOF = await fetchProof(PLAYER_TOKEN, 1);
  env = { GAMEWHARF_URL: baseUrl(), GAMEWHARF_ISSUER: baseUrl(), PLAYER_TOKEN, PROOF };
  proofOfAnotherGame = await fetchProof(await issueToken(player.id, 2), 2);
});

test('the page has a program in every language', () => {
  expect(examples.map(({ language }) => language)).toEqual(['js', 'python', 'go', 'csharp']);
});

/** Compiled once, because a compiler takes seconds. */
const assembly = join(folder, 'proof.exe');
const runMono = (more: Record<string, string> = {}) =>
  run({ language: 'sh', code: `mono ${assembly}` }, { ...env, ...more });

const LANGUAGES: [string, boolean, string][] = [
  ['js', true, 'Node is not installed'],
  ['python', isInstalled(['python3', '-c', 'import cryptography']), 'cryptography is not installed'],
  ['go', isInstalled(['go', 'version']), 'go is not installed'],
];

for (const [language, installed, reason] of LANGUAGES) {
  const when = runIf(installed, reason);
  when.test(`${language}: accepts a proof and rejects a launch token and a modified proof`, () =>
    expectAsPrinted(exampleIn(language), env),
  );
  when.test(`${language}: rejects a proof of another game and of another store`, async () => {
    const other = await run(exampleIn(language), { ...env, PROOF: proofOfAnotherGame });
    expect(other.stdout).toMatch(/^rejected: issued for another game\n/);
    const store = await run(exampleIn(language), { ...env, GAMEWHARF_ISSUER: 'https://other.example' });
    expect(store.stdout).toMatch(/^rejected: issued by another store\n/);
  });
}

const withMono = runIf(isInstalled(['mcs', '--version']), 'mcs (Mono) is not installed');
withMono.test('csharp: accepts a proof, and rejects launch tokens and proofs of others', async () => {
  const { code, prints } = exampleIn('csharp');
  const source = join(folder, 'Proof.cs');
  writeFileSync(source, code);
  const libraries = ['System.Numerics', 'System.Net.Http'];
  // Mono has no System.Text.Json.
  const json = join(__dirname, '..', 'support', 'Json.cs');
  execFileSync('mcs', [`-out:${assembly}`, ...libraries.map((name) => `-r:${name}.dll`), json, source], {
    stdio: 'pipe',
  });
  expect((await runMono()).stdout).toBe(prints);
  expect((await runMono({ PROOF: proofOfAnotherGame })).stdout).toMatch(
    /^rejected: issued for another game\n/,
  );
  const [header, claims, signature] = env.PROOF!.split('.');
  const s = Buffer.from(signature!, 'base64url');
  s[40]! ^= 1;
  const PROOF = `${header}.${claims}.${s.toString('base64url')}`;
  expect((await runMono({ PROOF })).stdout).toMatch(/^rejected: invalid signature\n/);
});
