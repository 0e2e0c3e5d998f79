import {
  ACCESS,
  addressOf,
  allowed,
  application,
  asksForCode,
  asksForToken,
  browser,
  exchange,
  fragmentOf,
  OOB,
  pkce,
  useOauth,
  user,
  works,
} from './support/oauth';

useOauth();

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
