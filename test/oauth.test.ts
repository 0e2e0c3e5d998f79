import crypto, { createHash, randomBytes } from 'node:crypto';
import { GrantsService } from '../src/accounts/oauth/grants.service';
import { Database } from '../src/database/database';
import { Browser, browserOf } from './support/browser';
import { type Actor, baseUrl, make, send, sql, theApp, useStore } from './support/store';
import { until } from './support/time';

useStore({ RATE_LIMIT: 'off' });

const CALLBACK = 'https://game.example/callback';
const APPS = '/user/settings/oauth-apps';
const ACCESS = '/user/settings/authorized-apps';
const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
const OOB = 'urn:ietf:wg:oauth:2.0:oob';

const WAITING_FOR_LOCKS = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;

let user: Actor;
let browser: Browser;
let serial = 0;

type Fields = Record<string, string>;
type Tokens = {
  access_token: string;
  refresh_token: string;
  expires_in: number;
  token_type: string;
  scope: string;
  key: { id: number; user_id: number; key: string };
};

beforeAll(async () => {
  user = await make.user({ username: 'player' });
  browser = await browserOf(user);
});

/** A registered application; every test has its own, so that no consent is remembered from another. */
async function application(
  fields: { redirect_uris?: string[]; scopes?: string[]; implicit_allowed?: boolean } = {},
) {
  const owner = await make.user();
  const client_id = `client-${++serial}`;
  await sql(
    `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes, implicit_allowed) VALUES ($1, $2, $3, $4, $5, $6)`,
    [
      client_id,
      owner.id,
      `Game <${serial}>`,
      fields.redirect_uris ?? [CALLBACK],
      fields.scopes ?? ['profile', 'collection:view'],
      fields.implicit_allowed ?? true,
    ],
  );
  return client_id;
}

const pkce = () => {
  const code_verifier = randomBytes(32).toString('base64url');
  return { code_verifier, code_challenge: createHash('sha256').update(code_verifier).digest('base64url') };
};

const addressOf = (fields: Fields) => `/user/oauth?${new URLSearchParams(fields).toString()}`;
const queryOf = (location: string | undefined) => Object.fromEntries(new URL(location!).searchParams);
const fragmentOf = (location: string | undefined) =>
  Object.fromEntries(new URLSearchParams(new URL(location!).hash.slice(1)));

const asksForCode = (client_id: string, code_challenge: string, more: Fields = {}): Fields => ({
  response_type: 'code',
  client_id,
  scope: 'profile:me',
  redirect_uri: CALLBACK,
  state: 's t&a=te',
  code_challenge,
  code_challenge_method: 'S256',
  ...more,
});
const asksForToken = (client_id: string, more: Fields = {}): Fields => ({
  response_type: 'token',
  client_id,
  scope: 'profile:me',
  redirect_uri: CALLBACK,
  state: 'xyz',
  ...more,
});

/** Asks and says yes; where the browser is sent then. */
async function allowed(fields: Fields): Promise<string> {
  await browser.get(addressOf(fields));
  if (browser.page.status === 200) await browser.submit('/user/oauth', {}, 'Allow');
  expect(browser.page.status).toBe(303);
  return browser.page.location!;
}

async function form(path: string, fields: Fields | string) {
  return send('POST', path, {
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
    body: typeof fields === 'string' ? fields : new URLSearchParams(fields).toString(),
  });
}

const exchange = (client_id: string, code: string, code_verifier: string, more: Fields = {}) =>
  form('/oauth/token', {
    grant_type: 'authorization_code',
    client_id,
    code,
    code_verifier,
    redirect_uri: CALLBACK,
    ...more,
  });
const refresh = (client_id: string, refresh_token: string, more: Fields = {}) =>
  form('/oauth/token', { grant_type: 'refresh_token', client_id, refresh_token, ...more });

async function codeFor(client_id: string, more: Fields = {}) {
  const { code_verifier, code_challenge } = pkce();
  const { code } = queryOf(await allowed(asksForCode(client_id, code_challenge, more)));
  return { code: code!, code_verifier };
}

async function tokensFor(client_id: string, more: Fields = {}): Promise<Tokens> {
  const { code, code_verifier } = await codeFor(client_id, more);
  const { status, body } = await exchange(client_id, code, code_verifier);
  expect(status).toBe(200);
  return body as Tokens;
}

const whoIs = (token: string) => user.with(token).get('/profile');
const works = async (token: string) => (await whoIs(token)).status === 200;

const refused = (error: string, status = 400, error_description = expect.any(String) as unknown) => ({
  status,
  body: expect.objectContaining({
    error,
    error_description,
    errors: expect.arrayContaining([expect.any(String)]) as unknown,
  }) as unknown,
});

async function device(client_id: string, more: Fields = {}) {
  const { body } = await form('/oauth/device', { client_id, scope: 'profile:me', ...more });
  return body as {
    device_code: string;
    user_code: string;
    verification_uri_complete: string;
    interval: number;
  };
}
const poll = (client_id: string, device_code: string) =>
  form('/oauth/device/poll', { client_id, device_code });
const pollAgainSoon = () => sql('UPDATE oauth_device_requests SET polled_at = NULL');
const decide = async (user_code: string, button: 'Allow' | 'Cancel') => {
  await browser.get(`/user/oauth/device?code=${user_code}`);
  return browser.submit('/user/oauth/device', {}, button);
};

/** What a browser sends whose user has the question about a device open, for a yes and for a no. */
async function undecided(by: Browser, user_code: string): Promise<Fields[]> {
  await by.get(`/user/oauth/device?code=${user_code}`);
  return ['Allow', 'Cancel'].map((button) => by.fieldsOf('/user/oauth/device', button));
}

