import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { baseUrl, useStore } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore();

const calls = resolve(__dirname, 'generated-client', 'calls.ts');
function run(program: string, ...args: string[]): void {
  const { status, stdout } = spawnSync(process.execPath, [resolve('node_modules', program), ...args], {
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(stdout);
}

interface Document {
  paths: Record<
    string,
    Record<string, { requestBody?: { content: Record<string, { encoding?: Record<string, object> }> } }>
  >;
}

let text: string;
let document: Document;
let folder: string;

beforeAll(async () => {
  ({ text } = await send('GET', '/openapi.json'));
  document = JSON.parse(text) as Document;
  folder = mkdtempSync(join(tmpdir(), 'gamewharf-client-'));
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

test('a client generated from the description behaves like the calls in calls.ts', () => {
  const types = join(folder, 'api.d.ts');
  writeFileSync(join(folder, 'openapi.json'), text);
  run('openapi-typescript/bin/cli.js', join(folder, 'openapi.json'), '-o', types);
  const project = join(folder, 'tsconfig.json');
  writeFileSync(
    project,
    JSON.stringify({
      extends: resolve('tsconfig.json'),
      compilerOptions: {
        noEmit: true,
        incremental: false,
        lib: ['ES2023', 'DOM'],
        rootDir: '/',
        paths: { 'gamewharf-api': [types] },
        typeRoots: [resolve('node_modules', '@types')],
        types: ['node'],
      },
      files: [calls],
    }),
  );
  run('typescript/bin/tsc', '-p', project);
});

test('makes every call', async () => {
  const owner = await make.user({ developer: true });
  const email = 'player@example.com';
  const player = await make.user({ emails: [{ email, verified: true }] });
  const game = await make.game({ owner });
  const other = await make.game({ owner });
  const file = { file_url: 'https://files.example/game.zip', size: 1 };
  const build = await make.build({ game, user_version: '1.0', ...file });
  const upload = await make.upload({ game, channel_name: 'windows' });
  const purchase = await make.purchase({ games: [game], user_id: player.id, email });
  const { key: download_key } = await make.downloadKey({ game, purchase_id: purchase.id });
  const client_id = 'generated-client';
  await sql(
    `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes)
     VALUES ($1, $2, 'Generated', '{https://app.example/}', '{profile:me}')`,
    [client_id, owner.id],
  );
  const { body } = await owner.post('/credentials/subkey', { game_id: game.id, scope: 'profile:me' });
  const encodings = Object.fromEntries(
    Object.entries(document.paths).map(([path, { post }]) => [
      path,
      post?.requestBody?.content['application/x-www-form-urlencoded']?.encoding ?? {},
    ]),
  );
  const { callEverything } = (await import(calls)) as {
    callEverything: (store: object) => Promise<string[]>;
  };
  const called = await callEverything({
    url: baseUrl(),
    key: owner.key!,
    jwt: (body as { key: string }).key,
    game_id: game.id,
    other_game_id: other.id,
    upload_id: upload.id,
    build_id: build.id,
    user_id: player.id,
    email,
    download_key,
    target: `${owner.username}/${game.slug}`,
    client_id,
    encodings,
  });
  const described = Object.entries(document.paths).flatMap(([path, item]) =>
    Object.keys(item).map((method) => `${method.toUpperCase()} ${path}`),
  );
  expect(called).toEqual(described.sort());
});
