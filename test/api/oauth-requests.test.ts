import { Browser, signInBrowser } from '../support/browser';
import {
  authorizePath,
  authorize,
  application,
  APPS,
  browser,
  CALLBACK,
  type Fields,
  parseFragment,
  appWithGrant,
  OOB,
  pkce,
  parseQuery,
  useOauth,
  OauthClient,
} from '../support/oauth';
import { baseUrl } from '../support/app';
import { send } from '../support/http';
import { make } from '../support/make';
import { sql } from '../support/sql';

useOauth();

describe('GET /user/oauth', () => {
  test('RFC 6749 3.1: asks for sign-in and returns to the request', async () => {
    const client = await application();
    const path = authorizePath({ client_id: client.id, ...client.tokenRequest() });
    const stranger = new Browser();
    expect((await stranger.get(path)).location).toBe(`/login?return_to=${encodeURIComponent(path)}`);
    await stranger.follow();
    expect(stranger.page.headers.get('content-security-policy')).toContain(
      `form-action 'self' https://game.example;`,
    );
  });

  test('RFC 6749 4.1.1: keeps a long state through the sign-in page', async () => {
    const path = authorizePath({ ...(await application()).tokenRequest(), state: '"'.repeat(2700) });
    const stranger = new Browser();
    await stranger.get(path);
    await stranger.follow();
    expect(stranger.formFields('/login').return_to).toBe(path);
  });

  test.each([
    ['an unknown client', '/user/oauth', 'nobody', CALLBACK],
    ['a page that is not a request', '/user/settings/api-keys', undefined, CALLBACK],
    ['an app without a website', '/user/oauth', undefined, OOB],
  ])(
    'RFC 6749 10.15: does not redirect elsewhere after sign-in through %s',
    async (_, page, nobody, redirect_uri) => {
      const client = nobody ? new OauthClient(nobody) : await application({ redirect_uris: [redirect_uri] });
      const query = new URLSearchParams(client.tokenRequest({ redirect_uri })).toString();
      const { status, headers } = await new Browser().get(
        `/login?return_to=${encodeURIComponent(`${page}?${query}`)}`,
      );
      expect(status).toBe(200);
      expect(headers.get('content-security-policy')).toContain(`form-action 'self';`);
    },
  );

  test('does not report an unknown client if the database fails', async () => {
    const path = `/login?return_to=${encodeURIComponent(authorizePath((await application()).tokenRequest()))}`;
    await sql('ALTER TABLE oauth_applications RENAME TO away');
    const { status } = await new Browser().get(path);
    await sql('ALTER TABLE away RENAME TO oauth_applications');
    expect(status).toBe(500);
  });

  test('RFC 6749 3.1.2.4: shows an error for an unknown client and does not redirect', async () => {
    const page = await browser.get(authorizePath(new OauthClient('nobody').tokenRequest()));
    expect({ status: page.status, location: page.location }).toEqual({ status: 400, location: undefined });
    expect(browser.words).toContain('The app that sent you here is unknown');
  });

  test('RFC 6749 4.1.2.1: shows an error for a missing client_id', async () => {
    expect((await browser.get('/user/oauth?response_type=code')).status).toBe(400);
  });

  test.each([
    ['another host', 'https://evil.example/callback'],
    ['a longer path', 'https://game.example/callback/../evil'],
    ['a longer path without a slash', 'https://game.example/callbackevil'],
    ['another query', 'https://game.example/callback?x=1'],
    ['a subdomain', 'https://evil.game.example/callback'],
    ['a user part', 'https://game.example@evil.example/callback'],
    ['another scheme', 'http://game.example/callback'],
    ['another case', 'https://game.example/Callback'],
    ['a port', 'https://game.example:8443/callback'],
    ['a fragment', 'https://game.example/callback#x'],
    ['script', 'javascript:alert(1)'],
    ['a percent-encoded letter', 'https://game.example/%63allback'],
  ])('RFC 6749 3.1.2.3, RFC 9700 4.1.3: rejects a redirect URI with %s', async (_, redirect_uri) => {
    const client = await application();
    const page = await browser.get(authorizePath(client.tokenRequest({ redirect_uri })));
    expect({ status: page.status, location: page.location }).toEqual({ status: 400, location: undefined });
    expect(browser.words).toContain('wants to send you to a redirect URI that it hasn’t registered');
    expect(page.text).not.toContain('evil');
  });

  test('RFC 6749 3.1.2.3: requires a redirect URI if several are registered', async () => {
    const client = await application({ redirect_uris: [CALLBACK, 'https://game.example/other'] });
    const { redirect_uri: _, ...fields } = client.tokenRequest();
    expect((await browser.get(authorizePath(fields))).status).toBe(400);
    expect(browser.words).toContain('sent no redirect_uri');
    const redirect_uri = 'https://game.example/other';
    expect(await authorize({ ...fields, redirect_uri })).toContain(`${redirect_uri}#access_token=`);
  });

  test('RFC 6749 3.1.2.3: allows omitting the only registered redirect URI', async () => {
    const client = await application();
    const { redirect_uri: _, ...fields } = client.tokenRequest();
    expect(await authorize(fields)).toMatch(/^https:\/\/game\.example\/callback#access_token=/);
  });

  test('RFC 6749 3.1: ignores a parameter without a value', async () => {
    const fields = (await application()).tokenRequest({ redirect_uri: '', state: '' });
    const location = await authorize(fields);
    expect(location).toMatch(/^https:\/\/game\.example\/callback#access_token=/);
    expect(parseFragment(location)).not.toHaveProperty('state');
  });

  test('RFC 9700 4.1: does not redirect to a registered URI that runs script', async () => {
    const client = await application({ redirect_uris: ['javascript:alert(1)'] });
    expect(
      (await browser.get(authorizePath(client.tokenRequest({ redirect_uri: 'javascript:alert(1)' })))).status,
    ).toBe(400);
  });

  test('RFC 9700 2.6: does not redirect to a registered URI without TLS', async () => {
    const client = await application({ redirect_uris: ['http://game.example/'] });
    expect(
      (await browser.get(authorizePath(client.tokenRequest({ redirect_uri: 'http://game.example/' }))))
        .status,
    ).toBe(400);
  });

  test('RFC 6749 3.1: rejects a repeated parameter', async () => {
    const client = await application();
    expect((await browser.get(`${authorizePath(client.tokenRequest())}&client_id=${client.id}`)).status).toBe(
      400,
    );
    expect((await browser.get(`${authorizePath(client.tokenRequest())}&state=other`)).status).toBe(400);
  });

  test('RFC 6749 3.1: ignores unknown parameters', async () => {
    const client = await application();
    expect((await browser.get(authorizePath(client.tokenRequest({ nonsense: '1' })))).status).toBe(200);
  });

  test.each([
    ['that is unknown', 'profile:me no:such'],
    ['that the application did not register', 'game'],
    ['above one that it registered', 'collection'],
    ['that is missing', ''],
    ['that is a property of every object', 'constructor'],
  ])('RFC 6749 3.3: shows an error page with a way back for a scope %s', async (_, scope) => {
    const client = await application();
    const page = await browser.get(authorizePath(client.tokenRequest({ scope })));
    expect({ status: page.status, location: page.location }).toEqual({ status: 400, location: undefined });
    expect(page.text).toMatch(/href="https:\/\/game\.example\/callback#error=invalid_scope/);
    expect(browser.words).toContain('sent a request that isn’t allowed');
    expect(page.text).toContain('<title>Invalid request');
  });

  test('RFC 6749 3.3: allows a scope below a registered one', async () => {
    const client = await application({ scopes: ['profile'] });
    expect((await browser.get(authorizePath(client.tokenRequest({ scope: 'profile:games' })))).status).toBe(
      200,
    );
  });

  test('RFC 6749 3.1.1: rejects a missing response_type', async () => {
    const client = await appWithGrant();
    const { response_type: _, ...fields } = client.tokenRequest();
    const { location } = await browser.get(authorizePath(fields));
    expect(parseQuery(location)).toMatchObject({ error: 'invalid_request', state: 'xyz' });
  });

  test('RFC 6749 3.1.1: rejects an unknown response_type', async () => {
    const client = await appWithGrant();
    const { location } = await browser.get(authorizePath(client.tokenRequest({ response_type: 'id_token' })));
    expect(parseQuery(location)).toMatchObject({ error: 'unsupported_response_type', state: 'xyz' });
  });

  test('RFC 9700 4.11.2: redirects to no app before sign-in, not even with an error', async () => {
    const client = await application();
    const { location } = await new Browser().get(
      authorizePath(client.tokenRequest({ response_type: 'id_token' })),
    );
    expect(location).toMatch(/^\/login\?/);
  });

  test('RFC 6749 10.13: forbids framing of the consent page', async () => {
    const { headers } = await browser.get(authorizePath((await application()).tokenRequest()));
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('x-frame-options')).toBe('DENY');
  });

  test('RFC 6749 10.12: ignores a decision from another site', async () => {
    const client = await application();
    const forged = { ...client.tokenRequest(), decision: 'allow' };
    expect((await browser.post('/user/oauth', forged)).status).toBe(403);
    await browser.get(authorizePath(client.tokenRequest()));
    const fields = { ...browser.formFields('/user/oauth', 'Allow') };
    expect((await browser.post('/user/oauth', fields, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect(await sql('SELECT FROM oauth_grants WHERE client_id = $1', [client.id])).toEqual([]);
  });

  test('RFC 6749 10.11, 10.14: displays the app and its scopes with all markup escaped', async () => {
    const client = await application();
    await browser.get(
      authorizePath(client.tokenRequest({ scope: 'collection:view profile:me', state: '"><script>' })),
    );
    expect(browser.words).toContain('See who you are');
    expect(browser.words).toContain('See your collections and what is in them');
    expect(browser.words).toContain('You are then redirected to game.example .');
    expect(browser.words).toContain('You are signed in as player');
    expect(browser.words).toContain('The app stays signed in until you haven’t used it for 90 days.');
    expect(browser.words).toContain('You can revoke this at any time under “Connected apps”.');
    expect(browser.words).not.toMatch(/\bNew\b/);
    expect(browser.page.text).toMatch(/<title>Allow Game &lt;\d+&gt;\?/);
    expect(browser.page.headers.get('content-security-policy')).toContain(
      `form-action 'self' https://game.example;`,
    );
    expect(browser.page.text).toContain('Game &lt;');
    expect(browser.page.text).not.toContain('<script>');
  });

  test("RFC 6749 10.14: isolates the text direction of the app's name", async () => {
    const client = await application();
    const name = 'Game \u202eyb noitacilppa na';
    const loose = () =>
      browser.page.text.replace(/<title>.*<\/title>/, '').replaceAll(`<bdi>${name}</bdi>`, '');
    await sql('UPDATE oauth_applications SET name = $2 WHERE client_id = $1', [client.id, name]);
    await browser.get(authorizePath(client.tokenRequest()));
    expect(loose()).not.toContain('\u202e');
    const { user_code } = await client.device();
    await browser.get(`/user/oauth/device?code=${user_code}`);
    expect(loose()).not.toContain('\u202e');
  });

  test('RFC 6749 4.1.1: validates the request again with the decision', async () => {
    await browser.get(authorizePath((await application()).tokenRequest()));
    const scope = await browser.submit('/user/oauth', { scope: 'everything' }, 'Allow');
    expect({ status: scope.status, location: scope.location }).toEqual({ status: 400, location: undefined });
    await browser.get(authorizePath((await application()).tokenRequest()));
    const type = await browser.submit('/user/oauth', { response_type: 'id_token' }, 'Allow');
    expect({ status: type.status, location: type.location }).toEqual({ status: 400, location: undefined });
    expect(browser.words).toContain('response_type must be code or token');
  });

  const WRONG: [string, string, (client: OauthClient) => Fields][] = [
    [
      'unsupported_response_type',
      'response_type must be code or token',
      (id) => id.tokenRequest({ response_type: 'id_token' }),
    ],
    ['invalid_request', 'response_type is missing', (id) => id.tokenRequest({ response_type: '' })],
    ['invalid_request', 'state is too long', (id) => id.tokenRequest({ state: 'x'.repeat(4001) })],
    ['invalid_request', 'code_challenge is missing', (id) => id.codeRequest('')],
    ['unauthorized_client', 'this app does not allow tokens', (id) => id.tokenRequest()],
    [
      'invalid_scope',
      'a requested scope does not exist',
      (id) => id.codeRequest(pkce().code_challenge, { scope: 'no:such' }),
    ],
  ];

  test.each(WRONG)(
    'RFC 9700 4.11.2: shows %s (%s) as a page until the user has granted the app something',
    async (error, words, asking) => {
      const client = await application({ implicit_allowed: false });
      const isTold = async (by = browser) => {
        const { status, location } = await by.get(authorizePath(asking(client)));
        if (status === 303) return location;
        expect({ status, location }).toEqual({ status: 400, location: undefined });
        expect(by.words).toContain(words);
        expect(by.words).toContain(error);
        expect(by.page.text).toContain(`href="${CALLBACK}`);
        return undefined;
      };
      expect(await isTold()).toBeUndefined();
      await client.codeFor();
      expect(await isTold()).toMatch(new RegExp(`^${CALLBACK}[?#]error=${error}&`));
      expect(await isTold(await signInBrowser(await make.user()))).toBeUndefined();
      await sql('UPDATE oauth_grants SET revoked_at = now() WHERE client_id = $1', [client.id]);
      expect(await isTold()).toBeUndefined();
    },
  );

  test('RFC 9700 4.11.2: does not redirect to an app that changed while its consent page was open', async () => {
    const client = await application();
    await browser.get(authorizePath(client.tokenRequest()));
    await sql('UPDATE oauth_applications SET implicit_allowed = false WHERE client_id = $1', [client.id]);
    const { status, location } = await browser.submit('/user/oauth', {}, 'Allow');
    expect({ status, location }).toEqual({ status: 400, location: undefined });
    expect(browser.words).toContain('this app does not allow tokens in the redirect URI');
  });

  test('RFC 8252 7 (out of band): displays an error without a redirect', async () => {
    const client = await application({ redirect_uris: [OOB] });
    const fields = client.tokenRequest({ redirect_uri: OOB });
    for (const before of ['nothing', 'a grant']) {
      const { status, location } = await browser.get(authorizePath({ ...fields, response_type: 'id_token' }));
      expect({ before, status, location }).toEqual({ before, status: 400, location: undefined });
      expect(browser.words).toContain('response_type must be code or token');
      expect(browser.words).not.toContain('Back to');
      await authorize(fields);
    }
  });

  test('RFC 6749 4.1.1: grants nothing without a decision', async () => {
    const client = await application();
    await browser.get(authorizePath(client.tokenRequest()));
    const { location } = await browser.submit('/user/oauth');
    expect(parseFragment(location)).toMatchObject({ error: 'access_denied' });
    expect(await sql('SELECT FROM oauth_grants WHERE client_id = $1', [client.id])).toEqual([]);
  });

  test('RFC 6749 3.1: asks again after sign-in if the session expired meanwhile', async () => {
    const leaving = await make.user();
    const leaver = await signInBrowser(leaving);
    const { state: _, ...fields } = (await application()).tokenRequest();
    await leaver.get(authorizePath(fields));
    await sql('DELETE FROM sessions WHERE user_id = $1', [leaving.id]);
    const sent = { ...fields, form_token: leaver.formFields('/user/oauth').form_token!, decision: 'allow' };
    const { location } = await leaver.post('/user/oauth', sent);
    const asked = new URL(
      new URL(location!, 'http://here.invalid').searchParams.get('return_to')!,
      'http://here.invalid',
    );
    expect(asked.pathname).toBe('/user/oauth');
    expect(Object.fromEntries(asked.searchParams)).toEqual(fields);
  });

  test('RFC 6749 4.1.2.1: returns access_denied when the user cancels', async () => {
    const { code_challenge } = pkce();
    await browser.get(authorizePath((await application()).codeRequest(code_challenge)));
    const { location } = await browser.submit('/user/oauth', {}, 'Cancel');
    expect(parseQuery(location)).toEqual({
      error: 'access_denied',
      error_description: 'the user denied access',
      state: 's t&a=te',
      iss: baseUrl(),
    });
  });

  test('RFC 6749 4.2.2.1: returns access_denied for a token when the user cancels', async () => {
    await browser.get(authorizePath((await application()).tokenRequest()));
    const { location } = await browser.submit('/user/oauth', {}, 'Cancel');
    expect(parseFragment(location)).toMatchObject({ error: 'access_denied', state: 'xyz' });
  });

  test('RFC 6749 3.1.2: keeps the query of a redirect URI', async () => {
    const redirect_uri = 'https://game.example/cb?lang=en';
    const client = await application({ redirect_uris: [redirect_uri] });
    const { code_challenge } = pkce();
    const location = await authorize(client.codeRequest(code_challenge, { redirect_uri }));
    expect(parseQuery(location)).toMatchObject({
      lang: 'en',
      code: expect.any(String) as string,
      state: 's t&a=te',
    });
  });

  test('RFC 9700 4.12: redirects with a 303 after a form', async () => {
    await browser.get(authorizePath((await application()).tokenRequest()));
    expect((await browser.submit('/user/oauth', {}, 'Allow')).status).toBe(303);
  });

  test('RFC 9700 4.4.2.1 (RFC 9207): names the issuer in the response', async () => {
    const { body } = await send('GET', '/.well-known/oauth-authorization-server');
    const { issuer } = body as { issuer: string };
    const location = await authorize((await application()).tokenRequest());
    expect(parseFragment(location).iss).toBe(issuer);
    const code = await authorize((await application()).codeRequest(pkce().code_challenge));
    expect(parseQuery(code).iss).toBe(issuer);
  });
});

describe('redirect URIs of native apps', () => {
  test.each([
    'http://127.0.0.1:5123/callback',
    'http://127.0.0.1/callback',
    'http://127.0.0.1:65535/callback',
  ])('RFC 8252 7.3: accepts loopback at any port: %s', async (redirect_uri) => {
    const client = await application({ redirect_uris: ['http://127.0.0.1:3000/callback'] });
    await browser.get(authorizePath(client.tokenRequest({ redirect_uri })));
    expect(browser.words).toContain('You’ll be returned to the app on this computer.');
    expect(await authorize(client.tokenRequest({ redirect_uri }))).toContain(`${redirect_uri}#access_token=`);
  });

  test('RFC 8252 7.3: accepts loopback over IPv6', async () => {
    const client = await application({ redirect_uris: ['http://[::1]/callback'] });
    const redirect_uri = 'http://[::1]:61023/callback';
    expect(await authorize(client.tokenRequest({ redirect_uri }))).toContain(`${redirect_uri}#`);
  });

  test('RFC 9700 2.1: accepts localhost', async () => {
    const client = await application({ redirect_uris: ['http://localhost/callback'] });
    const redirect_uri = 'http://localhost:61023/callback';
    expect(await authorize(client.tokenRequest({ redirect_uri }))).toContain(`${redirect_uri}#`);
  });

  test.each([
    'http://127.0.0.1:99999/callback',
    'http://127.0.0.1:80@evil.example/callback',
    'http://127.0.0.1.evil.example/callback',
    'http://127.0.0.1:3000/other',
    'https://127.0.0.1:3000/callback',
    'http://localhost:3000/callback',
    'http://127.0.0.1:/callback',
  ])('RFC 8252 7.3: allows only a different port: %s', async (redirect_uri) => {
    const client = await application({ redirect_uris: ['http://127.0.0.1:3000/callback'] });
    expect((await browser.get(authorizePath(client.tokenRequest({ redirect_uri })))).status).toBe(400);
  });

  test('RFC 8252 7.1: accepts a private-use scheme', async () => {
    const redirect_uri = 'com.example.game:/callback';
    const client = await application({ redirect_uris: [redirect_uri] });
    const { code_challenge } = pkce();
    const location = await authorize(client.codeRequest(code_challenge, { redirect_uri }));
    expect(location).toMatch(/^com\.example\.game:\/callback\?code=/);
    await browser.get(authorizePath(client.tokenRequest({ redirect_uri })));
    expect(browser.page.headers.get('content-security-policy')).toContain(
      "form-action 'self' com.example.game:;",
    );
  });

  test.each([
    ['RFC 8252 8.4: a scheme without a dot', 'game:/callback'],
    ['RFC 6749 3.1.2: a fragment', 'https://game.example/#x'],
    ['RFC 9700 2.6: no TLS', 'http://game.example/'],
    ['RFC 9700 4.1.3: a wildcard', 'https://*.game.example/'],
    ['RFC 6749 3.1.2: not absolute', '/callback'],
    ['RFC 9700 4.1: script', 'javascript:alert(1)'],
    ['RFC 6749 3.1.2: a user part', 'https://user@game.example/'],
  ])('rejects the registration of %s', async (_, redirect_uris) => {
    await browser.get(`${APPS}/new`);
    const { status } = await browser.submit(APPS, { name: 'Bad', redirect_uris });
    expect(status).toBe(400);
    expect(browser.words).toContain('must begin with https://');
  });
});
