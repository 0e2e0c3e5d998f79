import type { NestExpressApplication } from '@nestjs/platform-express';
import { Browser, withPassword } from '../support/browser';
import {
  ACCESS,
  authorizePath,
  authorize,
  application,
  browser,
  CALLBACK,
  DEVICE_GRANT,
  type Fields,
  form,
  parseFragment,
  appWithGrant,
  isAccepted,
  pkce,
  parseQuery,
  oauthError,
  type Tokens,
  useOauth,
  user,
  OauthClient,
} from '../support/oauth';
import { openApp } from '../support/app';
import { ok } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

// Compares a lenient replica with a strict one.
useOauth({ LENIENT_CLIENTS: 'true' });

let strict: NestExpressApplication;
let strictBrowser: Browser;
beforeAll(async () => {
  strict = await openApp({ LENIENT_CLIENTS: 'false' });
  const url = await strict.getUrl();
  strictBrowser = new Browser({}, () => url);
  const { username } = await withPassword(await make.user());
  await strictBrowser.signIn(username);
});

describe('unknown scopes', () => {
  test('are left out of a request, and the response lists the granted ones', async () => {
    const scope = 'profile:me shop:buy openid profile:you';
    const token = parseFragment(await authorize((await application()).tokenRequest({ scope })));
    expect(token.scope).toBe('profile:me');
    const client = await application();
    const tokens = await client.tokensFor({ scope });
    expect(tokens.scope).toBe('profile:me');
    const again = await client.refresh(tokens.refresh_token, { scope });
    expect((again.body as Tokens).scope).toBe('profile:me');
    expect(browser.words).not.toContain('shop');
  });

  test("are left out of a device's request", async () => {
    const client = await application();
    const { body } = await form('/oauth/device', { client_id: client.id, scope: 'shop:buy profile:me' });
    const { device_code, user_code } = body as Fields;
    await browser.get(`/user/oauth/device?code=${user_code}`);
    await browser.submit('/user/oauth/device', {}, 'Allow');
    const fields = { grant_type: DEVICE_GRANT, client_id: client.id, device_code: device_code! };
    expect(((await form('/oauth/token', fields)).body as Tokens).scope).toBe('profile:me');
  });

  test('alone are invalid_scope, and so is an empty list', async () => {
    const client = await appWithGrant();
    for (const scope of ['shop:buy', '']) {
      const { location } = await browser.get(authorizePath(client.tokenRequest({ scope })));
      expect(parseFragment(location)).toMatchObject({ error: 'invalid_scope', state: 'xyz' });
      expect(await form('/oauth/device', { client_id: client.id, scope })).toMatchObject(
        oauthError('invalid_scope'),
      );
    }
    const { refresh_token } = await client.tokensFor();
    expect(await client.refresh(refresh_token, { scope: 'shop:buy' })).toMatchObject(
      oauthError('invalid_scope'),
    );
  });

  test('do not excuse a known scope that is not registered', async () => {
    const client = await appWithGrant();
    const { location } = await browser.get(authorizePath(client.tokenRequest({ scope: 'game shop:buy' })));
    expect(parseFragment(location)).toMatchObject({ error: 'invalid_scope' });
  });

  test('are rejected by a strict service', async () => {
    const scope = 'profile:me shop:buy';
    const { status } = await strictBrowser.get(authorizePath((await application()).tokenRequest({ scope })));
    expect(status).toBe(400);
    expect(strictBrowser.words).toContain('a requested scope does not exist');
  });
});

describe('no response_type', () => {
  const without = ({ response_type: _, ...fields }: Fields): Fields => fields;

  test('means token for an app that uses the implicit flow', async () => {
    const client = await application();
    const location = await authorize(without(client.tokenRequest()));
    expect(parseFragment(location)).toMatchObject({ token_type: 'bearer', scope: 'profile:me' });
    expect((await browser.get(authorizePath(without(client.tokenRequest())))).status).toBe(303);
    await browser.get(authorizePath(without((await application()).tokenRequest())));
    const canceled = await browser.submit('/user/oauth', {}, 'Cancel');
    expect(parseFragment(canceled.location)).toMatchObject({ error: 'access_denied' });
  });

  test('is an error for any other app', async () => {
    const client = await appWithGrant({ implicit_allowed: false });
    const { location } = await browser.get(authorizePath(without(client.tokenRequest())));
    expect(parseQuery(location)).toMatchObject({
      error: 'invalid_request',
      error_description: 'response_type is missing',
    });
  });

  test('means code if requested', async () => {
    const client = await application();
    const { code_verifier, code_challenge } = pkce();
    const location = await authorize(client.codeRequest(code_challenge));
    expect(location).toContain(`${CALLBACK}?code=`);
    expect((await client.exchange(parseQuery(location).code!, code_verifier)).status).toBe(200);
  });

  test('is rejected by a strict service', async () => {
    const { status } = await strictBrowser.get(authorizePath(without((await application()).tokenRequest())));
    expect(status).toBe(400);
    expect(strictBrowser.words).toContain('response_type is missing');
  });
});