describe('asking: GET /user/oauth', () => {
  test('RFC 6749 3.1: somebody who is not signed in is asked to, and comes back', async () => {
    const client_id = await application();
    const path = addressOf({ client_id, ...asksForToken(client_id) });
    const stranger = new Browser();
    expect((await stranger.get(path)).location).toBe(`/login?return_to=${encodeURIComponent(path)}`);
    await stranger.follow();
    expect(stranger.page.headers.get('content-security-policy')).toContain(
      `form-action 'self' https://game.example;`,
    );
  });

  test('RFC 6749 4.1.1: a long state survives the way through the sign-in page', async () => {
    const path = addressOf({ ...asksForToken(await application()), state: '"'.repeat(2700) });
    const stranger = new Browser();
    await stranger.get(path);
    await stranger.follow();
    expect(stranger.fieldsOf('/login').return_to).toBe(path);
  });

  test.each([
    ['an unknown client', '/user/oauth', 'nobody', CALLBACK],
    ['a page that is no request', '/user/settings/api-keys', undefined, CALLBACK],
    ['an application without an address', '/user/oauth', undefined, OOB],
  ])('RFC 6749 10.15: signing in leads nowhere else through %s', async (_, page, nobody, redirect_uri) => {
    const client_id = nobody ?? (await application({ redirect_uris: [redirect_uri] }));
    const query = new URLSearchParams(asksForToken(client_id, { redirect_uri })).toString();
    const { status, headers } = await new Browser().get(
      `/login?return_to=${encodeURIComponent(`${page}?${query}`)}`,
    );
    expect(status).toBe(200);
    expect(headers.get('content-security-policy')).toContain(`form-action 'self';`);
  });

  test('a store that cannot be read is no unknown client', async () => {
    const path = `/login?return_to=${encodeURIComponent(addressOf(asksForToken(await application())))}`;
    await sql('ALTER TABLE oauth_applications RENAME TO away');
    const { status } = await new Browser().get(path);
    await sql('ALTER TABLE away RENAME TO oauth_applications');
    expect(status).toBe(500);
  });

  test('RFC 6749 3.1.2.4: an unknown client is told to the user and redirected nowhere', async () => {
    const page = await browser.get(addressOf(asksForToken('nobody')));
    expect({ status: page.status, location: page.location }).toEqual({ status: 400, location: undefined });
    expect(browser.words).toContain('The application that sent you here is not known');
  });

  test('RFC 6749 4.1.2.1: a missing client_id is told to the user', async () => {
    expect((await browser.get('/user/oauth?response_type=code')).status).toBe(400);
  });

  test.each([
    ['another host', 'https://evil.example/callback'],
    ['a longer path', 'https://game.example/callback/../evil'],
    ['a longer path without a slash', 'https://game.example/callbackevil'],
    ['another query', 'https://game.example/callback?x=1'],
    ['a sub-domain', 'https://evil.game.example/callback'],
    ['a user part', 'https://game.example@evil.example/callback'],
    ['another scheme', 'http://game.example/callback'],
    ['another case', 'https://game.example/Callback'],
    ['a port', 'https://game.example:8443/callback'],
    ['a fragment', 'https://game.example/callback#x'],
    ['script', 'javascript:alert(1)'],
    ['an encoded letter', 'https://game.example/%63allback'],
  ])(
    'RFC 6749 3.1.2.3, RFC 9700 4.1.3: a redirect address with %s is not the registered one',
    async (_, redirect_uri) => {
      const client_id = await application();
      const page = await browser.get(addressOf(asksForToken(client_id, { redirect_uri })));
      expect({ status: page.status, location: page.location }).toEqual({ status: 400, location: undefined });
      expect(browser.words).toContain('wants to send you to an address that it has not registered');
      expect(page.text).not.toContain('evil');
    },
  );

  test('RFC 6749 3.1.2.3: of several registered addresses one must be named', async () => {
    const client_id = await application({ redirect_uris: [CALLBACK, 'https://game.example/other'] });
    const { redirect_uri: _, ...fields } = asksForToken(client_id);
    expect((await browser.get(addressOf(fields))).status).toBe(400);
    expect(browser.words).toContain('did not say where to send you back to');
    const redirect_uri = 'https://game.example/other';
    expect(await allowed({ ...fields, redirect_uri })).toContain(`${redirect_uri}#access_token=`);
  });

  test('RFC 6749 3.1.2.3: the only registered address need not be named', async () => {
    const client_id = await application();
    const { redirect_uri: _, ...fields } = asksForToken(client_id);
    expect(await allowed(fields)).toMatch(/^https:\/\/game\.example\/callback#access_token=/);
  });

  test('RFC 6749 3.1: a parameter without a value was not sent', async () => {
    const fields = asksForToken(await application(), { redirect_uri: '', state: '' });
    const location = await allowed(fields);
    expect(location).toMatch(/^https:\/\/game\.example\/callback#access_token=/);
    expect(fragmentOf(location)).not.toHaveProperty('state');
  });

  test('RFC 9700 4.1: a registered address that runs in the browser is never gone to', async () => {
    const client_id = await application({ redirect_uris: ['javascript:alert(1)'] });
    expect(
      (await browser.get(addressOf(asksForToken(client_id, { redirect_uri: 'javascript:alert(1)' })))).status,
    ).toBe(400);
  });

  test('RFC 9700 2.6: a registered address without TLS is not gone to', async () => {
    const client_id = await application({ redirect_uris: ['http://game.example/'] });
    expect(
      (await browser.get(addressOf(asksForToken(client_id, { redirect_uri: 'http://game.example/' }))))
        .status,
    ).toBe(400);
  });

  test('RFC 6749 3.1: a parameter that comes twice', async () => {
    const client_id = await application();
    expect((await browser.get(`${addressOf(asksForToken(client_id))}&client_id=${client_id}`)).status).toBe(
      400,
    );
    expect((await browser.get(`${addressOf(asksForToken(client_id))}&state=other`)).status).toBe(400);
  });

  test('RFC 6749 3.1: unknown parameters are ignored', async () => {
    const client_id = await application();
    expect((await browser.get(addressOf(asksForToken(client_id, { nonsense: '1' })))).status).toBe(200);
  });

  test.each([
    ['that is unknown', 'profile:me no:such'],
    ['that the application did not register', 'game'],
    ['above one that it registered', 'collection'],
    ['that is missing', ''],
    ['that is a word of every object', 'constructor'],
  ])('RFC 6749 3.3: a scope %s is an error page, with a way back', async (_, scope) => {
    const client_id = await application();
    const page = await browser.get(addressOf(asksForToken(client_id, { scope })));
    expect({ status: page.status, location: page.location }).toEqual({ status: 400, location: undefined });
    expect(page.text).toMatch(/href="https:\/\/game\.example\/callback#error=invalid_scope/);
    expect(browser.words).toContain('asked for something that it cannot have');
    expect(page.text).toContain('<title>That request is not right');
  });

  test('RFC 6749 3.3: a scope below a registered one may be asked for', async () => {
    const client_id = await application({ scopes: ['profile'] });
    expect((await browser.get(addressOf(asksForToken(client_id, { scope: 'profile:games' })))).status).toBe(
      200,
    );
  });

  test('RFC 6749 3.1.1: a missing response_type', async () => {
    const client_id = await application();
    const { response_type: _, ...fields } = asksForToken(client_id);
    const { location } = await browser.get(addressOf(fields));
    expect(queryOf(location)).toMatchObject({ error: 'invalid_request', state: 'xyz' });
  });

  test('RFC 6749 3.1.1: an unknown response_type', async () => {
    const client_id = await application();
    const { location } = await browser.get(addressOf(asksForToken(client_id, { response_type: 'id_token' })));
    expect(queryOf(location)).toMatchObject({ error: 'unsupported_response_type', state: 'xyz' });
  });

  test('RFC 9700 4.11.2: nobody is redirected to an application, not even with an error, before signing in', async () => {
    const client_id = await application();
    const { location } = await new Browser().get(
      addressOf(asksForToken(client_id, { response_type: 'id_token' })),
    );
    expect(location).toMatch(/^\/login\?/);
  });

  test('RFC 6749 10.13: the consent page cannot be framed', async () => {
    const { headers } = await browser.get(addressOf(asksForToken(await application())));
    expect(headers.get('content-security-policy')).toContain("frame-ancestors 'none'");
    expect(headers.get('x-frame-options')).toBe('DENY');
  });

  test('RFC 6749 10.12: a yes that another site sends counts for nothing', async () => {
    const client_id = await application();
    const forged = { ...asksForToken(client_id), decision: 'allow' };
    expect((await browser.post('/user/oauth', forged)).status).toBe(403);
    await browser.get(addressOf(asksForToken(client_id)));
    const fields = { ...browser.fieldsOf('/user/oauth', 'Allow') };
    expect((await browser.post('/user/oauth', fields, { 'sec-fetch-site': 'cross-site' })).status).toBe(403);
    expect(await sql('SELECT FROM oauth_grants WHERE client_id = $1', [client_id])).toEqual([]);
  });

  test('RFC 6749 10.11, 10.14: the page says who asks for what, with nothing of it taken for markup', async () => {
    const client_id = await application();
    await browser.get(
      addressOf(asksForToken(client_id, { scope: 'collection:view profile:me', state: '"><script>' })),
    );
    expect(browser.words).toContain('See who you are');
    expect(browser.words).toContain('See your collections and what is in them');
    expect(browser.words).toContain('Then you go to game.example .');
    expect(browser.words).toContain('You are signed in as player');
    expect(browser.words).not.toContain('new');
    expect(browser.page.text).toMatch(/<title>Allow Game &lt;\d+&gt;\?/);
    expect(browser.page.headers.get('content-security-policy')).toContain(
      `form-action 'self' https://game.example;`,
    );
    expect(browser.page.text).toContain('Game &lt;');
    expect(browser.page.text).not.toContain('<script>');
  });

  test('RFC 6749 10.14: a name that turns the direction of writing turns its own alone', async () => {
    const client_id = await application();
    const name = 'Game \u202eyb noitacilppa na';
    const loose = () =>
      browser.page.text.replace(/<title>.*<\/title>/, '').replaceAll(`<bdi>${name}</bdi>`, '');
    await sql('UPDATE oauth_applications SET name = $2 WHERE client_id = $1', [client_id, name]);
    await browser.get(addressOf(asksForToken(client_id)));
    expect(loose()).not.toContain('\u202e');
    const { user_code } = await device(client_id);
    await browser.get(`/user/oauth/device?code=${user_code}`);
    expect(loose()).not.toContain('\u202e');
  });

  test('RFC 6749 4.1.1: a decision is about a request that is right, whatever was shown', async () => {
    await browser.get(addressOf(asksForToken(await application())));
    const scope = await browser.submit('/user/oauth', { scope: 'everything' }, 'Allow');
    expect({ status: scope.status, location: scope.location }).toEqual({ status: 400, location: undefined });
    await browser.get(addressOf(asksForToken(await application())));
    const { location } = await browser.submit('/user/oauth', { response_type: 'id_token' }, 'Allow');
    expect(queryOf(location)).toMatchObject({ error: 'unsupported_response_type' });
  });

  test('RFC 6749 4.1.1: without a decision nothing is granted', async () => {
    const client_id = await application();
    await browser.get(addressOf(asksForToken(client_id)));
    const { location } = await browser.submit('/user/oauth');
    expect(fragmentOf(location)).toMatchObject({ error: 'access_denied' });
    expect(await sql('SELECT FROM oauth_grants WHERE client_id = $1', [client_id])).toEqual([]);
  });

  test('RFC 6749 3.1: whose session ended meanwhile signs in, and is asked again', async () => {
    const leaving = await make.user();
    const leaver = await browserOf(leaving);
    const { state: _, ...fields } = asksForToken(await application());
    await leaver.get(addressOf(fields));
    await sql('DELETE FROM sessions WHERE user_id = $1', [leaving.id]);
    const sent = { ...fields, form_token: leaver.fieldsOf('/user/oauth').form_token!, decision: 'allow' };
    const { location } = await leaver.post('/user/oauth', sent);
    const asked = new URL(
      new URL(location!, 'http://here.invalid').searchParams.get('return_to')!,
      'http://here.invalid',
    );
    expect(asked.pathname).toBe('/user/oauth');
    expect(Object.fromEntries(asked.searchParams)).toEqual(fields);
  });

  test('RFC 6749 4.1.2.1: the user says no', async () => {
    const { code_challenge } = pkce();
    await browser.get(addressOf(asksForCode(await application(), code_challenge)));
    const { location } = await browser.submit('/user/oauth', {}, 'Cancel');
    expect(queryOf(location)).toEqual({
      error: 'access_denied',
      error_description: 'the user said no',
      state: 's t&a=te',
      iss: baseUrl(),
    });
  });

  test('RFC 6749 4.2.2.1: the user says no to a token', async () => {
    await browser.get(addressOf(asksForToken(await application())));
    const { location } = await browser.submit('/user/oauth', {}, 'Cancel');
    expect(fragmentOf(location)).toMatchObject({ error: 'access_denied', state: 'xyz' });
  });

  test('RFC 6749 3.1.2: the query of a redirect address stays', async () => {
    const redirect_uri = 'https://game.example/cb?lang=en';
    const client_id = await application({ redirect_uris: [redirect_uri] });
    const { code_challenge } = pkce();
    const location = await allowed(asksForCode(client_id, code_challenge, { redirect_uri }));
    expect(queryOf(location)).toMatchObject({
      lang: 'en',
      code: expect.any(String) as string,
      state: 's t&a=te',
    });
  });

  test('RFC 9700 4.12: the redirect after a form is a 303', async () => {
    await browser.get(addressOf(asksForToken(await application())));
    expect((await browser.submit('/user/oauth', {}, 'Allow')).status).toBe(303);
  });

  test('RFC 9700 4.4.2.1 (RFC 9207): the answer names who gives it', async () => {
    const { body } = await send('GET', '/.well-known/oauth-authorization-server');
    const { issuer } = body as { issuer: string };
    const location = await allowed(asksForToken(await application()));
    expect(fragmentOf(location).iss).toBe(issuer);
    const code = await allowed(asksForCode(await application(), pkce().code_challenge));
    expect(queryOf(code).iss).toBe(issuer);
  });
});

describe('consent', () => {
  test('is remembered: the second time leads straight back, and each is an audit event', async () => {
    const client_id = await application();
    await allowed(asksForToken(client_id));
    const { status, location } = await browser.get(addressOf(asksForToken(client_id)));
    expect(status).toBe(303);
    expect(fragmentOf(location).access_token).toMatch(/^gw_/);
    const events = () =>
      sql(
        `SELECT event, user_id, details->'scopes' AS scopes FROM audit_events
         WHERE details->>'client_id' = $1 ORDER BY id`,
        [client_id],
      );
    await until(async () => (await events()).length === 2);
    expect(await events()).toEqual([
      { event: 'grant given', user_id: user.id, scopes: ['profile:me'] },
      { event: 'access given', user_id: user.id, scopes: ['profile:me'] },
    ]);
  });

  test('RFC 6749 3.3: more scopes ask again, and say which are new', async () => {
    const client_id = await application();
    await allowed(asksForToken(client_id));
    const { status } = await browser.get(
      addressOf(asksForToken(client_id, { scope: 'profile:me profile:games' })),
    );
    expect(status).toBe(200);
    expect(browser.words).toMatch(/See the games you uploaded[^.]* new/);
    const { location } = await browser.submit('/user/oauth', {}, 'Allow');
    expect(fragmentOf(location).scope).toBe('profile:games profile:me');
    expect((await browser.get(addressOf(asksForToken(client_id, { scope: 'profile:games' })))).status).toBe(
      303,
    );
  });

  test('RFC 8252 8.6: is asked again where another program could take the address', async () => {
    const redirect_uri = 'com.example.game:/callback';
    const client_id = await application({ redirect_uris: [redirect_uri] });
    await allowed(asksForToken(client_id, { redirect_uri }));
    expect((await browser.get(addressOf(asksForToken(client_id, { redirect_uri })))).status).toBe(200);
  });

  test('of one user is nobody else’s', async () => {
    const client_id = await application();
    await allowed(asksForToken(client_id));
    const other = await browserOf(await make.user());
    expect((await other.get(addressOf(asksForToken(client_id)))).status).toBe(200);
  });
});

describe('response_type=token', () => {
  test('RFC 6749 4.2.2: the token comes in the fragment, with its type, scope and state', async () => {
    const location = await allowed(asksForToken(await application(), { state: 'a b&c=d#e' }));
    expect(location).toMatch(/^https:\/\/game\.example\/callback#access_token=gw_\w+&state=/);
    expect(fragmentOf(location)).toMatchObject({
      token_type: 'bearer',
      scope: 'profile:me',
      state: 'a b&c=d#e',
    });
  });

  test('RFC 6749 7: the token is a key that permits what was granted, and no more', async () => {
    const { access_token } = fragmentOf(await allowed(asksForToken(await application())));
    expect(await works(access_token!)).toBe(true);
    expect(await user.with(access_token).get('/credentials/info')).toEqual({
      status: 200,
      body: { type: 'key', scopes: ['profile:me'] },
    });
    expect((await user.with(access_token).get('/profile/games')).status).toBe(403);
  });

  test('RFC 9700 2.1.2: an application may switch this flow off', async () => {
    const client_id = await application({ implicit_allowed: false });
    const { location } = await browser.get(addressOf(asksForToken(client_id)));
    expect(fragmentOf(location)).toMatchObject({ error: 'unauthorized_client', state: 'xyz' });
  });

  test('RFC 6749 4.2.2: no refresh token is given', async () => {
    expect(fragmentOf(await allowed(asksForToken(await application())))).not.toHaveProperty('refresh_token');
  });

  test('RFC 8252 7 (out of band): the token is shown once, to be copied', async () => {
    const client_id = await application({ redirect_uris: [OOB] });
    const location = await allowed(asksForToken(client_id, { redirect_uri: OOB }));
    expect(location).toBe('/user/oauth/result');
    await browser.follow();
    const [, token] = /id="result" readonly value="([^"]+)"/.exec(browser.page.text)!;
    expect(await works(token!)).toBe(true);
    expect(browser.page.text).toContain('<title>Copy this');
    expect(browser.words).toMatch(/^Copy this into Game <\d+> Access token /);
    expect(browser.words).toContain('It is shown this once. Give it to nobody else.');
    await browser.get('/user/oauth/result');
    expect(browser.page.text).not.toContain(token);
    expect(browser.words).toContain('There is nothing to show any more');
  });

  test('RFC 8252 7 (out of band): a code too, and no leads to a page of ours', async () => {
    const client_id = await application({ redirect_uris: [OOB] });
    const { code_verifier, code_challenge } = pkce();
    await browser.get(addressOf(asksForCode(client_id, code_challenge, { redirect_uri: OOB })));
    expect(browser.words).toContain('Then you get a text to copy into the application.');
    expect(browser.page.headers.get('content-security-policy')).toContain(`form-action 'self';`);
    await browser.submit('/user/oauth', {}, 'Allow');
    await browser.follow();
    expect(browser.words).toMatch(/^Copy this into Game <\d+> Code /);
    expect(browser.words).toContain('It is good for one minute, and for nobody else.');
    const [, code] = /id="result" readonly value="([^"]+)"/.exec(browser.page.text)!;
    const { status } = await exchange(client_id, code!, code_verifier, { redirect_uri: OOB });
    expect(status).toBe(200);
    await browser.get(addressOf(asksForToken(client_id, { redirect_uri: OOB })));
    expect((await browser.submit('/user/oauth', {}, 'Cancel')).location).toBe(ACCESS);
    await browser.get(addressOf(asksForToken(client_id, { redirect_uri: OOB, scope: 'everything' })));
    expect(browser.page.status).toBe(400);
    expect(browser.words).not.toContain('Back to');
  });
});

