import {
  authorizePath,
  authorize,
  application,
  browser,
  CALLBACK,
  codeChallenge,
  DEVICE_GRANT,
  form,
  appWithGrant,
  pkce,
  parseQuery,
  oauthError,
  type Tokens,
  useOauth,
  user,
  isAccepted,
  OauthClient,
} from '../support/oauth';
import { recordStatements } from '../support/statements';
import { openConnections } from '../support/pool';
import { theApp } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

useOauth();

describe('response_type=code', () => {
  test('RFC 6749 4.1.2, 4.1.4: exchanges a code for tokens, including the key that the store’s clients read', async () => {
    const tokens = await (await application()).tokensFor();
    expect(tokens).toEqual({
      access_token: expect.stringMatching(/^gw_/) as string,
      token_type: 'bearer',
      expires_in: 3600,
      refresh_token: expect.stringMatching(/^[\w-]{36}\.[\w-]{43}$/) as string,
      scope: 'profile:me',
      key: {
        id: expect.any(Number) as number,
        user_id: user.id,
        key: tokens.access_token,
        created_at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/) as string,
      },
    });
    expect(await isAccepted(tokens.access_token)).toBe(true);
  });

  test('RFC 6749 5.1: forbids caching of the response', async () => {
    const client = await application();
    const { code, code_verifier } = await client.codeFor();
    const { headers } = await client.exchange(code, code_verifier);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('pragma')).toBe('no-cache');
  });

  test('RFC 6749 4.1.2: returns the state unchanged', async () => {
    const { code_challenge } = pkce();
    expect(parseQuery(await authorize((await application()).codeRequest(code_challenge))).state).toBe(
      's t&a=te',
    );
  });

  test('RFC 6749 10.10: creates a code with 256 random bits and stores only its hash', async () => {
    const { code } = await (await application()).codeFor();
    expect(Buffer.from(code, 'base64url')).toHaveLength(32);
    const rows = await sql<{ row: string }>('SELECT oauth_codes::text AS row FROM oauth_codes');
    expect(rows.some(({ row }) => row.includes(code))).toBe(false);
  });

  test('RFC 7636 4.4.1: requires a challenge', async () => {
    const { code_challenge: _, ...fields } = (await appWithGrant()).codeRequest('');
    const { location } = await browser.get(authorizePath(fields));
    expect(parseQuery(location)).toMatchObject({ error: 'invalid_request', state: 's t&a=te' });
  });

  test.each([
    { code_challenge_method: 'plain' },
    { code_challenge_method: '' },
    { code_challenge_method: 's256' },
  ])('RFC 7636 4.4.1, RFC 9700 2.1.1: accepts only S256: %j', async (more) => {
    const { code_challenge } = pkce();
    const { location } = await browser.get(
      authorizePath((await appWithGrant()).codeRequest(code_challenge, more)),
    );
    expect(parseQuery(location)).toMatchObject({ error: 'invalid_request' });
  });

  test('RFC 7636 4.2: rejects a challenge that is not S256', async () => {
    const { location } = await browser.get(authorizePath((await appWithGrant()).codeRequest('short')));
    expect(parseQuery(location)).toMatchObject({ error: 'invalid_request' });
  });

  test('RFC 7636 4.6: rejects another verifier', async () => {
    const client = await application();
    const { code } = await client.codeFor();
    expect(await client.exchange(code, pkce().code_verifier)).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 7636 4.6: rejects the challenge as verifier', async () => {
    const client = await application();
    const { code_challenge } = pkce();
    const { code } = parseQuery(await authorize(client.codeRequest(code_challenge)));
    expect(await client.exchange(code!, code_challenge)).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 7636 4.5: rejects a request without a verifier', async () => {
    const client = await application();
    const { code } = await client.codeFor();
    expect(
      await form('/oauth/token', {
        grant_type: 'authorization_code',
        client_id: client.id,
        code,
        redirect_uri: CALLBACK,
      }),
    ).toMatchObject(oauthError('invalid_request', 400, 'code_verifier is required'));
  });

  test.each([
    ['too few characters', 'x'.repeat(42), 'invalid_grant'],
    ['too many characters', 'x'.repeat(129), 'invalid_request'],
    ['an invalid leading character', `!${'x'.repeat(43)}`, 'invalid_grant'],
    ['an invalid trailing character', `${'x'.repeat(43)}!`, 'invalid_grant'],
  ])('RFC 7636 4.1: rejects a verifier with %s even if it matches', async (_, verifier, error) => {
    const client = await application();
    const { code } = parseQuery(await authorize(client.codeRequest(codeChallenge(verifier))));
    expect(await client.exchange(code!, verifier)).toMatchObject(oauthError(error));
  });

  test.each(['x'.repeat(43), '~.-_'.repeat(32)])(
    'RFC 7636 4.1: accepts the verifier %s',
    async (verifier) => {
      const client = await application();
      const { code } = parseQuery(await authorize(client.codeRequest(codeChallenge(verifier))));
      expect((await client.exchange(code!, verifier)).status).toBe(200);
    },
  );

  test('RFC 7636 appendix B: accepts the example', async () => {
    const client = await application();
    const fields = client.codeRequest('E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
    const { code } = parseQuery(await authorize(fields));
    const { status } = await client.exchange(code!, 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk');
    expect(status).toBe(200);
  });

  test('RFC 6749 4.1.3: rejects another redirect URI than the code was sent to', async () => {
    const client = await application({ redirect_uris: [CALLBACK, 'https://game.example/other'] });
    const { code, code_verifier } = await client.codeFor();
    const more = { redirect_uri: 'https://game.example/other' };
    expect(await client.exchange(code, code_verifier, more)).toMatchObject(oauthError('invalid_grant'));
    expect(await client.exchange(code, code_verifier, { redirect_uri: '' })).toMatchObject(
      oauthError('invalid_grant'),
    );
    expect((await client.exchange(code, code_verifier)).status).toBe(200);
  });

  test('RFC 6749 4.1.3, RFC 9700 4.5: rejects a code that another client stole', async () => {
    const [client, attacker] = [await application(), await application()];
    const { code, code_verifier } = await client.codeFor();
    expect(await attacker.exchange(code, code_verifier)).toMatchObject(oauthError('invalid_grant'));
    expect((await client.exchange(code, code_verifier)).status).toBe(200);
  });

  test('RFC 6749 4.1.2: rejects an expired code', async () => {
    const client = await application();
    const { code, code_verifier } = await client.codeFor();
    const [row] = await sql<{ seconds: number }>(
      `SELECT extract(epoch FROM expires_at - now())::float AS seconds FROM oauth_codes ORDER BY expires_at DESC LIMIT 1`,
    );
    expect(row!.seconds).toBeGreaterThan(50);
    expect(row!.seconds).toBeLessThanOrEqual(60);
    await sql(`UPDATE oauth_codes SET expires_at = now()`);
    expect(await client.exchange(code, code_verifier)).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 6749 4.1.2, 10.5: revokes the tokens of a code that is used twice', async () => {
    const client = await application();
    const { code, code_verifier } = await client.codeFor();
    const { body } = await client.exchange(code, code_verifier);
    const { access_token, refresh_token } = body as Tokens;
    const next = (await client.refresh(refresh_token)).body as Tokens;
    expect(await isAccepted(access_token)).toBe(true);
    expect(await client.exchange(code, code_verifier)).toMatchObject(oauthError('invalid_grant'));
    expect(await isAccepted(access_token)).toBe(false);
    expect(await isAccepted(next.access_token)).toBe(false);
    expect(await client.refresh(next.refresh_token)).toMatchObject(oauthError('invalid_grant'));
  });

  test('RFC 6749 10.5: keeps keys of other users cached', async () => {
    const client = await application();
    const { code, code_verifier } = await client.codeFor();
    const { access_token } = (await client.exchange(code, code_verifier)).body as Tokens;
    const otherUser = await make.user();
    const ask = () =>
      recordStatements(async () => expect((await otherUser.get('/credentials/info')).status).toBe(200));
    await ask();
    expect(await isAccepted(access_token)).toBe(true);
    expect(await client.exchange(code, code_verifier)).toMatchObject(oauthError('invalid_grant'));
    expect(await ask()).toEqual([]);
    expect(await isAccepted(access_token)).toBe(false);
  });

  test('RFC 6749 4.1.2: lets exactly one of several concurrent exchanges succeed', async () => {
    const client = await application();
    await openConnections(theApp(), 6);
    for (let round = 0; round < 5; round++) {
      const { code, code_verifier } = await client.codeFor();
      const responses = await Promise.all(
        Array.from({ length: 6 }, () => client.exchange(code, code_verifier)),
      );
      const won = responses.filter(({ status }) => status === 200);
      expect(won).toHaveLength(1);
      expect(
        responses.filter((response) => (response.body as { error?: string }).error === 'invalid_grant'),
      ).toHaveLength(5);
    }
  });

  test('RFC 6749 4.1.2: rejects an unknown code', async () => {
    const client = await application();
    expect(await client.exchange('made-up', pkce().code_verifier)).toMatchObject(oauthError('invalid_grant'));
  });
});

