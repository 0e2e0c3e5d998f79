import { decodeJwt } from 'jose';
import { Command } from 'commander';
import { addCommands } from '../../src/commands/program';
import { type Actor, anonymous } from '../support/actor';
import { theApp, theClock, useStore } from '../support/app';
import { failure } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { ROOT_SCOPES } from '../../src/auth/access/scopes';

useStore({ RATE_LIMIT: 'off' });

let owner: Actor;
beforeAll(async () => ({ owner } = await actors()));

/** What the last command wrote to standard error. */
let hints: string[];

/** What the command prints when it runs with the services of the app. */
async function gamewharf(...words: string[]): Promise<string[]> {
  const printed: string[] = [];
  const log = jest.spyOn(console, 'log').mockImplementation((line = '') => void printed.push(String(line)));
  hints = [];
  const hint = jest.spyOn(console, 'error').mockImplementation((line) => void hints.push(String(line)));
  const program = new Command().exitOverride().configureOutput({ writeErr: () => undefined });
  addCommands(program, (work) => work(theApp(), new AbortController().signal), words);
  for (const noun of program.commands)
    for (const command of [noun, ...noun.commands])
      command.exitOverride().configureOutput({ writeErr: () => undefined });
  try {
    await program.parseAsync(words, { from: 'user' });
  } finally {
    log.mockRestore();
    hint.mockRestore();
  }
  return printed;
}

test('keys create, list, revoke', async () => {
  const [key] = await gamewharf(
    'keys',
    'create',
    '--user',
    owner.username.toUpperCase(),
    '--label',
    'my laptop',
  );
  expect((await owner.with(key).get('/credentials/info')).body).toEqual({
    type: 'key',
    scopes: ROOT_SCOPES,
  });
  const [id] = (await sql<{ id: number }>('SELECT max(id) AS id FROM api_keys')).map((row) => row.id);
  const list = await gamewharf('keys', 'list', '--user', owner.username);
  expect(list[0]).toMatch(/^ID +KEY +SCOPES +CREATED +LAST USED +FROM +EXPIRES +REVOKED +LABEL$/);
  expect(list[1]).toMatch(new RegExp(`^${id} +gw_\\w{5}\\.\\.\\. +all +\\S+Z +\\S+ +\\S+ +- +- +my laptop$`));
  expect(list.join()).not.toContain(key);
  await gamewharf('keys', 'revoke', String(id));
  expect(await owner.with(key).get('/profile')).toEqual(failure(401, 'invalid key'));
  await expect(gamewharf('keys', 'revoke', String(id))).rejects.toThrow(
    `API key ${id} doesn't exist or is already revoked.`,
  );
  expect((await gamewharf('keys', 'list', '--user', owner.username))[1]).toMatch(/Z +my laptop$/);
});

test('keys list prints a key without a label as null or a dash', async () => {
  const player = await make.user();
  await gamewharf('keys', 'create', '--user', player.username);
  await gamewharf('keys', 'create', '--user', player.username, '--label', '');
  for (const line of await gamewharf('keys', 'list', '--user', player.username, '--json'))
    expect(JSON.parse(line)).toMatchObject({ label: null });
  expect((await gamewharf('keys', 'list', '--user', player.username))[1]).toMatch(/ -$/);
});

test('keys create --scope', async () => {
  const [key] = await gamewharf(
    'keys',
    'create',
    '--user',
    owner.username,
    '--scope',
    'profile:me collection',
  );
  expect((await owner.with(key).get('/credentials/info')).body).toMatchObject({
    scopes: ['collection', 'profile:me'],
  });
});

test('keys create --expires', async () => {
  const create = async (expires: string) => {
    const [key] = await gamewharf('keys', 'create', '--user', owner.username, '--expires', expires);
    const [row] = await sql<{ id: number; expires_at: string | null }>(
      'SELECT id, expires_at FROM api_keys ORDER BY id DESC LIMIT 1',
    );
    return { key: key!, ...row! };
  };
  expect(await create('never')).toMatchObject({ expires_at: null });
  const short = await create('30');
  expect(Math.round((Date.parse(short.expires_at!) - theClock().now()) / 86_400_000)).toBe(30);
  expect(hints).toEqual([
    expect.stringMatching(
      /, valid until \d{4}-\d\d-\d\dT[\d:]{8}Z\. To revoke it, run `gamewharf keys revoke \d+`\.$/,
    ),
  ]);
  const year = new Date().getUTCFullYear() + 1;
  expect(await create(`${year}-02-28`)).toMatchObject({ expires_at: `${year}-02-28 23:59:59+00` });
  expect((await gamewharf('keys', 'list', '--user', owner.username)).join('\n')).toContain(
    `${year}-02-28T23:59:59Z`,
  );
  const { body } = await owner.with(short.key).get('/credentials/info');
  expect(body).toEqual({ type: 'key', scopes: ROOT_SCOPES });
  await sql('UPDATE api_keys SET expires_at = now() WHERE id = $1', [short.id]);
  await until(async () => (await owner.with(short.key).get('/profile')).status === 401);
  expect(await owner.with(short.key).get('/profile')).toEqual(failure(401, 'invalid key'));
});