describe('redirect addresses of programs', () => {
  test.each([
    'http://127.0.0.1:5123/callback',
    'http://127.0.0.1/callback',
    'http://127.0.0.1:65535/callback',
  ])('RFC 8252 7.3: loopback at any port: %s', async (redirect_uri) => {
    const client_id = await application({ redirect_uris: ['http://127.0.0.1:3000/callback'] });
    await browser.get(addressOf(asksForToken(client_id, { redirect_uri })));
    expect(browser.words).toContain('Then you go back to the program on this computer.');
    expect(await allowed(asksForToken(client_id, { redirect_uri }))).toContain(
      `${redirect_uri}#access_token=`,
    );
  });

  test('RFC 8252 7.3: loopback over IPv6', async () => {
    const client_id = await application({ redirect_uris: ['http://[::1]/callback'] });
    const redirect_uri = 'http://[::1]:61023/callback';
    expect(await allowed(asksForToken(client_id, { redirect_uri }))).toContain(`${redirect_uri}#`);
  });

  test('RFC 9700 2.1: localhost too', async () => {
    const client_id = await application({ redirect_uris: ['http://localhost/callback'] });
    const redirect_uri = 'http://localhost:61023/callback';
    expect(await allowed(asksForToken(client_id, { redirect_uri }))).toContain(`${redirect_uri}#`);
  });

  test.each([
    'http://127.0.0.1:99999/callback',
    'http://127.0.0.1:80@evil.example/callback',
    'http://127.0.0.1.evil.example/callback',
    'http://127.0.0.1:3000/other',
    'https://127.0.0.1:3000/callback',
    'http://localhost:3000/callback',
    'http://127.0.0.1:/callback',
  ])('RFC 8252 7.3: only the port may differ: %s', async (redirect_uri) => {
    const client_id = await application({ redirect_uris: ['http://127.0.0.1:3000/callback'] });
    expect((await browser.get(addressOf(asksForToken(client_id, { redirect_uri })))).status).toBe(400);
  });

  test('RFC 8252 7.1: a scheme of its own', async () => {
    const redirect_uri = 'com.example.game:/callback';
    const client_id = await application({ redirect_uris: [redirect_uri] });
    const { code_challenge } = pkce();
    const location = await allowed(asksForCode(client_id, code_challenge, { redirect_uri }));
    expect(location).toMatch(/^com\.example\.game:\/callback\?code=/);
    await browser.get(addressOf(asksForToken(client_id, { redirect_uri })));
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
  ])('%s cannot be registered', async (_, redirect_uris) => {
    await browser.get(`${APPS}/new`);
    const { status } = await browser.submit(APPS, { name: 'Bad', redirect_uris });
    expect(status).toBe(400);
    expect(browser.words).toContain('must begin with https://');
  });
});