describe('POST /oauth/token', () => {
  test('RFC 6749 5.2: rejects an unknown grant_type', async () => {
    const client = await application();
    for (const grant_type of ['password', 'client_credentials', 'nonsense'])
      expect(await form('/oauth/token', { grant_type, client_id: client.id })).toMatchObject(
        oauthError('unsupported_grant_type', 400, 'unknown grant_type'),
      );
  });

  test('RFC 6749 5.2: rejects a request without grant_type or client_id', async () => {
    expect(await form('/oauth/token', {})).toMatchObject({
      status: 400,
      body: {
        errors: ['grant_type is required', 'client_id is required'],
        error: 'invalid_request',
        error_description: 'grant_type is required, client_id is required',
      },
    });
  });

  test.each([
    ['authorization_code', 'code is required'],
    ['refresh_token', 'refresh_token is required'],
    [DEVICE_GRANT, 'device_code is required'],
  ])('RFC 6749 5.2: rejects %s without its parameter', async (grant_type, problem) => {
    const client = await application();
    expect(await form('/oauth/token', { grant_type, client_id: client.id })).toMatchObject(
      oauthError('invalid_request', 400, problem),
    );
  });

  test('RFC 6749 5.2: rejects an unknown client', async () => {
    expect(await new OauthClient('nobody').refresh('x')).toMatchObject(oauthError('invalid_client'));
  });

  test('RFC 6749 3.2: rejects a repeated parameter', async () => {
    const client = await application();
    const body = `grant_type=refresh_token&client_id=${client.id}&refresh_token=a&refresh_token=b`;
    expect(await form('/oauth/token', body)).toMatchObject(oauthError('invalid_request'));
  });

  test('RFC 6749 2.3.1, RFC 9700 4.3.2: rejects secrets in the URL', async () => {
    const client = await application();
    const { code, code_verifier } = await client.codeFor();
    const query = new URLSearchParams({ code, code_verifier, redirect_uri: CALLBACK }).toString();
    const body = { grant_type: 'authorization_code', client_id: client.id };
    expect(await form(`/oauth/token?${query}`, body)).toMatchObject(
      oauthError('invalid_request', 400, 'send the parameters in the body'),
    );
  });

  test('RFC 6749 3.2: accepts only POST', async () => {
    expect((await send('GET', '/oauth/token')).status).toBe(405);
  });

  test('RFC 6749 3.2.1: ignores an Authorization header with another scheme', async () => {
    const client = await application();
    const { code, code_verifier } = await client.codeFor();
    const { status } = await send('POST', '/oauth/token', {
      headers: { authorization: 'anything', 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id: client.id,
        code,
        code_verifier,
        redirect_uri: CALLBACK,
      }).toString(),
    });
    expect(status).toBe(200);
  });

  test('RFC 6749 5.2: returns 400 for hostile bodies', async () => {
    for (const body of ['grant_type=%00', 'grant_type[x]=1', 'grant_type=%ff', '&&==&'])
      expect(await form('/oauth/token', body)).toMatchObject(oauthError('invalid_request'));
  });
});
