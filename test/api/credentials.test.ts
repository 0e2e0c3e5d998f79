import type { NestExpressApplication } from '@nestjs/platform-express';
import { getRepositoryToken } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { hashApiKey, newApiKey } from '../../src/auth/keys/api-key';
import { ApiKey } from '../../src/auth/keys/api-key.entity';
import { ApiKeysService } from '../../src/auth/keys/api-keys.service';
import { ApiKeyUses } from '../../src/auth/keys/api-key-uses';
import { CredentialCache } from '../../src/auth/keys/credential-cache';
import { Database } from '../../src/platform/database/database';
import { Settings } from '../../src/platform/config/settings';
import { holdLocks } from '../support/locks';
import { metric } from '../support/metric';
import { sendRaw } from '../support/raw';
import { type Actor, anonymous } from '../support/actor';
import { logged, openApp, PEPPER, theApp, theClock, useStore } from '../support/app';
import { type HttpResponse, failure, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { recordStatements } from '../support/statements';
import { until } from '../support/time';
import { forge } from '../support/tokens';
import { ROOT_SCOPES } from '../../src/auth/access/scopes';

useStore({ RATE_LIMIT: 'off' });

const ALL = ok({ type: 'key', scopes: ROOT_SCOPES });
const info = (authorization?: string) =>
  send('GET', '/credentials/info', { headers: authorization === undefined ? {} : { authorization } });
const keys = () => theApp().get(ApiKeysService);
const repository = () => theApp().get<Repository<ApiKey>>(getRepositoryToken(ApiKey));

/** Makes the next execution of this statement fail. */
function failOnce(name: string): void {
  const database = theApp().get(Database);
  const { rows } = database;
  let failed = false;
  jest.spyOn(database, 'rows').mockImplementation((statement, values) => {
    if (failed || statement.name !== name) return rows.call(database, statement, values) as never;
    failed = true;
    return Promise.reject(new Error('out of order'));
  });
}

describe('GET /credentials/info', () => {
  test('returns the root scopes for an unscoped key', async () => {
    const { owner } = await actors();
    expect(await owner.get('/credentials/info')).toEqual(ALL);
  });

  test('sorts and deduplicates scopes', async () => {
    const { owner } = await actors();
    const key = await make.key({
      owner,
      scopes: ['profile:me', 'collection', 'profile:games', 'profile:me'],
    });
    expect(await owner.with(key).get('/credentials/info')).toEqual(
      ok({ type: 'key', scopes: ['collection', 'profile:games', 'profile:me'] }),
    );
  });

  test('allows a key without scopes', async () => {
    const { owner } = await actors();
    const bare = owner.with(await make.key({ owner, scopes: [] }));
    expect(await bare.get('/credentials/info')).toEqual(ok({ type: 'key', scopes: [] }));
    expect(await bare.get('/profile')).toEqual(failure(403, 'api key does not permit `profile:me`'));
  });

  test('ignores parameters', async () => {
    const { owner } = await actors();
    expect(await owner.get('/credentials/info?scope=x&scopes[]=y&__proto__[type]=jwt')).toEqual(ALL);
  });
});

describe('the Authorization header', () => {
  let owner: Actor;
  beforeAll(async () => ({ owner } = await actors()));

  test.each([
    ['Bearer', (key: string) => `Bearer ${key}`],
    ['a lowercase bearer scheme', (key: string) => `bearer ${key}`],
    ['bare', (key: string) => key],
    ['more spaces', (key: string) => `BEARER    ${key}  `],
  ])('accepts %s', async (_, header) => {
    expect(await info(header(owner.key!))).toMatchObject(ALL);
  });

  test.each([
    ['none', undefined],
    ['empty', ''],
    ['blank', '   '],
    ['Bearer without a credential', 'Bearer'],
    ['Bearer and a space', 'Bearer '],
    ['another scheme', 'Basic dXNlcjpwYXNz'],
    ['another scheme with parameters', 'Digest username="x", nonce="y"'],
    ['a space inside the credential', 'Bearer a b'],
    ['a SQL statement', "Bearer '; DROP TABLE users"],
  ])('%s is not a credential', async (_, header) => {
    const response = await info(header);
    expect(response).toMatchObject(failure(401, 'authentication required'));
    expect(response.headers.get('www-authenticate')).toBe('Bearer realm="gamewharf"');
  });

  test.each(['nonsense', 'Bearer nonsense', "Bearer ';DROP"])('%s is an invalid key', async (header) => {
    const response = await info(header);
    expect(response).toMatchObject(failure(401, 'invalid key'));
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="gamewharf", error="invalid_token", error_description="invalid key"',
    );
  });

  test('rejects two Authorization headers, whatever their values', async () => {
    const header = `Authorization: Bearer ${owner.key}\r\n`;
    for (const other of [header, 'authorization: Bearer nonsense\r\n', 'AUTHORIZATION:\r\n'])
      for (const path of ['/credentials/info', '/api/1/key/me'])
        for (const headers of [header + other, other + header])
          expect(
            await sendRaw(`GET ${path} HTTP/1.1\r\nHost: h\r\n${headers}Connection: close\r\n\r\n`),
          ).toMatchObject({ status: 400, body: '{"errors":["Authorization must be given once"]}' });
  });

  test('reads credentials only from the header', async () => {
    for (const name of ['api_key', 'access_token', 'key', 'token'])
      expect(await anonymous.get('/profile', { [name]: owner.key })).toEqual(
        failure(401, 'authentication required'),
      );
    const body = new URLSearchParams({ access_token: owner.key!, api_key: owner.key! }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded', cookie: `key=${owner.key}` };
    expect(await send('POST', '/credentials/subkey', { headers, body })).toMatchObject(
      failure(401, 'authentication required'),
    );
  });

  test('names a missing scope', async () => {
    const key = await make.key({ owner, scopes: ['prof', 'profile:games:more', 'collection'] });
    const response = await send('GET', '/profile', { headers: { authorization: key } });
    expect(response).toMatchObject(failure(403, 'api key does not permit `profile:me`'));
    expect(response.headers.get('www-authenticate')).toBe(
      'Bearer realm="gamewharf", error="insufficient_scope", scope="profile:me"',
    );
  });

  test('checks the credential and the scope before the parameters', async () => {
    const path = '/games/abc/purchases?email[x]=1';
    expect(await anonymous.get(path)).toEqual(failure(401, 'authentication required'));
    const small = owner.with(await make.key({ owner, scopes: ['profile'] }));
    expect(await small.get(path)).toEqual(failure(403, 'api key does not permit `game:view:purchases`'));
    expect((await owner.get(path)).status).toBe(400);
  });
});

describe('API keys', () => {
  test('have a prefix, 190 random bits and a checksum, and are stored only as a hash', async () => {
    const { owner } = await actors();
    const { id, key } = await keys().create(owner.id, { label: 'laptop', scopes: ['profile'] });
    expect(key).toMatch(/^gw_[0-9A-Za-z]{38}$/);
    const [row] = await sql('SELECT * FROM api_keys WHERE id = $1', [id]);
    expect(row).toMatchObject({ hint: key.slice(0, 8), label: 'laptop', scopes: ['profile'] });
    expect(row!.key_hash).toEqual(hashApiKey(key, Buffer.from(PEPPER)));
    expect(JSON.stringify(row)).not.toContain(key.slice(8));
    expect(await owner.with(key).get('/credentials/info')).toEqual(ok({ type: 'key', scopes: ['profile'] }));
  });

  test('are rejected without a query if their checksum is wrong', async () => {
    const key = newApiKey();
    const wrong = key.slice(0, -1) + (key.endsWith('0') ? '1' : '0');
    const swapped = `gw_${key[4]}${key[3]}${key.slice(5)}`;
    for (const one of [wrong, swapped].filter((mistyped) => mistyped !== key))
      expect(
        await recordStatements(async () =>
          expect(await anonymous.with(one).get('/profile')).toEqual(failure(401, 'invalid key')),
        ),
      ).toEqual([]);
    expect(await recordStatements(() => anonymous.with(key).get('/profile'))).toEqual(['live_api_keys']);
  });

  test.each(['my-test-key', 'a', 'gw_short', 'with.one.dot.more', 'ключ🔑', 'Ümläut', 'x'.repeat(512)])(
    'imported in any format are accepted: %s',
    async (text) => {
      const { owner } = await actors();
      await make.key({ owner, text });
      const inUtf8 = Buffer.from(text).toString('latin1');
      expect(await info(`Bearer ${inUtf8}`)).toMatchObject(ALL);
    },
  );

  test('are accepted in Latin-1, because some clients send them', async () => {
    const { owner } = await actors();
    await make.key({ owner, text: 'schlüssel' });
    expect(await info('schlüssel')).toMatchObject(ALL);
  });

  test('take one statement for the first request and none while cached', async () => {
    const { owner } = await actors();
    expect(await recordStatements(() => owner.get('/profile'))).toEqual(['live_api_keys', 'user']);
    expect(await recordStatements(() => owner.get('/profile'))).toEqual(['user']);
  });

  test('share one lookup between concurrent requests', async () => {
    const { owner } = await actors();
    const names = await recordStatements(() =>
      Promise.all(Array.from({ length: 20 }, () => owner.get('/credentials/info'))),
    );
    expect(names.length).toBeLessThan(5);
  });

  test('are looked up together when several arrive at once', async () => {
    const { owner } = await actors();
    const many = await Promise.all(
      Array.from({ length: 20 }, async () => owner.with(await make.key({ owner }))),
    );
    const names = await recordStatements(() =>
      Promise.all(
        many.map(async (one, i) =>
          expect(await (i % 2 ? one : one.with('wrong')).get('/credentials/info')).toEqual(
            i % 2 ? ALL : failure(401, 'invalid key'),
          ),
        ),
      ),
    );
    expect(names.length).toBeLessThan(15);
  });

  test('are counted by lookup result', async () => {
    const counts = async () =>
      Object.fromEntries(
        (await metric('gamewharf_credential_lookups_total')).map(({ labels, value }) => [
          labels.result,
          value,
        ]),
      ) as Record<string, number>;
    const { owner } = await actors();
    const before = await counts();
    for (let i = 0; i < 3; i++) await owner.get('/credentials/info');
    await anonymous.with('nobody').get('/credentials/info');
    const after = await counts();
    const more = (result: string) => after[result]! - before[result]!;
    expect(more('rejected')).toBe(1);
    expect(more('verified')).toBeGreaterThan(0);
    expect(more('verified') + more('cached')).toBe(3);
  });

  test('expire: a cached JWT is rejected afterwards', async () => {
    const { owner } = await actors();
    theClock().stop();
    theClock().setTimeOfDay(Math.ceil(theClock().now() / 1000) * 1000 + 500);
    // Clocks may differ by a minute, so the JWT is valid until then.
    const token = await forge({ sub: owner.id, expires_in: -59 });
    expect((await info(token)).status).toBe(200);
    theClock().advance(499);
    expect(await recordStatements(() => info(token))).toEqual([]);
    theClock().advance(1);
    expect(await info(token)).toMatchObject(failure(401, 'token expired'));
  });

  test('are not JWTs: a cached JWT is an invalid key', async () => {
    const { owner } = await actors();
    const token = await forge({ sub: owner.id });
    expect((await info(token)).status).toBe(200);
    expect(await anonymous.get(`/api/1/${token}/credentials/info`)).toMatchObject({
      body: { errors: ['invalid key'] },
    });
  });

  test('return an error while the database fails, and work with the next request', async () => {
    const { owner } = await actors();
    failOnce('live_api_keys');
    expect((await owner.get('/credentials/info')).status).toBe(500);
    jest.restoreAllMocks();
    expect(await owner.get('/credentials/info')).toEqual(ALL);
  });

  test('work until their grant expires or is revoked', async () => {
    const { owner, stranger } = await actors();
    await sql(
      `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes)
       VALUES ('companion', $1, 'Companion', '{}', '{profile}')`,
      [owner.id],
    );
    const [grant] = await sql<{ id: number; user_id: number }>(
      `INSERT INTO oauth_grants (user_id, client_id, scopes) VALUES ($1, 'companion', '{profile}') RETURNING *`,
      [stranger.id],
    );
    const make = (seconds: number) =>
      theApp()
        .get(Database)
        .transaction((db) =>
          keys().createIn(db, grant!.user_id, { grant_id: grant!.id, scopes: ['profile:me'], seconds }),
        );
    const readLifetime = async ({ id }: { id: number }) =>
      (
        await sql(
          `SELECT grant_id, hint, extract(epoch FROM expires_at - created_at)::int AS seconds FROM api_keys
           WHERE id = $1`,
          [id],
        )
      )[0];
    const [short, long] = [await make(60), await make(6000)];
    expect(await readLifetime(short)).toEqual({
      grant_id: grant!.id,
      hint: short.key.slice(0, 8),
      seconds: 60,
    });
    expect(await readLifetime(long)).toMatchObject({ seconds: 6000 });
    expect(await stranger.with(short.key).get('/credentials/info')).toEqual(
      ok({ type: 'key', scopes: ['profile:me'], oauth_application_id: 'companion' }),
    );
    await sql('UPDATE api_keys SET revoked_at = now() WHERE grant_id = $1', [grant!.id]);
    keys().forgetAll();
    for (const { key } of [short, long])
      expect(await stranger.with(key).get('/credentials/info')).toEqual(failure(401, 'invalid key'));
  });

  test('stay cached when many invalid keys are sent', async () => {
    const { owner } = await actors();
    theClock().stop();
    await owner.get('/credentials/info');
    await Promise.all(Array.from({ length: 200 }, (_, i) => anonymous.with(`garbage ${i}`).get('/profile')));
    const { caches } = theApp().get(CredentialCache) as unknown as {
      caches: { key: { entries: Map<string, unknown> } };
    };
    const cached = [...caches.key.entries.keys()];
    expect(cached.length).toBeGreaterThan(0);
    expect(cached.filter((text) => text.startsWith('garbage'))).toEqual([]);
  });
});

describe('revocation', () => {
  test('takes effect on the next request, including requests in progress', async () => {
    const { owner } = await actors();
    const { id, key } = await keys().create(owner.id);
    const holder = owner.with(key);
    expect(await holder.get('/credentials/info')).toEqual(ALL);
    expect(await keys().revoke(id, owner.id)).toBe(true);
    expect(await holder.get('/credentials/info')).toEqual(failure(401, 'invalid key'));
    expect(await keys().revoke(id, owner.id)).toBe(false);
  });

  test("cannot revoke another user's key", async () => {
    const { owner, stranger } = await actors();
    const { id, key } = await keys().create(owner.id);
    expect(await keys().revoke(id, stranger.id)).toBe(false);
    expect(await owner.with(key).get('/credentials/info')).toEqual(ALL);
  });

  test.each<[string, string, (key: { id: number; key: string }, owner: Actor) => Promise<string> | string]>([
    ['a revoked key', 'live_api_keys', ({ key }) => key],
    ['a key revoked with others', 'live_api_keys', ({ key }) => key],
    ['a revoked JWT of a key', 'live_user_of_token', ({ id }, { id: sub }) => forge({ sub, api_key_id: id })],
  ])('discards lookups that started before it: %s', async (which, asked, buildCredential) => {
    const { owner } = await actors();
    const created = await keys().create(owner.id);
    const holder = owner.with(await buildCredential(created, owner));
    const database = theApp().get(Database);
    const { rows } = database;
    let release = () => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    let early: Promise<HttpResponse>;
    // The lookup's rows are delivered after the key is revoked.
    await new Promise<void>((read) => {
      jest.spyOn(database, 'rows').mockImplementation(async (statement, values) => {
        const found = await rows.call(database, statement, values);
        if (statement.name === asked) {
          read();
          await held;
        }
        return found as never;
      });
      early = holder.get('/credentials/info');
    });
    jest.restoreAllMocks();
    if (which.endsWith('others')) {
      await sql('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [created.id]);
      keys().forgetAll();
    } else await keys().revoke(created.id, null);
    const between = holder.get('/credentials/info');
    release();
    await early!;
    for (const response of [await between, await holder.get('/credentials/info')])
      expect(response.status).toBe(401);
  });

  test('takes effect on another replica at most 700 ms later', async () => {
    const { owner } = await actors();
    const { id, key } = await keys().create(owner.id);
    const other = await openApp({ DATABASE_URL: theApp().get(Settings).DATABASE_URL!, RATE_LIMIT: 'off' });
    theClock().stop();
    try {
      const there = async () =>
        (await fetch(`${await other.getUrl()}/credentials/info`, { headers: { authorization: key } })).status;
      expect(await there()).toBe(200);
      await keys().revoke(id, null);
      theClock().advance(699);
      expect(await there()).toBe(200);
      theClock().advance(1);
      expect(await there()).toBe(401);
      // Two replicas in one process, each with its own connections to the database.
      expect(await recordStatements(() => there(), other)).toEqual(['live_api_keys']);
      expect(await recordStatements(() => there(), theApp())).toEqual([]);
    } finally {
      await other.close();
    }
  });
});

describe('the time of the last use', () => {
  const lastUse = async (id: number) =>
    (await sql<{ last_used_at: string | null }>('SELECT last_used_at FROM api_keys WHERE id = $1', [id]))[0]!
      .last_used_at;
  const uses = () => theApp().get(ApiKeyUses);
  const use = (api_key_id: number) => uses().add({ api_key_id, requests: 0, network: null });

  test('is recorded in the background, at most once a minute', async () => {
    const { owner } = await actors();
    const { id, key } = await keys().create(owner.id);
    await owner.with(key).get('/profile');
    await until(async () => (await lastUse(id)) !== null);
    const first = await lastUse(id);
    theApp().get(CredentialCache).forgetAll();
    const update = jest.spyOn(repository(), 'update');
    await owner.with(key).get('/profile');
    await uses().flush();
    // The log doesn't contain its hash either, which uses the current pepper.
    expect(update).not.toHaveBeenCalled();
    update.mockRestore();
    expect(await lastUse(id)).toBe(first);
    await sql(`UPDATE api_keys SET last_used_at = now() - interval '61 seconds' WHERE id = $1`, [id]);
    theApp().get(CredentialCache).forgetAll();
    await owner.with(key).get('/profile');
    await uses().flush();
    expect(Date.parse((await lastUse(id))!)).toBeGreaterThanOrEqual(Date.parse(first!));
  });

  test('is written without waiting for a locked row', async () => {
    const { owner } = await actors();
    const [locked, free] = [await keys().create(owner.id), await keys().create(owner.id)];
    await theApp()
      .get(Database)
      .transaction(async (db) => {
        await db.query('SELECT FROM api_keys WHERE id = $1 FOR NO KEY UPDATE', [locked.id]);
        use(locked.id);
        use(free.id);
        await uses().flush();
        expect(await lastUse(free.id)).not.toBeNull();
        expect(await lastUse(locked.id)).toBeNull();
      });
  });

  test('is counted without waiting for a key that is being deleted', async () => {
    const { owner } = await actors();
    const [deleted, used] = [await keys().create(owner.id), await keys().create(owner.id)];
    const requests = () =>
      sql('SELECT api_key_id, requests FROM api_key_requests WHERE api_key_id IN ($1, $2)', [
        deleted.id,
        used.id,
      ]);
    use(used.id);
    await uses().flush();
    const { commit } = await holdLocks(`DELETE FROM api_keys WHERE id = ${deleted.id}`);
    for (const { id } of [deleted, used]) use(id);
    await uses().flush();
    expect(await requests()).toEqual([{ api_key_id: used.id, requests: 2 }]);
    await commit();
  });

  test('is written for more keys than fit in one statement', async () => {
    const { owner } = await actors();
    const made = await sql<{ id: number }>(
      `INSERT INTO api_keys (key_hash, hint, user_id)
       SELECT sha256(('many ' || n)::bytea), 'many', $1 FROM generate_series(1, 1001) n RETURNING id`,
      [owner.id],
    );
    for (const { id } of made) use(id);
    await uses().flush();
    expect(await sql(`SELECT FROM api_keys WHERE hint = 'many' AND last_used_at IS NOT NULL`)).toHaveLength(
      1001,
    );
  });

  test('is logged when it cannot be written, without affecting the next one', async () => {
    const { owner } = await actors();
    const { id } = await keys().create(owner.id);
    failOnce('write_api_key_uses');
    use(id);
    await uses().flush();
    expect(logged.join('')).toContain('Uses of API keys were not written: out of order');
    jest.restoreAllMocks();
    use(id);
    await uses().flush();
    expect(await lastUse(id)).not.toBeNull();
  });

  test('is written when the service stops', async () => {
    const { owner } = await actors();
    const { id, key } = await keys().create(owner.id);
    const other = await openApp({ DATABASE_URL: theApp().get(Settings).DATABASE_URL!, RATE_LIMIT: 'off' });
    await fetch(`${await other.getUrl()}/profile`, { headers: { authorization: key } });
    await other.close();
    expect(await lastUse(id)).not.toBeNull();
  });
});

test('keys under the previous pepper still work after a change of pepper and are rehashed when used', async () => {
  const { owner } = await actors();
  const next = 'another pepper, which came in after the first';
  const environment = { DATABASE_URL: theApp().get(Settings).DATABASE_URL!, RATE_LIMIT: 'off' };
  const rotated = await openApp({ ...environment, API_KEY_PEPPER: next, API_KEY_PEPPER_PREVIOUS: PEPPER });
  const status = async (app: NestExpressApplication) =>
    (await fetch(`${await app.getUrl()}/profile`, { headers: owner.headers })).status;
  expect(await status(rotated)).toBe(200);
  await rotated.close();
  const alone = await openApp({ ...environment, API_KEY_PEPPER: next });
  expect(await status(alone)).toBe(200);
  await alone.close();
  const wrong = await openApp({
    ...environment,
    API_KEY_PEPPER: 'a pepper that no key was ever stored under',
  });
  expect(await status(wrong)).toBe(401);
  await wrong.close();
});

test('logs no credential', async () => {
  const { owner } = await actors();
  await owner.get('/profile');
  await anonymous.with('a-key-that-nobody-has').get('/profile');
  expect(logged.join('')).not.toContain(owner.key);
  expect(logged.join('')).not.toContain('a-key-that-nobody-has');
});