describe('response_type=code', () => {
  test('RFC 6749 4.1.2, 4.1.4: a code is exchanged for tokens, and the key that the store’s clients read', async () => {
    const tokens = await tokensFor(await application());
    expect(tokens).toEqual({
      access_token: expect.stringMatching(/^gw_/) as string,
      token_type: 'bearer',
      expires_in: 3600,
      refresh_token: expect.stringMatching(/^[\w-]{43}$/) as string,
      scope: 'profile:me',
      key: { id: expect.any(Number) as number, user_id: user.id, key: tokens.access_token },
    });
    expect(await works(tokens.access_token)).toBe(true);
  });

  test('RFC 6749 5.1: the answer is not kept by caches', async () => {
    const client_id = await application();
    const { code, code_verifier } = await codeFor(client_id);
    const { headers } = await exchange(client_id, code, code_verifier);
    expect(headers.get('cache-control')).toBe('no-store');
    expect(headers.get('pragma')).toBe('no-cache');
  });

  test('RFC 6749 4.1.2: the state comes back as it was', async () => {
    const { code_challenge } = pkce();
    expect(queryOf(await allowed(asksForCode(await application(), code_challenge))).state).toBe('s t&a=te');
  });

  test('RFC 6749 10.10: a code has 256 random bits, and the database only its hash', async () => {
    const { code } = await codeFor(await application());
    expect(Buffer.from(code, 'base64url')).toHaveLength(32);
    const rows = await sql<{ row: string }>('SELECT oauth_codes::text AS row FROM oauth_codes');
    expect(rows.some(({ row }) => row.includes(code))).toBe(false);
  });

  test('RFC 7636 4.4.1: a challenge is required', async () => {
    const { code_challenge: _, ...fields } = asksForCode(await application(), '');
    const { location } = await browser.get(addressOf(fields));
    expect(queryOf(location)).toMatchObject({ error: 'invalid_request', state: 's t&a=te' });
  });

  test.each([
    { code_challenge_method: 'plain' },
    { code_challenge_method: '' },
    { code_challenge_method: 's256' },
  ])('RFC 7636 4.4.1, RFC 9700 2.1.1: only S256: %j', async (more) => {
    const { code_challenge } = pkce();
    const { location } = await browser.get(addressOf(asksForCode(await application(), code_challenge, more)));
    expect(queryOf(location)).toMatchObject({ error: 'invalid_request' });
  });

  test('RFC 7636 4.2: a challenge that is no S256', async () => {
    const { location } = await browser.get(addressOf(asksForCode(await application(), 'short')));
    expect(queryOf(location)).toMatchObject({ error: 'invalid_request' });
  });

  test('RFC 7636 4.6: another verifier', async () => {
    const client_id = await application();
    const { code } = await codeFor(client_id);
    expect(await exchange(client_id, code, pkce().code_verifier)).toMatchObject(refused('invalid_grant'));
  });

  test('RFC 7636 4.6: the challenge is not its verifier', async () => {
    const client_id = await application();
    const { code_challenge } = pkce();
    const { code } = queryOf(await allowed(asksForCode(client_id, code_challenge)));
    expect(await exchange(client_id, code!, code_challenge)).toMatchObject(refused('invalid_grant'));
  });

  test('RFC 7636 4.5: no verifier', async () => {
    const client_id = await application();
    const { code } = await codeFor(client_id);
    expect(
      await form('/oauth/token', {
        grant_type: 'authorization_code',
        client_id,
        code,
        redirect_uri: CALLBACK,
      }),
    ).toMatchObject(refused('invalid_request', 400, 'code_verifier is required'));
  });

  const challengeOf = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

  test.each([
    ['too few characters', 'x'.repeat(42), 'invalid_grant'],
    ['too many', 'x'.repeat(129), 'invalid_request'],
    ['another character before', `!${'x'.repeat(43)}`, 'invalid_grant'],
    ['another character behind', `${'x'.repeat(43)}!`, 'invalid_grant'],
  ])('RFC 7636 4.1: a verifier with %s, though it is the right one', async (_, verifier, error) => {
    const client_id = await application();
    const { code } = queryOf(await allowed(asksForCode(client_id, challengeOf(verifier))));
    expect(await exchange(client_id, code!, verifier)).toMatchObject(refused(error));
  });

  test.each(['x'.repeat(43), '~.-_'.repeat(32)])('RFC 7636 4.1: the verifier %s', async (verifier) => {
    const client_id = await application();
    const { code } = queryOf(await allowed(asksForCode(client_id, challengeOf(verifier))));
    expect((await exchange(client_id, code!, verifier)).status).toBe(200);
  });

  test('RFC 7636 appendix B: the example', async () => {
    const client_id = await application();
    const fields = asksForCode(client_id, 'E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM');
    const { code } = queryOf(await allowed(fields));
    const { status } = await exchange(client_id, code!, 'dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk');
    expect(status).toBe(200);
  });

  test('RFC 6749 4.1.3: another redirect address than the code was sent to', async () => {
    const client_id = await application({ redirect_uris: [CALLBACK, 'https://game.example/other'] });
    const { code, code_verifier } = await codeFor(client_id);
    const more = { redirect_uri: 'https://game.example/other' };
    expect(await exchange(client_id, code, code_verifier, more)).toMatchObject(refused('invalid_grant'));
    expect(await exchange(client_id, code, code_verifier, { redirect_uri: '' })).toMatchObject(
      refused('invalid_grant'),
    );
    expect((await exchange(client_id, code, code_verifier)).status).toBe(200);
  });

  test('RFC 6749 4.1.3, RFC 9700 4.5: a code that another client stole', async () => {
    const [client_id, thief] = [await application(), await application()];
    const { code, code_verifier } = await codeFor(client_id);
    expect(await exchange(thief, code, code_verifier)).toMatchObject(refused('invalid_grant'));
    expect((await exchange(client_id, code, code_verifier)).status).toBe(200);
  });

  test('RFC 6749 4.1.2: a code that is too old', async () => {
    const client_id = await application();
    const { code, code_verifier } = await codeFor(client_id);
    const [row] = await sql<{ seconds: number }>(
      `SELECT extract(epoch FROM expires_at - now())::float AS seconds FROM oauth_codes ORDER BY expires_at DESC LIMIT 1`,
    );
    expect(row!.seconds).toBeGreaterThan(50);
    expect(row!.seconds).toBeLessThanOrEqual(60);
    await sql(`UPDATE oauth_codes SET expires_at = now()`);
    expect(await exchange(client_id, code, code_verifier)).toMatchObject(refused('invalid_grant'));
  });

  test('RFC 6749 4.1.2, 10.5: a code that comes again ends what it was exchanged for', async () => {
    const client_id = await application();
    const { code, code_verifier } = await codeFor(client_id);
    const { body } = await exchange(client_id, code, code_verifier);
    const { access_token, refresh_token } = body as Tokens;
    const next = (await refresh(client_id, refresh_token)).body as Tokens;
    expect(await works(access_token)).toBe(true);
    expect(await exchange(client_id, code, code_verifier)).toMatchObject(refused('invalid_grant'));
    expect(await works(access_token)).toBe(false);
    expect(await works(next.access_token)).toBe(false);
    expect(await refresh(client_id, next.refresh_token)).toMatchObject(refused('invalid_grant'));
  });

  test('RFC 6749 4.1.2: of exchanges at the same instant exactly one wins, and stays', async () => {
    const client_id = await application();
    for (let round = 0; round < 5; round++) {
      const { code, code_verifier } = await codeFor(client_id);
      const answers = await Promise.all(
        Array.from({ length: 6 }, () => exchange(client_id, code, code_verifier)),
      );
      const won = answers.filter(({ status }) => status === 200);
      expect(won).toHaveLength(1);
      expect(
        answers.filter((answer) => (answer.body as { error?: string }).error === 'invalid_grant'),
      ).toHaveLength(5);
    }
  });

  test('RFC 6749 4.1.2: a code that was never given', async () => {
    const client_id = await application();
    expect(await exchange(client_id, 'made-up', pkce().code_verifier)).toMatchObject(
      refused('invalid_grant'),
    );
  });
});

