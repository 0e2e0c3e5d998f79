import { once } from 'node:events';
import { type IncomingMessage, request } from 'node:http';
import { Command } from 'commander';
import { addCommands } from '../../src/commands/program';
import { hashApiKey } from '../../src/auth/keys/api-key';
import { OperatorTokensService } from '../../src/operator/tokens/operator-tokens.service';
import { sendImport, sendSmall } from '../support/importing';
import { user } from '../support/records';
import { baseUrl, logged, openApp, theApp, theClock, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

// The first tests need a store without any operator token, so OPERATOR_TOKEN isn't set, and the order of the tests matters.
useStore();

let hints: string[];

/** What the command prints when it runs with the services of the app. */
async function gamewharf(...words: string[]): Promise<string[]> {
  const printed: string[] = [];
  const log = jest.spyOn(console, 'log').mockImplementation((line = '') => void printed.push(String(line)));
  hints = [];
  const say = (line: unknown) => void hints.push(String(line));
  const hint = jest.spyOn(console, 'error').mockImplementation(say);
  const program = new Command().exitOverride();
  addCommands(program, (work) => work(theApp(), new AbortController().signal), ['operator-tokens']);
  for (const noun of program.commands)
    for (const command of noun.commands)
      command.exitOverride().configureOutput({ writeErr: say, writeOut: (text) => printed.push(text) });
  try {
    await program.parseAsync(['operator-tokens', ...words], { from: 'user' });
  } finally {
    log.mockRestore();
    hint.mockRestore();
  }
  return printed;
}

const made = async (name: string, ...permissions: string[]) =>
  (await gamewharf('create', name, '--permissions', permissions.join(',')))[0]!;

const openapi = async (token: string | undefined, url?: string) => {
  const headers = token === undefined ? undefined : { authorization: `Bearer ${token}` };
  if (url === undefined) return (await send('GET', '/operator/openapi.json', { headers })).status;
  return (await fetch(`${url}/operator/openapi.json`, { headers })).status;
};

describe('without any token', () => {
  test.each([
    ['POST', '/operator/import'],
    ['GET', '/operator/openapi.json'],
    ['GET', '/operator/'],
    ['POST', '/operator/nothing'],
    ['GET', '/operator/import'],
    ['OPTIONS', '/operator/import'],
    ['DELETE', '/operator/purchases/1/refund'],
  ])('%s %s returns 404', async (method, path) => {
    for (const headers of [undefined, { authorization: 'Bearer undefined' }])
      expect(await send(method, path, { headers })).toMatchObject(failure(404, 'invalid api endpoint'));
  });

  test('does not read an import', async () => {
    expect(await sendImport([user(1)])).toEqual(failure(404, 'invalid api endpoint'));
  });
});

describe('gamewharf operator-tokens', () => {
  test.each([
    [['create', 'checkout'], 'The list of permissions is missing. Use --permissions import.'],
    [['create', 'checkout', '--permissions', ','], 'The permissions are import, purchases, users, metrics.'],
    [
      ['create', 'checkout', '--permissions', 'purchases,refunds'],
      'The permissions are import, purchases, users, metrics.',
    ],
    [
      ['create', 'OPERATOR_TOKEN', '--permissions', 'import'],
      'Use up to 50 lowercase letters, digits, -, . and _',
    ],
    [
      ['create', 'x'.repeat(51), '--permissions', 'import'],
      'Use up to 50 lowercase letters, digits, -, . and _',
    ],
  ])('rejects %j', async (words, problem) => {
    const error = await gamewharf(...words).catch((thrown: unknown) => String(thrown));
    expect([error, ...hints].join()).toContain(problem);
    expect(await sql('SELECT * FROM operator_tokens')).toEqual([]);
  });

  test('revoke reports an unknown name', async () => {
    await expect(gamewharf('revoke', 'checkout')).rejects.toThrow(
      "Token checkout doesn't exist or is already revoked.",
    );
  });

  test('create displays the token once and stores only its hash', async () => {
    const token = await made('checkout', 'purchases', 'import');
    expect(token).toMatch(/^gwo_[0-9A-Za-z]{38}$/);
    expect(hints).toEqual([
      'Created token checkout, with the permissions: import, purchases. To revoke it, run `gamewharf operator-tokens revoke checkout`.',
    ]);
    expect(await openapi(token)).toBe(200);
    const list = await gamewharf('list');
    expect(list[0]).toMatch(/^NAME +TOKEN +PERMISSIONS +CREATED +LAST USED +REVOKED$/);
    expect(list[1]).toMatch(/^checkout +gwo_\w{4}\.\.\. +import purchases +\S+Z +\S+ +-$/);
    const stored = JSON.stringify(await sql('SELECT t::text FROM operator_tokens t'));
    for (const text of [list.join(), stored, logged.join()]) expect(text).not.toContain(token);
    await expect(made('checkout', 'users')).rejects.toThrow(
      'A token named checkout already exists. Revoke it, or choose another name.',
    );
  });

  test('create lists the permissions', async () => {
    await expect(gamewharf('create', '--help')).rejects.toThrow('(outputHelp)');
  });

  test('create and revoke record audit events with the name', async () => {
    await made('short-lived', 'metrics');
    await gamewharf('revoke', 'short-lived');
    const events = `SELECT event, details FROM audit_events WHERE details->>'operator' = 'short-lived' ORDER BY id`;
    await until(async () => (await sql(events)).length === 2);
    expect(await sql(events)).toEqual([
      { event: 'operator_token.created', details: { operator: 'short-lived' } },
      { event: 'operator_token.revoked', details: { operator: 'short-lived' } },
    ]);
  });

  test('create allows at most a hundred live tokens', async () => {
    await sql(`INSERT INTO operator_tokens (name, token_hash, hint, rights)
      SELECT 'many-' || i, sha256(i::text::bytea), 'gwo_', '{metrics}' FROM generate_series(1, 99) i`);
    await expect(made('one-more', 'metrics')).rejects.toThrow(
      'There are already 100 tokens, which is the limit. Revoke one that is no longer used.',
    );
    await sql(`DELETE FROM operator_tokens WHERE name LIKE 'many-%'`);
  });
});

describe('an operator token', () => {
  test('created under the name of a revoked one has its own Idempotency-Keys', async () => {
    const import_ = async (token: string, id: number) => {
      const headers = { authorization: `Bearer ${token}`, 'idempotency-key': 'nightly' };
      return (await sendSmall([user(id)], headers)).body;
    };
    const first = await made('nightly', 'import');
    const before = await import_(first, 90_001);
    expect(await import_(first, 90_001)).toEqual(before);
    await gamewharf('revoke', 'nightly');
    const second = await made('nightly', 'import');
    expect(await import_(second, 90_002)).toMatchObject({ types: { users: { new: 1 } } });
    await gamewharf('revoke', 'nightly');
  });

  test("is required: none, an unknown one and a user's credential are rejected", async () => {
    const { key } = await make.user();
    await made('somebody', 'metrics');
    expect(await openapi(undefined)).toBe(401);
    for (const token of ['nothing', key]) {
      const response = await send('GET', '/operator/openapi.json', {
        headers: { authorization: `Bearer ${token}` },
      });
      expect(response).toMatchObject(failure(401, 'invalid token'));
      expect(response.headers.get('www-authenticate')).toContain('error="invalid_token"');
    }
  });

  test('works only on operator routes', async () => {
    const token = await made('everything', 'import', 'purchases', 'users', 'metrics');
    const headers = { authorization: `Bearer ${token}` };
    expect(await send('GET', '/profile', { headers })).toMatchObject(failure(401, 'invalid key'));
  });

  test('is rejected without the permission, along with the request body', async () => {
    const token = await made('reader', 'metrics', 'purchases', 'users');
    const response = await send('POST', '/operator/import', {
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson' },
      body: JSON.stringify(user(999)),
    });
    expect(response).toMatchObject(failure(403, 'operator token does not permit `import`'));
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="gamewharf", error="insufficient_scope", scope="import"',
    );
    expect(response.headers.get('connection')).not.toBe('close');
    expect(await sql('SELECT id FROM users WHERE id = 999')).toEqual([]);
  });

  test.each([undefined, { 'content-length': 1000 }])(
    'without the permission gets its response before the body arrives, and no further request: %j',
    async (headers) => {
      const req = request(`${baseUrl()}/operator/import`, { method: 'POST', headers });
      req.write('the first of many lines');
      const [response] = (await once(req, 'response')) as [IncomingMessage];
      expect([response.statusCode, response.headers.connection]).toEqual([401, 'close']);
      req.destroy();
    },
  );

  test('is rejected by every replica at most 700 ms after its revocation', async () => {
    const other = await (await openApp()).getUrl();
    const token = await made('ending', 'metrics');
    theClock().stop();
    expect(await openapi(token, other)).toBe(200);
    await gamewharf('revoke', 'ending');
    expect(await openapi(token)).toBe(401);
    theClock().advance(699);
    expect(await openapi(token, other)).toBe(200);
    theClock().advance(1);
    expect(await openapi(token, other)).toBe(401);
    // The name of a revoked token is available for a new one.
    expect(await openapi(await made('ending', 'metrics'))).toBe(200);
  });

  test('has its last use recorded once per minute', async () => {
    const used = async () => {
      const [row] = await sql<{ at: string }>(
        `SELECT last_used_at AS at FROM operator_tokens WHERE name = 'used' AND revoked_at IS NULL`,
      );
      return row!.at;
    };
    const token = await made('used', 'metrics');
    expect(await used()).toBeNull();
    await openapi(token);
    await until(async () => (await used()) !== null);
    const first = await used();
    for (let i = 0; i < 5; i++) await openapi(token);
    expect(await used()).toBe(first);
    await sql(`UPDATE operator_tokens SET last_used_at = now() - interval '61 s' WHERE name = 'used'`);
    const fresh = await openApp();
    await openapi(token, await fresh.getUrl());
    await until(async () => Date.parse(await used()) >= Date.parse(first));
  });

  test('still works under the previous pepper, and is rehashed when used', async () => {
    const token = await made('peppered', 'metrics');
    const [now, before] = [
      'the pepper that came after the first one',
      'a pepper for tests, long enough to pass',
    ];
    const replaced = await openApp({ API_KEY_PEPPER: now, API_KEY_PEPPER_PREVIOUS: before });
    expect(await openapi(token, await replaced.getUrl())).toBe(200);
    const hash = hashApiKey(token, Buffer.from(now)).toString('hex');
    const row = `SELECT id FROM operator_tokens WHERE token_hash = '\\x${hash}'`;
    await until(async () => (await sql(row)).length === 1);
    const changed = await openApp({ API_KEY_PEPPER: now });
    expect(await openapi(token, await changed.getUrl())).toBe(200);
  });

  test('is not rate limited, but failed attempts are', async () => {
    const limited = await openApp({ RATE_LIMIT: 'address=3/60s' });
    const url = await limited.getUrl();
    const token = await made('busy', 'metrics');
    for (let i = 0; i < 6; i++) expect(await openapi(token, url)).toBe(200);
    for (const expected of [401, 401, 401, 429]) expect(await openapi('a-guess', url)).toBe(expected);
    expect(await openapi(token, url)).toBe(200);
  });

  test('keeps all permissions and works without the database if it is in the setting', async () => {
    const setting = 'the token of the setting';
    const app = await openApp({ OPERATOR_TOKEN: setting });
    const url = await app.getUrl();
    await sql('ALTER TABLE operator_tokens RENAME TO elsewhere');
    try {
      expect(await openapi(setting, url)).toBe(200);
    } finally {
      await sql('ALTER TABLE elsewhere RENAME TO operator_tokens');
    }
    expect(await app.get(OperatorTokensService).find(setting)).toMatchObject({ name: 'OPERATOR_TOKEN' });
  });
});

