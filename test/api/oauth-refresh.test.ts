import {
  application,
  oauthError,
  type Tokens,
  useOauth,
  user,
  profileWith,
  isAccepted,
  OauthClient,
} from '../support/oauth';
import { writeWhileLocked } from '../support/locks';
import { openConnections } from '../support/pool';
import { theApp } from '../support/app';
import { sql } from '../support/sql';

useOauth();

describe('grant_type=refresh_token', () => {
  const later = (seconds = 11) =>
    sql('UPDATE oauth_refresh_tokens SET used_at = used_at - make_interval(secs => $1)', [seconds]);

  test('RFC 6749 6: issues a new pair and keeps the old access token valid until it expires', async () => {
    const client = await application();
    const first = await client.tokensFor();
    const { status, body } = await client.refresh(first.refresh_token);
    const second = body as Tokens;
    expect(status).toBe(200);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(await isAccepted(second.access_token)).toBe(true);
    expect(await isAccepted(first.access_token)).toBe(true);
  });

  test('RFC 6749 1.5: expires access tokens', async () => {
    const { access_token, refresh_token, key } = await (await application()).tokensFor();
    const [hours] = await sql(
      `SELECT round(extract(epoch FROM k.expires_at - now()) / 3600)::int AS access,
              round(extract(epoch FROM t.expires_at - now()) / 3600)::int AS refresh
       FROM api_keys k JOIN oauth_refresh_tokens t ON t.api_key_id = k.id WHERE t.token_hash = sha256($1::bytea)`,
      [Buffer.from(refresh_token)],
    );
    expect(hours).toEqual({ access: 1, refresh: 90 * 24 });
    await sql('UPDATE api_keys SET expires_at = now() WHERE id = $1', [key.id]);
    expect(await profileWith(access_token)).toEqual({ status: 401, body: { errors: ['invalid key'] } });
  });

  test('RFC 9700 4.14.2: revokes the family of a reused refresh token', async () => {
    const client = await application();
    const first = await client.tokensFor();
    const second = (await client.refresh(first.refresh_token)).body as Tokens;
    const third = (await client.refresh(second.refresh_token)).body as Tokens;
    for (const { access_token } of [first, second, third]) expect(await isAccepted(access_token)).toBe(true);
    await later();
    expect(await client.refresh(first.refresh_token)).toMatchObject(oauthError('invalid_grant'));
    for (const { access_token } of [first, second, third]) expect(await isAccepted(access_token)).toBe(false);
    expect(await client.refresh(third.refresh_token)).toMatchObject(oauthError('invalid_grant'));
  });

  test('requests for one grant that wait for a lock delay no write of another user', async () => {
    const client = await application();
    const { refresh_token } = await client.tokensFor();
    const lock = `SELECT FROM oauth_grants WHERE client_id = '${client.id}' FOR UPDATE`;
    expect(await writeWhileLocked(lock, () => client.refresh(refresh_token))).toBe(200);
  });

  test('RFC 9700 4.14.2: keeps other families of the same user', async () => {
    const client = await application();
    const [one, other] = [await client.tokensFor(), await client.tokensFor()];
    await client.refresh(one.refresh_token);
    await later();
    await client.refresh(one.refresh_token);
    expect(await isAccepted(other.access_token)).toBe(true);
    expect((await client.refresh(other.refresh_token)).status).toBe(200);
  });

  test('RFC 9700 4.14.2: repeats the response to a client that retries within 10 s', async () => {
    const client = await application();
    const { refresh_token } = await client.tokensFor();
    const first = await client.refresh(refresh_token);
    const again = await client.refresh(refresh_token);
    expect(again.body).toEqual(first.body);
    expect(await isAccepted((again.body as Tokens).access_token)).toBe(true);
    // The test stays far from 10 s, because the time of the database also passes on a busy machine.
    await later(5);
    expect((await client.refresh(refresh_token)).body).toEqual(first.body);
    await later(6);
    expect(await client.refresh(refresh_token)).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 9700 4.14.2: returns the same pair to two concurrent requests', async () => {
    const client = await application();
    const { refresh_token } = await client.tokensFor();
    await openConnections(theApp(), 5);
    const responses = await Promise.all(Array.from({ length: 5 }, () => client.refresh(refresh_token)));
    expect(new Set(responses.map(({ text }) => text)).size).toBe(1);
    expect(responses[0]!.status).toBe(200);
  });

  const countRows = (client: OauthClient) =>
    sql(
      `SELECT count(t.used_at)::int AS used, count(*)::int AS tokens, count(k.id)::int AS keys,
              (SELECT count(*)::int FROM api_keys k WHERE k.grant_id = g.id) AS "allKeys"
       FROM oauth_grants g JOIN oauth_refresh_tokens t ON t.grant_id = g.id LEFT JOIN api_keys k ON k.id = t.api_key_id
       WHERE g.client_id = $1 GROUP BY g.id`,
      [client.id],
    );

  test('RFC 9700 4.14.2: stores the newest used tokens, and detects reuse of all', async () => {
    const client = await application();
    const first = await client.tokensFor();
    let last = first;
    for (let i = 0; i < 105; i++) last = (await client.refresh(last.refresh_token)).body as Tokens;
    expect(await countRows(client)).toEqual([{ used: 101, tokens: 102, keys: 102, allKeys: 102 }]);
    expect(await isAccepted(last.access_token)).toBe(true);
    expect(await client.refresh(first.refresh_token)).toMatchObject(oauthError('invalid_grant'));
    expect(await isAccepted(last.access_token)).toBe(false);
    expect(await client.refresh(last.refresh_token)).toMatchObject(oauthError('invalid_grant'));
  });

  test('stores the newest 1,000 sign-ins of a user with an app', async () => {
    const client = await application();
    const { refresh_token } = await client.tokensFor();
    await sql(
      `INSERT INTO oauth_refresh_tokens (token_hash, grant_id, family_id, scopes, expires_at)
       SELECT sha256(n::text::bytea), id, gen_random_uuid(), scopes, now() + interval '90 days'
       FROM oauth_grants, generate_series(1, 1000) n WHERE client_id = $1`,
      [client.id],
    );
    await (await application()).tokensFor();
    expect(await countRows(client)).toEqual([{ used: 0, tokens: 1001, keys: 1, allKeys: 1 }]);
    await client.tokensFor();
    expect(await countRows(client)).toEqual([{ used: 0, tokens: 1000, keys: 1, allKeys: 1 }]);
    expect(await client.refresh(refresh_token)).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 9700 4.14.2: treats a retry after use of the successor as theft, however soon', async () => {
    const client = await application();
    const first = await client.tokensFor();
    const second = (await client.refresh(first.refresh_token)).body as Tokens;
    await client.refresh(second.refresh_token);
    expect(await client.refresh(first.refresh_token)).toMatchObject(oauthError('invalid_grant'));
    expect(await isAccepted(second.access_token)).toBe(false);
  });

  test('RFC 6749 10.4: rejects a token of another client', async () => {
    const [client, attacker] = [await application(), await application()];
    const { refresh_token } = await client.tokensFor();
    expect(await attacker.refresh(refresh_token)).toMatchObject(oauthError('invalid_grant'));
    expect((await client.refresh(refresh_token)).status).toBe(200);
  });

  test('RFC 6749 6: allows fewer scopes, and all of them again the next time', async () => {
    const client = await application();
    const { refresh_token } = await client.tokensFor({ scope: 'profile:me profile:games' });
    const narrow = (await client.refresh(refresh_token, { scope: 'profile:me' })).body as Tokens;
    expect(narrow.scope).toBe('profile:me');
    expect((await user.with(narrow.access_token).get('/profile/games')).status).toBe(403);
    const all = (await client.refresh(narrow.refresh_token)).body as Tokens;
    expect(all.scope).toBe('profile:games profile:me');
    const named = await client.refresh(all.refresh_token, { scope: 'profile:me profile:games' });
    expect((named.body as Tokens).scope).toBe('profile:games profile:me');
  });

  test('RFC 6749 6: rejects more scopes than were granted', async () => {
    const client = await application();
    const { refresh_token } = await client.tokensFor();
    for (const scope of ['profile', 'profile:me collection:view'])
      expect(await client.refresh(refresh_token, { scope })).toMatchObject(
        oauthError('invalid_scope', 400, 'more than the granted scopes'),
      );
    expect((await client.refresh(refresh_token)).status).toBe(200);
  });

  const register = (client: OauthClient, scopes: string[]) =>
    sql('UPDATE oauth_applications SET scopes = $2 WHERE client_id = $1', [client.id, scopes]);

  test('RFC 6749 6: follows the scopes that the app has registered at the time', async () => {
    const client = await application({ scopes: ['profile', 'collection:view'] });
    let { refresh_token } = await client.tokensFor({ scope: 'profile collection:view' });
    const next = async (scope?: string) => {
      const { status, body } = await client.refresh(refresh_token, scope ? { scope } : {});
      if (status !== 200) return (body as { error: string }).error;
      ({ refresh_token } = body as Tokens);
      const { access_token } = body as Tokens;
      return [(body as Tokens).scope, (await user.with(access_token).get('/profile/games')).status];
    };
    expect(await next()).toEqual(['collection:view profile', 200]);
    await register(client, ['profile:me', 'collection']);
    expect(await next()).toEqual(['collection:view profile:me', 403]);
    expect(await next('profile')).toBe('invalid_scope');
    expect(await next('profile:me')).toEqual(['profile:me', 403]);
    await register(client, ['game']);
    expect(await next()).toBe('invalid_grant');
    await register(client, ['profile', 'collection:view']);
    expect(await next()).toEqual(['collection:view profile', 200]);
  });

  test('RFC 6749 6: applies reduced scopes to a code issued before', async () => {
    const client = await application();
    const [code, none] = [await client.codeFor({ scope: 'profile' }), await client.codeFor()];
    await register(client, ['profile:games']);
    const { body } = await client.exchange(code.code, code.code_verifier);
    expect((body as Tokens).scope).toBe('profile:games');
    expect(await client.exchange(none.code, none.code_verifier)).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 9700 4.14.2: expires tokens 180 days after the sign-in, however often they were refreshed', async () => {
    const client = await application();
    const first = await client.tokensFor();
    const days = async (token: string) =>
      (
        await sql<{ ends: number; expires: number }>(
          `SELECT round(extract(epoch FROM family_ends_at - now()) / 86400)::int AS ends,
                  round(extract(epoch FROM expires_at - now()) / 86400)::int AS expires
           FROM oauth_refresh_tokens WHERE token_hash = sha256($1::bytea)`,
          [Buffer.from(token)],
        )
      )[0];
    expect(await days(first.refresh_token)).toEqual({ ends: 180, expires: 90 });
    const pass = (time: string) =>
      sql('UPDATE oauth_refresh_tokens SET family_ends_at = family_ends_at - $1::interval', [time]);
    await pass('100 days');
    const second = (await client.refresh(first.refresh_token)).body as Tokens;
    expect(await days(second.refresh_token)).toEqual({ ends: 80, expires: 90 });
    await pass('79 days');
    const third = (await client.refresh(second.refresh_token)).body as Tokens;
    await pass('1 day');
    expect(await client.refresh(third.refresh_token)).toMatchObject(oauthError('invalid_grant'));
    expect(await days((await client.tokensFor()).refresh_token)).toEqual({ ends: 180, expires: 90 });
  });

  test('RFC 9700 4.14.2: expires a token that is unused for too long', async () => {
    const client = await application();
    const { refresh_token } = await client.tokensFor();
    await sql('UPDATE oauth_refresh_tokens SET expires_at = now()');
    expect(await client.refresh(refresh_token)).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 6749 10.4: stores no refresh token in plain text, including those for retries', async () => {
    const client = await application();
    const { refresh_token } = await client.tokensFor();
    const next = (await client.refresh(refresh_token)).body as Tokens;
    const rows = await sql<{ row: string }>(
      'SELECT oauth_refresh_tokens::text AS row FROM oauth_refresh_tokens',
    );
    const hex = (text: string) => Buffer.from(text).toString('hex');
    for (const secret of [refresh_token, next.refresh_token, next.access_token])
      expect(rows.some(({ row }) => row.includes(secret) || row.includes(hex(secret)))).toBe(false);
  });
});