describe('POST /oauth/token', () => {
  test('RFC 6749 5.2: an unknown grant_type', async () => {
    const client_id = await application();
    for (const grant_type of ['password', 'client_credentials', 'nonsense'])
      expect(await form('/oauth/token', { grant_type, client_id })).toMatchObject(
        refused('unsupported_grant_type', 400, 'unknown grant_type'),
      );
  });

  test('RFC 6749 5.2: no grant_type, no client_id', async () => {
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
  ])('RFC 6749 5.2: %s without what it exchanges', async (grant_type, problem) => {
    const client_id = await application();
    expect(await form('/oauth/token', { grant_type, client_id })).toMatchObject(
      refused('invalid_request', 400, problem),
    );
  });

  test('RFC 6749 5.2: an unknown client', async () => {
    expect(await refresh('nobody', 'x')).toMatchObject(refused('invalid_client'));
  });

  test('RFC 6749 3.2: a parameter that comes twice', async () => {
    const client_id = await application();
    const body = `grant_type=refresh_token&client_id=${client_id}&refresh_token=a&refresh_token=b`;
    expect(await form('/oauth/token', body)).toMatchObject(refused('invalid_request'));
  });

  test('RFC 6749 2.3.1, RFC 9700 4.3.2: nothing secret in the address', async () => {
    const client_id = await application();
    const { code, code_verifier } = await codeFor(client_id);
    const query = new URLSearchParams({ code, code_verifier, redirect_uri: CALLBACK }).toString();
    const body = { grant_type: 'authorization_code', client_id };
    expect(await form(`/oauth/token?${query}`, body)).toMatchObject(
      refused('invalid_request', 400, 'parameters belong into the body'),
    );
  });

  test('RFC 6749 3.2: POST alone', async () => {
    expect((await send('GET', '/oauth/token')).status).toBe(405);
  });

  test('RFC 6749 3.2.1: an Authorization header of another kind changes nothing', async () => {
    const client_id = await application();
    const { code, code_verifier } = await codeFor(client_id);
    const { status } = await send('POST', '/oauth/token', {
      headers: { authorization: 'anything', 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({
        grant_type: 'authorization_code',
        client_id,
        code,
        code_verifier,
        redirect_uri: CALLBACK,
      }).toString(),
    });
    expect(status).toBe(200);
  });

  test('RFC 6749 5.2: hostile bodies are bad requests', async () => {
    for (const body of ['grant_type=%00', 'grant_type[x]=1', 'grant_type=%ff', '&&==&'])
      expect(await form('/oauth/token', body)).toMatchObject(refused('invalid_request'));
  });
});

describe('grant_type=refresh_token', () => {
  const later = (seconds = 11) =>
    sql('UPDATE oauth_refresh_tokens SET used_at = used_at - make_interval(secs => $1)', [seconds]);

  test('RFC 6749 6: gives another pair, and the old access token lives on until it expires', async () => {
    const client_id = await application();
    const first = await tokensFor(client_id);
    const { status, body } = await refresh(client_id, first.refresh_token);
    const second = body as Tokens;
    expect(status).toBe(200);
    expect(second.refresh_token).not.toBe(first.refresh_token);
    expect(await works(second.access_token)).toBe(true);
    expect(await works(first.access_token)).toBe(true);
  });

  test('RFC 6749 1.5: an access token expires', async () => {
    const { access_token, refresh_token, key } = await tokensFor(await application());
    const [hours] = await sql(
      `SELECT round(extract(epoch FROM k.expires_at - now()) / 3600)::int AS access,
              round(extract(epoch FROM t.expires_at - now()) / 3600)::int AS refresh
       FROM api_keys k JOIN oauth_refresh_tokens t ON t.api_key_id = k.id WHERE t.token_hash = sha256($1::bytea)`,
      [Buffer.from(refresh_token)],
    );
    expect(hours).toEqual({ access: 1, refresh: 90 * 24 });
    await sql('UPDATE api_keys SET expires_at = now() WHERE id = $1', [key.id]);
    await new Promise((resolve) => setTimeout(resolve, 1100));
    expect(await whoIs(access_token)).toEqual({ status: 401, body: { errors: ['invalid key'] } });
  });

  test('RFC 9700 4.14.2: one that is used again ends its family', async () => {
    const client_id = await application();
    const first = await tokensFor(client_id);
    const second = (await refresh(client_id, first.refresh_token)).body as Tokens;
    const third = (await refresh(client_id, second.refresh_token)).body as Tokens;
    for (const { access_token } of [first, second, third]) expect(await works(access_token)).toBe(true);
    await later();
    expect(await refresh(client_id, first.refresh_token)).toMatchObject(refused('invalid_grant'));
    for (const { access_token } of [first, second, third]) expect(await works(access_token)).toBe(false);
    expect(await refresh(client_id, third.refresh_token)).toMatchObject(refused('invalid_grant'));
  });

  test('RFC 9700 4.14.2: another family of the same user lives on', async () => {
    const client_id = await application();
    const [one, other] = [await tokensFor(client_id), await tokensFor(client_id)];
    await refresh(client_id, one.refresh_token);
    await later();
    await refresh(client_id, one.refresh_token);
    expect(await works(other.access_token)).toBe(true);
    expect((await refresh(client_id, other.refresh_token)).status).toBe(200);
  });

  test('RFC 9700 4.14.2: a client that lost the answer asks again within 10 s and gets the same', async () => {
    const client_id = await application();
    const { refresh_token } = await tokensFor(client_id);
    const first = await refresh(client_id, refresh_token);
    const again = await refresh(client_id, refresh_token);
    expect(again.body).toEqual(first.body);
    expect(await works((again.body as Tokens).access_token)).toBe(true);
    await later(9);
    expect((await refresh(client_id, refresh_token)).body).toEqual(first.body);
    await later(2);
    expect(await refresh(client_id, refresh_token)).toMatchObject(refused('invalid_grant'));
  });

  test('RFC 9700 4.14.2: two at the same instant get the same', async () => {
    const client_id = await application();
    const { refresh_token } = await tokensFor(client_id);
    const answers = await Promise.all(Array.from({ length: 5 }, () => refresh(client_id, refresh_token)));
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(answers[0]!.status).toBe(200);
  });

  test('RFC 9700 4.14.2: a retry after the successor was used is a theft, however soon', async () => {
    const client_id = await application();
    const first = await tokensFor(client_id);
    const second = (await refresh(client_id, first.refresh_token)).body as Tokens;
    await refresh(client_id, second.refresh_token);
    expect(await refresh(client_id, first.refresh_token)).toMatchObject(refused('invalid_grant'));
    expect(await works(second.access_token)).toBe(false);
  });

  test('RFC 6749 10.4: one of another client', async () => {
    const [client_id, thief] = [await application(), await application()];
    const { refresh_token } = await tokensFor(client_id);
    expect(await refresh(thief, refresh_token)).toMatchObject(refused('invalid_grant'));
    expect((await refresh(client_id, refresh_token)).status).toBe(200);
  });

  test('RFC 6749 6: fewer scopes may be asked for, and the next time all again', async () => {
    const client_id = await application();
    const { refresh_token } = await tokensFor(client_id, { scope: 'profile:me profile:games' });
    const narrow = (await refresh(client_id, refresh_token, { scope: 'profile:me' })).body as Tokens;
    expect(narrow.scope).toBe('profile:me');
    expect((await user.with(narrow.access_token).get('/profile/games')).status).toBe(403);
    const all = (await refresh(client_id, narrow.refresh_token)).body as Tokens;
    expect(all.scope).toBe('profile:games profile:me');
    const named = await refresh(client_id, all.refresh_token, { scope: 'profile:me profile:games' });
    expect((named.body as Tokens).scope).toBe('profile:games profile:me');
  });

  test('RFC 6749 6: more scopes than were granted', async () => {
    const client_id = await application();
    const { refresh_token } = await tokensFor(client_id);
    for (const scope of ['profile', 'profile:me collection:view'])
      expect(await refresh(client_id, refresh_token, { scope })).toMatchObject(
        refused('invalid_scope', 400, 'more than was granted'),
      );
    expect((await refresh(client_id, refresh_token)).status).toBe(200);
  });

  test('RFC 9700 4.14.2: one that nobody used for too long', async () => {
    const client_id = await application();
    const { refresh_token } = await tokensFor(client_id);
    await sql('UPDATE oauth_refresh_tokens SET expires_at = now()');
    expect(await refresh(client_id, refresh_token)).toMatchObject(refused('invalid_grant'));
  });

  test('RFC 6749 10.4: the database has no refresh token, and none that a retry would get', async () => {
    const client_id = await application();
    const { refresh_token } = await tokensFor(client_id);
    const next = (await refresh(client_id, refresh_token)).body as Tokens;
    const rows = await sql<{ row: string }>(
      'SELECT oauth_refresh_tokens::text AS row FROM oauth_refresh_tokens',
    );
    const hex = (text: string) => Buffer.from(text).toString('hex');
    for (const secret of [refresh_token, next.refresh_token, next.access_token])
      expect(rows.some(({ row }) => row.includes(secret) || row.includes(hex(secret)))).toBe(false);
  });
});

describe('the device grant', () => {
  test('RFC 8628 3.2: the answer to a device', async () => {
    const client_id = await application();
    const { status, body } = await form('/oauth/device', { client_id, scope: 'profile:me' });
    expect(status).toBe(200);
    const { user_code, verification_uri } = body as { user_code: string; verification_uri: string };
    expect(body).toEqual({
      device_code: expect.stringMatching(/^[\w-]{43}$/) as string,
      user_code: expect.stringMatching(/^[BCDFGHJKLMNPQRSTVWXZ]{4}-[BCDFGHJKLMNPQRSTVWXZ]{4}$/) as string,
      verification_uri: expect.stringMatching(/\/user\/oauth\/device$/) as string,
      verification_uri_complete: `${verification_uri}?code=${user_code}`,
      expires_in: 600,
      interval: 5,
    });
  });

  test('RFC 8628 3.1: an unknown client, an unknown scope', async () => {
    const client_id = await application();
    expect(await form('/oauth/device', { client_id: 'nobody', scope: 'profile:me' })).toMatchObject(
      refused('invalid_client'),
    );
    expect(await form('/oauth/device', { client_id, scope: 'everything' })).toMatchObject(
      refused('invalid_scope'),
    );
    expect(await form('/oauth/device', { client_id })).toMatchObject(refused('invalid_scope'));
  });

  test('RFC 8628 3.3: the user enters the code as people type, and is asked', async () => {
    const client_id = await application();
    const { user_code } = await device(client_id);
    await browser.get(`/user/oauth/device?code=${user_code.toLowerCase().replace('-', ' ')}`);
    expect(browser.words).toContain(user_code);
    expect(browser.words).toContain('See who you are');
  });

  test('RFC 8628 3.3, 5.4: with the code in the address too the user must confirm it', async () => {
    const client_id = await application();
    const { device_code, verification_uri_complete } = await device(client_id);
    await browser.get(
      new URL(verification_uri_complete).pathname + new URL(verification_uri_complete).search,
    );
    expect(browser.words).toContain('Go on only if a device in front of you shows this code');
    await pollAgainSoon();
    expect((await poll(client_id, device_code)).body).toMatchObject({ status: 'pending' });
  });

  test('RFC 8628 3.4: pending, approved, exchanged with the verifier', async () => {
    const client_id = await application();
    const { code_verifier, code_challenge } = pkce();
    const { device_code, user_code } = await device(client_id, {
      code_challenge,
      code_challenge_method: 'S256',
    });
    expect(await poll(client_id, device_code)).toMatchObject({
      status: 200,
      body: { status: 'pending', interval: 5 },
    });
    await decide(user_code, 'Allow');
    expect(browser.words).toContain('Go back to your device');
    const { body } = await poll(client_id, device_code);
    expect(body).toEqual({ status: 'approved', code: expect.any(String) as string });
    const { code } = body as { code: string };
    expect((await poll(client_id, device_code)).body).toEqual(body);
    const answer = await exchange(client_id, code, code_verifier, { redirect_uri: 'urn:example:poll' });
    expect(answer.status).toBe(200);
    expect(await works((answer.body as Tokens).access_token)).toBe(true);
    expect((await poll(client_id, device_code)).body).toEqual({ status: 'expired' });
  });

  test('RFC 8628 3.4, 3.5: the same at the token endpoint', async () => {
    const client_id = await application();
    const { device_code, user_code } = await device(client_id);
    const ask = () => form('/oauth/token', { grant_type: DEVICE_GRANT, client_id, device_code });
    expect(await ask()).toMatchObject(refused('authorization_pending', 400, 'the user has not decided yet'));
    await decide(user_code, 'Allow');
    const { status, body } = await ask();
    expect(status).toBe(200);
    expect(await works((body as Tokens).access_token)).toBe(true);
    expect(await ask()).toMatchObject(refused('expired_token'));
  });

  test('RFC 7636 4.6: a device’s code with another verifier', async () => {
    const client_id = await application();
    const { code_challenge } = pkce();
    const { device_code, user_code } = await device(client_id, {
      code_challenge,
      code_challenge_method: 'S256',
    });
    await decide(user_code, 'Allow');
    const { code } = (await poll(client_id, device_code)).body as { code: string };
    expect(await exchange(client_id, code, pkce().code_verifier)).toMatchObject(refused('invalid_grant'));
    const fields = { grant_type: DEVICE_GRANT, client_id, device_code };
    expect(await form('/oauth/token', fields)).toMatchObject(refused('invalid_grant'));
  });

  test('RFC 7636 4.4.1: a device’s challenge must be S256, and a poll without one gets no code', async () => {
    const client_id = await application();
    const { code_challenge } = pkce();
    const asked = { client_id, scope: 'profile:me', code_challenge };
    expect(await form('/oauth/device', asked)).toMatchObject(refused('invalid_request'));
    expect(await form('/oauth/device', { ...asked, code_challenge_method: 'plain' })).toMatchObject(
      refused('invalid_request'),
    );
    for (const hostile of [
      code_challenge.slice(1),
      `${code_challenge}A`,
      `!${code_challenge}`,
      '!'.repeat(43),
    ])
      expect(
        await form('/oauth/device', { ...asked, code_challenge: hostile, code_challenge_method: 'S256' }),
      ).toMatchObject(
        refused('invalid_request', 400, expect.stringContaining('code_challenge must be the S256')),
      );
    const { device_code, user_code } = await device(client_id);
    await decide(user_code, 'Allow');
    expect(await poll(client_id, device_code)).toMatchObject(
      refused('invalid_request', 400, 'without a code_challenge, ask /oauth/token'),
    );
  });

  test('RFC 8628 3.5: the user says no', async () => {
    const client_id = await application();
    const { device_code, user_code } = await device(client_id);
    const other = await browserOf(await make.user());
    const late = await undecided(other, user_code);
    await decide(user_code, 'Cancel');
    expect((await browser.get(`/user/oauth/device?code=${user_code}`)).status).toBe(404);
    for (const decision of late) expect((await other.post('/user/oauth/device', decision)).status).toBe(404);
    expect((await poll(client_id, device_code)).body).toEqual({ status: 'denied' });
    const fields = { grant_type: DEVICE_GRANT, client_id, device_code };
    expect(await form('/oauth/token', fields)).toMatchObject(
      refused('access_denied', 400, 'the user said no'),
    );
  });

  test('RFC 8628 3.3: one of two users who allow it at the same moment, and the other one has allowed nothing', async () => {
    const client_id = await application();
    const { user_code } = await device(client_id);
    const users = [await make.user(), await make.user()];
    const browsers = await Promise.all(users.map((user) => browserOf(user)));
    const decisions = await Promise.all(browsers.map((one) => undecided(one, user_code)));
    const answers = await theApp()
      .get(Database)
      .transaction(async (db) => {
        await db.query('SELECT FROM oauth_device_requests WHERE user_code = $1 FOR UPDATE', [user_code]);
        const asked = browsers.map((one, i) => one.post('/user/oauth/device', decisions[i]![0]!));
        await until(async () => (await sql(WAITING_FOR_LOCKS)).length === 2);
        return asked;
      });
    expect((await Promise.all(answers)).map(({ status }) => status).sort()).toEqual([200, 404]);
    expect(await sql('SELECT FROM oauth_grants WHERE client_id = $1', [client_id])).toHaveLength(1);
  });

  test('RFC 8628 3.5: too fast, and slower from then on', async () => {
    const client_id = await application();
    const { device_code } = await device(client_id);
    await poll(client_id, device_code);
    const again = await poll(client_id, device_code);
    expect(again).toMatchObject(refused('slow_down', 429, 'wait 10 seconds'));
    expect(again.headers.get('retry-after')).toBe('10');
    const fields = { grant_type: DEVICE_GRANT, client_id, device_code };
    expect(await form('/oauth/token', fields)).toMatchObject(refused('slow_down', 400, 'wait 15 seconds'));
    await pollAgainSoon();
    expect((await poll(client_id, device_code)).body).toEqual({ status: 'pending', interval: 15 });
  });

  test('RFC 8628 3.5: too old', async () => {
    const client_id = await application();
    const { device_code, user_code } = await device(client_id);
    const late = await undecided(browser, user_code);
    await sql('UPDATE oauth_device_requests SET expires_at = now()');
    for (const decision of late)
      expect((await browser.post('/user/oauth/device', decision)).status).toBe(404);
    expect((await browser.get(`/user/oauth/device?code=${user_code}`)).status).toBe(404);
    expect((await poll(client_id, device_code)).body).toEqual({ status: 'expired' });
    const fields = { grant_type: DEVICE_GRANT, client_id, device_code };
    expect(await form('/oauth/token', fields)).toMatchObject(
      refused('expired_token', 400, 'the device code is too old or was used'),
    );
  });

  test('RFC 8628 3.4: the device code of another client, or of nobody', async () => {
    const [client_id, thief] = [await application(), await application()];
    const { device_code } = await device(client_id);
    expect(await poll(thief, device_code)).toMatchObject(refused('invalid_grant'));
    expect(await poll(client_id, 'made-up')).toMatchObject(refused('invalid_grant'));
  });

  test('RFC 8628 3.5: never slower than a minute', async () => {
    const client_id = await application();
    const { device_code } = await device(client_id);
    await poll(client_id, device_code);
    for (let i = 0; i < 12; i++) await poll(client_id, device_code);
    const { headers } = await poll(client_id, device_code);
    expect(headers.get('retry-after')).toBe('60');
  });

  test('RFC 8628 6.1: no two devices wait with one code', async () => {
    const client_id = await application();
    const letters = jest.spyOn(crypto, 'randomInt');
    for (const letter of [1, 1, 2]) for (let i = 0; i < 8; i++) letters.mockImplementationOnce(() => letter);
    const codes = [(await device(client_id)).user_code, (await device(client_id)).user_code];
    letters.mockRestore();
    expect(codes).toEqual(['CCCC-CCCC', 'DDDD-DDDD']);
  });

  test('RFC 7636 4.6: a device’s verifier is looked at, wanted or not', async () => {
    const client_id = await application();
    const { device_code, user_code } = await device(client_id);
    await decide(user_code, 'Allow');
    const fields = { grant_type: DEVICE_GRANT, client_id, device_code };
    for (const code_verifier of ['short', pkce().code_verifier])
      expect(await form('/oauth/token', { ...fields, code_verifier })).toMatchObject(
        refused('invalid_grant'),
      );
    expect((await form('/oauth/token', fields)).status).toBe(200);
  });

  test('RFC 8628 3.3: a no that comes too late changes nothing', async () => {
    const client_id = await application();
    const { device_code, user_code } = await device(client_id);
    const other = await browserOf(await make.user());
    const late = await undecided(other, user_code);
    await decide(user_code, 'Allow');
    for (const decision of late) expect((await other.post('/user/oauth/device', decision)).status).toBe(404);
    const fields = { grant_type: DEVICE_GRANT, client_id, device_code };
    expect((await form('/oauth/token', fields)).status).toBe(200);
  });

  test('RFC 8628 5.1: whoever guesses codes must wait', async () => {
    const guesser = await browserOf(await make.user());
    for (let i = 0; i < 5; i++)
      expect((await guesser.get('/user/oauth/device?code=BBBB-BBBB')).status).toBe(404);
    expect((await guesser.get('/user/oauth/device?code=BBBB-BBBB')).status).toBe(429);
  });

  test('RFC 8628 5.1: a decision that another site sends counts for nothing', async () => {
    const { user_code } = await device(await application());
    expect((await browser.post('/user/oauth/device', { code: user_code, decision: 'allow' })).status).toBe(
      403,
    );
  });

  test('RFC 8628 3.3: one decision; another user cannot change it', async () => {
    const client_id = await application();
    const { device_code, user_code } = await device(client_id);
    await decide(user_code, 'Allow');
    const other = await browserOf(await make.user());
    expect((await other.get(`/user/oauth/device?code=${user_code}`)).status).toBe(404);
    const { body } = await form('/oauth/token', { grant_type: DEVICE_GRANT, client_id, device_code });
    expect((body as Tokens).key.user_id).toBe(user.id);
  });
});

describe('taking back', () => {
  const revoke = async () => {
    await browser.get(ACCESS);
    const path = /href="(\/user\/settings\/authorized-apps\/\d+\/revoke)"/.exec(browser.page.text)![1]!;
    await browser.get(path);
    const confirmed = browser.fieldsOf(path);
    expect((await browser.post(path, confirmed)).status).toBe(303);
    expect((await browser.get(path)).status).toBe(404);
    expect((await browser.post(path, confirmed)).status).toBe(404);
  };

  test('RFC 9700 4.14.2: a revoked grant ends every token of it at once', async () => {
    const client_id = await application();
    const tokens = await tokensFor(client_id);
    const { access_token } = fragmentOf(await allowed(asksForToken(client_id)));
    const waiting = await codeFor(client_id);
    const { device_code, user_code } = await device(client_id);
    await decide(user_code, 'Allow');
    expect(await works(tokens.access_token)).toBe(true);
    await revoke();
    expect(await works(tokens.access_token)).toBe(false);
    expect(await works(access_token!)).toBe(false);
    expect(await refresh(client_id, tokens.refresh_token)).toMatchObject(refused('invalid_grant'));
    expect(
      await sql(
        'SELECT FROM oauth_refresh_tokens JOIN oauth_grants g ON g.id = grant_id WHERE client_id = $1',
        [client_id],
      ),
    ).toEqual([]);
    expect(await exchange(client_id, waiting.code, waiting.code_verifier)).toMatchObject(
      refused('invalid_grant'),
    );
    expect((await poll(client_id, device_code)).body).toEqual({ status: 'denied' });
    expect((await browser.get(addressOf(asksForToken(client_id)))).status).toBe(200);
  });

  test('RFC 6749 10.3: a revocation at the same instant as an exchange leaves no token alive', async () => {
    const client_id = await application();
    for (let round = 0; round < 5; round++) {
      const { code, code_verifier } = await codeFor(client_id);
      await browser.get(ACCESS);
      const path = /href="(\/user\/settings\/authorized-apps\/\d+\/revoke)"/.exec(browser.page.text)![1]!;
      await browser.get(path);
      const [{ body }] = await Promise.all([exchange(client_id, code, code_verifier), browser.submit(path)]);
      const { access_token } = body as Partial<Tokens>;
      if (access_token) expect(await works(access_token)).toBe(false);
    }
  });

  test('the list says what, since when and to whom; nobody else can take it back', async () => {
    const client_id = await application();
    const { access_token } = await tokensFor(client_id);
    await browser.get(ACCESS);
    expect(browser.words).toContain('See who you are Since');
    const path = /href="(\/user\/settings\/authorized-apps\/\d+\/revoke)"/.exec(browser.page.text)![1]!;
    const other = await browserOf(await make.user());
    expect((await other.get(path)).status).toBe(404);
    await other.get('/user/settings/api-keys');
    const { form_token } = other.fieldsOf('/user/settings/api-keys');
    expect((await other.post(path, { form_token: form_token! })).status).toBe(404);
    expect(await works(access_token)).toBe(true);
  });

  test('an application that is deleted while its user thinks is granted nothing', async () => {
    const granted = theApp()
      .get(Database)
      .transaction((db) => theApp().get(GrantsService).give(db, user.id, 'deleted', ['profile:me']));
    await expect(granted).rejects.toMatchObject({
      status: 404,
      errors: ['This application is no longer registered.'],
    });
  });

  test('an application that is deleted takes its tokens along', async () => {
    const owner = await make.user();
    const mine = await browserOf(owner);
    await mine.get(`${APPS}/new`);
    await mine.submit(APPS, { name: 'Short-lived', redirect_uris: CALLBACK });
    const client_id = decodeURIComponent(mine.page.location!.split('/').at(-1)!);
    const { access_token, refresh_token } = await tokensFor(client_id);
    await mine.get(`${APPS}/${client_id}/delete`);
    await mine.submit(`${APPS}/${client_id}/delete`);
    expect(await works(access_token)).toBe(false);
    expect(await refresh(client_id, refresh_token)).toMatchObject(refused('invalid_client'));
    expect((await browser.get(addressOf(asksForToken(client_id)))).status).toBe(400);
  });
});

describe('/.well-known/oauth-authorization-server', () => {
  test('RFC 9700 2.6 (RFC 8414): says where everything is', async () => {
    const url = await theApp().getUrl();
    const { body } = await send('GET', '/.well-known/oauth-authorization-server');
    expect(body).toEqual({
      issuer: url,
      authorization_endpoint: `${url}/user/oauth`,
      token_endpoint: `${url}/oauth/token`,
      device_authorization_endpoint: `${url}/oauth/device`,
      jwks_uri: `${url}/.well-known/jwks.json`,
      service_documentation: `${url}/docs`,
      scopes_supported: expect.arrayContaining(['profile:me', 'collection:view']) as string[],
      response_types_supported: ['code', 'token'],
      response_modes_supported: ['query', 'fragment'],
      grant_types_supported: ['authorization_code', 'implicit', 'refresh_token', DEVICE_GRANT],
      token_endpoint_auth_methods_supported: ['none'],
      code_challenge_methods_supported: ['S256'],
      authorization_response_iss_parameter_supported: true,
    });
  });
});
