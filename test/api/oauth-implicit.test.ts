import { ExpiredRows } from '../../src/platform/database/expired-rows';
import { hashApiKey } from '../../src/auth/keys/api-key';
import { CredentialCache } from '../../src/auth/keys/credential-cache';
import { signInBrowser, cookieHeaders } from '../support/browser';
import {
  ACCESS,
  authorizePath,
  authorize,
  application,
  browser,
  parseFragment,
  appWithGrant,
  OOB,
  pkce,
  useOauth,
  user,
  profileWith,
  isAccepted,
  OauthClient,
} from '../support/oauth';
import { PEPPER, theApp } from '../support/app';
import { failure, send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

useOauth();

describe('response_type=token', () => {
  test('RFC 6749 4.2.2: returns the token in the fragment with its type, scope and state', async () => {
    const location = await authorize((await application()).tokenRequest({ state: 'a b&c=d#e' }));
    expect(location).toMatch(/^https:\/\/game\.example\/callback#access_token=gw_\w+&state=/);
    expect(parseFragment(location)).toMatchObject({
      token_type: 'bearer',
      scope: 'profile:me',
      state: 'a b&c=d#e',
    });
  });

  test('RFC 6749 7: returns a key that permits only what was granted', async () => {
    const client = await application();
    const { access_token } = parseFragment(await authorize(client.tokenRequest()));
    expect(await isAccepted(access_token!)).toBe(true);
    expect(await user.with(access_token).get('/credentials/info')).toEqual({
      status: 200,
      body: { type: 'key', scopes: ['profile:me'], oauth_application_id: client.id },
    });
    expect((await user.with(access_token).get('/profile/games')).status).toBe(403);
  });

  test('RFC 9700 2.1.2: can be disabled by an app', async () => {
    const client = await appWithGrant({ implicit_allowed: false });
    const { location } = await browser.get(authorizePath(client.tokenRequest()));
    expect(parseFragment(location)).toMatchObject({ error: 'unauthorized_client', state: 'xyz' });
  });

  test('RFC 6749 4.2.2: returns no refresh token', async () => {
    expect(parseFragment(await authorize((await application()).tokenRequest()))).not.toHaveProperty(
      'refresh_token',
    );
  });

  const tokenFor = async (client: OauthClient, by = browser) =>
    parseFragment(await authorize(client.tokenRequest(), by)).access_token!;
  const readLiveKeys = (client: OauthClient) =>
    sql(
      `SELECT k.id FROM api_keys k JOIN oauth_grants g ON g.id = k.grant_id
       WHERE g.client_id = $1 AND k.expires_at IS NULL AND k.revoked_at IS NULL`,
      [client.id],
    );

  test('replaces the previous token of the same app and user at once', async () => {
    const [client, another] = [await application(), await application()];
    const other = await signInBrowser(await make.user());
    const others = [await tokenFor(another), await tokenFor(client, other)];
    const { access_token: exchanged } = await client.tokensFor();
    const first = await tokenFor(client);
    expect(await isAccepted(first)).toBe(true);
    const second = await tokenFor(client);
    expect(await profileWith(first)).toEqual(failure(401, 'invalid key'));
    for (const token of [second, exchanged, ...others]) expect(await isAccepted(token)).toBe(true);
  });

  test('keeps one of two tokens requested at the same time', async () => {
    const client = await application();
    await tokenFor(client);
    for (let round = 0; round < 3; round++) {
      const locations = await Promise.all(
        Array.from({ length: 6 }, async () => {
          const { headers } = await send('GET', authorizePath(client.tokenRequest()), {
            headers: cookieHeaders(browser),
          });
          return headers.get('location')!;
        }),
      );
      const good = await Promise.all(locations.map((one) => isAccepted(parseFragment(one).access_token!)));
      expect(good.filter(Boolean)).toHaveLength(1);
      expect(await readLiveKeys(client)).toHaveLength(1);
    }
  });

  test('expires a token and its JWTs after 90 days without use', async () => {
    const client = await application({ may_start_games: true });
    const game = await make.game({ owner: user });
    const used = (days: number, token: string) =>
      sql(
        `UPDATE api_keys SET created_at = now() - interval '200 days', last_used_at = now() - make_interval(days => $1)
         WHERE key_hash = $2`,
        [days, hashApiKey(token, Buffer.from(PEPPER))],
      );
    const forgetAll = () => theApp().get(CredentialCache).forgetAll();
    const token = await tokenFor(client);
    const order = { game_id: game.id, scope: 'profile:me' };
    const { key } = (await user.with(token).post('/credentials/subkey', order)).body as { key: string };
    expect([await isAccepted(token), await isAccepted(key)]).toEqual([true, true]);
    await used(89, token);
    forgetAll();
    expect([await isAccepted(token), await isAccepted(key)]).toEqual([true, true]);
    await used(91, token);
    forgetAll();
    expect(await profileWith(token)).toEqual(failure(401, 'invalid key'));
    expect(await profileWith(key)).toEqual(failure(401, 'invalid token'));
    expect(await isAccepted(user.key!)).toBe(true);
  });

  test('deletes a replaced token with expired ones', async () => {
    const client = await application();
    for (let i = 0; i < 3; i++) await tokenFor(client);
    const keys = () =>
      sql('SELECT k.id FROM api_keys k JOIN oauth_grants g ON g.id = k.grant_id WHERE client_id = $1', [
        client.id,
      ]);
    expect(await keys()).toHaveLength(3);
    await sql(`UPDATE api_keys SET expires_at = expires_at - interval '2 days'`);
    await theApp().get(ExpiredRows).sweep();
    expect(await keys()).toHaveLength(1);
  });

  test('does not accept consent for codes as consent for tokens', async () => {
    const client = await application();
    await client.codeFor();
    const { status } = await browser.get(authorizePath(client.tokenRequest()));
    expect(status).toBe(200);
    expect(await readLiveKeys(client)).toEqual([]);
    await browser.submit('/user/oauth', {}, 'Allow');
    expect(parseFragment(browser.page.location)).toHaveProperty('access_token');
    expect((await browser.get(authorizePath(client.tokenRequest()))).status).toBe(303);
    expect((await browser.get(authorizePath(client.codeRequest(pkce().code_challenge)))).status).toBe(303);
  });

  test('RFC 8252 7 (out of band): displays the token once, to be copied', async () => {
    const client = await application({ redirect_uris: [OOB] });
    const location = await authorize(client.tokenRequest({ redirect_uri: OOB }));
    expect(location).toBe('/user/oauth/result');
    await browser.follow();
    const [, token] = /<textarea id="result"[^>]*>\s*([^<]+)</.exec(browser.page.text)!;
    expect(await isAccepted(token!)).toBe(true);
    expect(browser.page.text).toContain('<title>Copy to the app');
    expect(browser.words).toMatch(/^Copy the token to Game <\d+> Access token /);
    expect(browser.words).toContain('It is shown only once. Don’t share it.');
    await browser.get('/user/oauth/result');
    expect(browser.page.text).not.toContain(token);
    expect(browser.words).toContain('This page has expired');
  });

  test('RFC 8252 7 (out of band): displays a code, and returns to “Connected apps” after a cancellation', async () => {
    const client = await application({ redirect_uris: [OOB] });
    const { code_verifier, code_challenge } = pkce();
    await browser.get(authorizePath(client.codeRequest(code_challenge, { redirect_uri: OOB })));
    expect(browser.words).toContain('You’ll get a code to copy into the app.');
    expect(browser.page.headers.get('content-security-policy')).toContain(`form-action 'self';`);
    await browser.submit('/user/oauth', {}, 'Allow');
    await browser.follow();
    expect(browser.words).toMatch(/^Copy the code to Game <\d+> Code /);
    expect(browser.words).toContain('It is valid for one minute. Don’t share it.');
    const [, code] = /<textarea id="result"[^>]*>\s*([^<]+)</.exec(browser.page.text)!;
    const { status } = await client.exchange(code!, code_verifier, { redirect_uri: OOB });
    expect(status).toBe(200);
    await browser.get(authorizePath(client.tokenRequest({ redirect_uri: OOB })));
    expect((await browser.submit('/user/oauth', {}, 'Cancel')).location).toBe(ACCESS);
    await browser.get(authorizePath(client.tokenRequest({ redirect_uri: OOB, scope: 'everything' })));
    expect(browser.page.status).toBe(400);
    expect(browser.words).not.toContain('Back to');
  });
});