describe('the key of a token response, for clients that cannot refresh', () => {
  const expire = (token: { access_token: string }) =>
    sql('UPDATE api_keys SET expires_at = now() WHERE hint = $1 AND expires_at IS NOT NULL', [
      token.access_token.slice(0, 8),
    ]);

  test('outlives the access token, with the same scopes', async () => {
    const client = await application();
    const tokens = await client.tokensFor({ scope: 'profile:me' });
    expect(tokens.key.key).not.toBe(tokens.access_token);
    await expire(tokens);
    expect(await isAccepted(tokens.access_token)).toBe(false);
    expect(await isAccepted(tokens.key.key)).toBe(true);
    expect(await user.with(tokens.key.key).get('/credentials/info')).toEqual(
      ok({ type: 'key', scopes: ['profile:me'], oauth_application_id: client.id }),
    );
    const [row] = await sql(
      'SELECT user_id, expires_at, scopes FROM api_keys k WHERE id = $1 AND EXISTS (SELECT FROM oauth_grants g WHERE g.id = k.grant_id)',
      [tokens.key.id],
    );
    expect(row).toEqual({ user_id: user.id, expires_at: null, scopes: ['profile:me'] });
  });

  test('is the new access token after a refresh, and a new key after a new sign-in', async () => {
    const client = await application();
    const [first, second] = [await client.tokensFor(), await client.tokensFor()];
    const refreshed = (await client.refresh(first.refresh_token)).body as Tokens;
    expect(refreshed.key.key).toBe(refreshed.access_token);
    for (const { key } of [first, second]) expect(await isAccepted(key.key)).toBe(true);
  });

  test.each<[string, (tokens: Tokens, client: OauthClient) => Promise<unknown>]>([
    [
      'its sign-in',
      ({ refresh_token }, client) => form('/oauth/revoke', { client_id: client.id, token: refresh_token }),
    ],
    ['itself', ({ key }, client) => form('/oauth/revoke', { client_id: client.id, token: key.key })],
  ])('is revoked with %s, without those of other sign-ins', async (_, revoke) => {
    const client = await application();
    const [first, second] = [await client.tokensFor(), await client.tokensFor()];
    await revoke(first, client);
    expect(await isAccepted(first.key.key)).toBe(false);
    expect(await isAccepted(second.key.key)).toBe(true);
  });

  test('is revoked when a refresh token is reused, and with the access of the app', async () => {
    const client = await application();
    const [first, second] = [await client.tokensFor(), await client.tokensFor()];
    await client.refresh(first.refresh_token);
    await sql(`UPDATE oauth_refresh_tokens SET used_at = used_at - interval '1 minute'`);
    await client.refresh(first.refresh_token);
    expect(await isAccepted(first.key.key)).toBe(false);
    expect(await isAccepted(second.key.key)).toBe(true);
    await browser.get(ACCESS);
    const [, id] = new RegExp(`${ACCESS}/(\\d+)/revoke`).exec(browser.page.text)!;
    await browser.get(`${ACCESS}/${id}/revoke`);
    await browser.submit(`${ACCESS}/${id}/revoke`);
    expect(await isAccepted(second.key.key)).toBe(false);
  });

  test('is announced on the consent page', async () => {
    const { code_challenge } = pkce();
    await browser.get(authorizePath((await application()).codeRequest(code_challenge)));
    expect(browser.words).toContain('The app stays signed in until you haven’t used it for 90 days.');
  });
});

describe('scopes of launchers and upload tools', () => {
  test.each([
    ['itch', 'collection game:view:ownership game:view:uploads profile'],
    ['wharf', 'game:edit:builds game:view:uploads profile:games'],
  ])('expands %s to %s, shown on the consent page and in the token', async (scope, real) => {
    const client = await application({ scopes: ['profile', 'collection', 'game'] });
    const token = parseFragment(await authorize(client.tokenRequest({ scope })));
    expect(token.scope).toBe(real);
    expect((await client.tokensFor({ scope })).scope).toBe(real);
  });

  test('are unknown otherwise', async () => {
    const client = await application({ scopes: ['profile', 'collection', 'game'] });
    const { status } = await strictBrowser.get(authorizePath(client.tokenRequest({ scope: 'itch' })));
    expect(status).toBe(400);
    expect(strictBrowser.words).toContain('a requested scope does not exist');
  });
});