describe('imported records by permission', () => {
  const key = { type: 'api_key', key: 'a-key-that-was-imported', user_id: 900 };
  const application = {
    ...{ type: 'oauth_application', client_id: 'companion', user_id: 900, name: 'Companion' },
    redirect_uris: ['https://companion.example/back'],
    scopes: ['profile:me'],
  };
  const records = [user(900), key, application, user(901, { password: 'correct horse battery' })];
  const rejected = 'operator token does not permit `users`';
  const problems = failure(
    400,
    `line 2: api_key: ${rejected}`,
    `line 3: oauth_application companion: ${rejected}`,
    `line 4: user 901: password: ${rejected}`,
  );

  test('records that let someone sign in are rejected without the permission users', async () => {
    const token = await made('catalog', 'import', 'purchases', 'metrics');
    expect(await sendImport(records, token)).toEqual(problems);
    // Large enough for its own worker thread.
    const many = Array.from({ length: 400 }, (_, i) => user(1000 + i));
    expect(await sendImport([...records, ...many], token)).toEqual(problems);
    for (const gone of [
      { type: 'api_key', key: 'x' },
      { type: 'oauth_application', client_id: 'x' },
    ])
      expect(await sendImport([{ ...gone, deleted: true }], token)).toMatchObject({
        status: 400,
        body: { errors: [expect.stringContaining(rejected)] },
      });
    for (const password_hash of [null, `$2b$10$${'a'.repeat(53)}`])
      expect(await sendImport([user(901, { password_hash })], token)).toEqual(
        failure(400, `line 1: user 901: password_hash: ${rejected}`),
      );
    expect(await sendImport([user(901, { password: null })], token)).toMatchObject({ status: 400 });
    expect(await sql('SELECT id FROM users WHERE id IN (900, 901)')).toEqual([]);
    expect(await sendImport([user(900), user(901)], token)).toMatchObject({ status: 200 });
  });

  test('all records are accepted with the permission users', async () => {
    const token = await made('migration', 'import', 'users');
    expect(await sendImport(records, token)).toMatchObject({
      status: 200,
      body: { types: { api_keys: { new: 1 }, oauth_applications: { new: 1 }, users: { changed: 1 } } },
    });
  });

  test('record an audit event with the token, counts and request ID', async () => {
    const token = await made('nightly', 'import');
    const response = await send('POST', '/operator/import', {
      headers: {
        ...{ authorization: `Bearer ${token}`, 'content-type': 'application/x-ndjson' },
        'x-request-id': 'the-nightly-run',
      },
      body: JSON.stringify(user(902, { display_name: 'Person With A Name' })),
    });
    expect(response.status).toBe(200);
    const events = `SELECT event, user_id, details FROM audit_events WHERE request_id = 'the-nightly-run'`;
    await until(async () => (await sql(events)).length > 0);
    expect(await sql(events)).toEqual([
      {
        event: 'import.completed',
        user_id: null,
        details: { operator: 'nightly', counts: { users: { new: 1, changed: 0, unchanged: 0 } } },
      },
    ]);
    // The name of a token isn't secret.
    expect(logged.join('')).toContain('"operator":"nightly"');
  });

  test('record another audit event for deletions', async () => {
    const token = await made('cleaner', 'import');
    await sendImport([user(903)], token);
    await sendImport([{ type: 'user', id: 903, deleted: true }], token);
    const events = `SELECT details FROM audit_events WHERE event = 'records.deleted'`;
    await until(async () => (await sql(events)).length > 0);
    expect(await sql(events)).toEqual([{ details: { operator: 'cleaner', counts: { users: 1 } } }]);
  });
});

test('routes return 404 after the last token is revoked', async () => {
  await sql('UPDATE operator_tokens SET revoked_at = now()');
  await until(async () => (await openapi('anything')) === 404);
  expect(ok(await openapi(undefined))).toEqual(ok(404));
});