test('tokens create accepts a game as owner/slug', async () => {
  const { id } = await make.game({ owner });
  const [owned] = await sql<{ name: string }>(
    `SELECT owner_name || '/' || slug AS name FROM games WHERE id = $1`,
    [id],
  );
  const [token] = await gamewharf('tokens', 'create', '--user', owner.username, '--game', owned!.name);
  expect(token).toMatch(/^ey/);
});

test('audit list says so if no event has the requested type', async () => {
  expect(await gamewharf('audit', 'list', '--event', 'foo')).toEqual(['No events of the type foo.']);
});

test('tokens create issues the token that a launched game gets', async () => {
  const game = await make.game({ owner });
  const [token] = await gamewharf('tokens', 'create', '--user', owner.username, '--game', String(game.id));
  expect(await owner.with(token).get('/credentials/info')).toMatchObject({
    body: { type: 'jwt', scopes: ['profile:me'] },
  });
  expect(hints).toEqual([expect.stringMatching(/^Valid until \S+Z, issued by http:\/\/127\.0\.0\.1:\d+\.$/)]);
  const [short] = await gamewharf(
    ...['tokens', 'create', '--user', owner.username, '--game', String(game.id)],
    ...['--scope', 'profile', '--lifetime', '60'],
  );
  const { iat, exp } = decodeJwt(short!);
  expect(exp! - iat!).toBe(60);
});

test('tokens revoke revokes the tokens of a user', async () => {
  const game = await make.game({ owner });
  const [token] = await gamewharf('tokens', 'create', '--user', owner.username, '--game', String(game.id));
  expect((await owner.with(token).get('/profile')).status).toBe(200);
  expect(await gamewharf('tokens', 'revoke', '--user', owner.username.toUpperCase())).toEqual([
    `All JWTs of ${owner.username.toUpperCase()} are revoked. Running servers reject them within a second.`,
  ]);
  expect(await owner.with(token).get('/profile')).toEqual(failure(401, 'invalid token'));
  await expect(gamewharf('tokens', 'revoke', '--user', 'nobody')).rejects.toThrow(
    "User nobody doesn't exist.",
  );
});

test('signing-keys list, rotate, revoke', async () => {
  await anonymous.get('/.well-known/jwks.json');
  const [rotated] = await gamewharf('signing-keys', 'rotate');
  expect(rotated).toMatch(/^Key [\w-]{43} is published and will be used from \d{4}-\d\d-\d\dT[\d:]{8}Z\.$/);
  await expect(gamewharf('signing-keys', 'rotate')).rejects.toThrow('use --now');
  const [at_once] = await gamewharf('signing-keys', 'rotate', '--now');
  const kid = at_once!.split(' ')[1]!;
  const states = (lines: string[]) => lines.slice(1).map((line) => line.split(/ +/)[1]);
  expect(states(await gamewharf('signing-keys', 'list'))).toEqual(['verify-only', 'active', 'upcoming']);
  await gamewharf('signing-keys', 'revoke', kid);
  const after = await gamewharf('signing-keys', 'list');
  expect(after.join()).not.toContain(kid);
  expect(states(after)).toContain('active');
});

test('scopes lists each scope with its routes, also as JSON', async () => {
  const objects = (await gamewharf('scopes', '--json')).map((line): unknown => JSON.parse(line));
  expect(objects).toContainEqual({ scope: 'profile:me', description: 'See who you are' });
  expect(objects).toContainEqual({ method: 'GET', path: '/profile/games', access: ['profile:games'] });
  const lines = await gamewharf('scopes');
  expect(lines).toContainEqual(expect.stringMatching(/^profile:me +See who you are$/));
  expect(lines).toContainEqual(expect.stringMatching(/^GET +\/profile\/games +profile:games$/));
  expect(lines.filter((line) => line.includes('closed'))).toEqual([]);
});

test.each([
  ['keys create --user nobody', "User nobody doesn't exist."],
  ['keys create', 'The user is missing. Use --user ash-beetle.'],
  ['keys create --user USER --scope profile:you', '`gamewharf scopes` lists all scopes.'],
  ['keys create --user USER --scope ,', '`gamewharf scopes` lists all scopes.'],
  ['keys create --user USER --expires 0', 'Use “never”, a number of days up to 3650, or a future date'],
  ['keys create --user USER --expires 3651', 'Use “never”'],
  ['keys create --user USER --expires 2013-01-01', 'Use “never”'],
  ['keys create --user USER --expires 2031-02-30', 'Use “never”'],
  ['keys create --user USER --expires soon', 'Use “never”'],
  ['keys list --user nobody', "User nobody doesn't exist."],
  ['keys revoke x', 'Use a numeric ID.'],
  ['keys revoke 0', 'Use a numeric ID.'],
  ['keys revoke 9007199254740993', 'Use a numeric ID.'],
  ['tokens create --user USER --game 4000000', "Game 4000000 doesn't exist."],
  ['tokens create --user USER --game 1 --lifetime 0', 'Use a number of seconds from 1 to 86400.'],
  ['tokens create --user USER --game 1 --lifetime 86401', 'Use a number of seconds from 1 to 86400.'],
  ['signing-keys revoke nonsense', "Signing key nonsense doesn't exist."],
])('%s: %s', async (line, message) => {
  const words = line.replace('USER', owner.username).split(' ');
  await expect(gamewharf(...words)).rejects.toThrow(message);
});
