import * as oauth from 'oauth4webapi';
import * as openid from 'openid-client';
import { AuthorizationCode } from 'simple-oauth2';
import { application, browser, CALLBACK, decide, type Fields, useOauth, isAccepted } from '../support/oauth';
import { baseUrl } from '../support/app';

// Each library as its own documentation uses it, except that http is allowed here.
useOauth();

const scope = 'profile:me collection:view';
const granted = 'collection:view profile:me';
const notKnown = expect.objectContaining({ error: 'invalid_grant' }) as unknown;

/** Opens the URL, signs in if necessary, and allows; returns the redirect to the app. */
async function consent(url: URL | string): Promise<URL> {
  const { href } = new URL(url);
  expect(href.startsWith(`${baseUrl()}/user/oauth?`)).toBe(true);
  await browser.get(href.slice(baseUrl().length));
  expect(browser.words).toContain('See who you are');
  await browser.submit('/user/oauth', {}, 'Allow');
  return new URL(browser.page.location!);
}

const catchError = (promise: Promise<unknown>) =>
  promise.then(
    () => 'no error',
    (error: unknown) => error,
  );

describe('openid-client', () => {
  const discover = async (client_id: string) =>
    openid.discovery(new URL(baseUrl()), client_id, undefined, openid.None(), {
      algorithm: 'oauth2',
      execute: [openid.allowInsecureRequests],
    });

  test('exchanges a code with PKCE, refreshes, revokes', async () => {
    const config = await discover((await application()).id);
    const pkceCodeVerifier = openid.randomPKCECodeVerifier();
    const expectedState = openid.randomState();
    const location = await consent(
      openid.buildAuthorizationUrl(config, {
        redirect_uri: CALLBACK,
        scope,
        code_challenge: await openid.calculatePKCECodeChallenge(pkceCodeVerifier),
        code_challenge_method: 'S256',
        state: expectedState,
      }),
    );
    const tokens = await openid.authorizationCodeGrant(config, location, { pkceCodeVerifier, expectedState });
    expect([tokens.scope, tokens.expires_in]).toEqual([granted, 3600]);
    expect(await isAccepted(tokens.access_token)).toBe(true);

    const refreshed = await openid.refreshTokenGrant(config, tokens.refresh_token!, { scope: 'profile:me' });
    expect(refreshed.scope).toBe('profile:me');
    expect(await isAccepted(refreshed.access_token)).toBe(true);

    await openid.tokenRevocation(config, refreshed.refresh_token!);
    for (const { access_token } of [tokens, refreshed]) expect(await isAccepted(access_token)).toBe(false);
    expect(await catchError(openid.refreshTokenGrant(config, refreshed.refresh_token!))).toEqual(notKnown);
  });

  test('authorizes a device', async () => {
    const config = await discover((await application()).id);
    const device = await openid.initiateDeviceAuthorization(config, { scope });
    expect(device.verification_uri).toBe(`${baseUrl()}/user/oauth/device`);
    const waiting = openid.pollDeviceAuthorizationGrant(config, device);
    await decide(device.user_code, 'Allow');
    const tokens = await waiting;
    expect(tokens.scope).toBe(granted);
    expect(await isAccepted(tokens.access_token)).toBe(true);
  });

  test('reports a user who cancels', async () => {
    const config = await discover((await application()).id);
    const device = await openid.initiateDeviceAuthorization(config, { scope });
    await decide(device.user_code, 'Cancel');
    expect(await catchError(openid.pollDeviceAuthorizationGrant(config, device))).toMatchObject({
      error: 'access_denied',
    });
  });
});

describe('oauth4webapi', () => {
  const options = { [oauth.allowInsecureRequests]: true } as const;
  const discover = async () => {
    const issuer = new URL(baseUrl());
    const response = await oauth.discoveryRequest(issuer, { algorithm: 'oauth2', ...options });
    return oauth.processDiscoveryResponse(issuer, response);
  };

  test('exchanges a code with PKCE, refreshes, revokes', async () => {
    const server = await discover();
    const client: oauth.Client = { client_id: (await application()).id };
    const verifier = oauth.generateRandomCodeVerifier();
    const state = oauth.generateRandomState();
    const url = new URL(server.authorization_endpoint!);
    const asked: Fields = {
      client_id: client.client_id,
      redirect_uri: CALLBACK,
      response_type: 'code',
      scope,
      state,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: 'S256',
    };
    for (const name in asked) url.searchParams.set(name, asked[name]!);
    const params = oauth.validateAuthResponse(server, client, await consent(url), state);
    const tokens = await oauth.processAuthorizationCodeResponse(
      server,
      client,
      await oauth.authorizationCodeGrantRequest(
        server,
        client,
        oauth.None(),
        params,
        CALLBACK,
        verifier,
        options,
      ),
    );
    expect(tokens.scope).toBe(granted);
    expect(await isAccepted(tokens.access_token)).toBe(true);

    const refresh = (token: string) =>
      oauth
        .refreshTokenGrantRequest(server, client, oauth.None(), token, options)
        .then((response) => oauth.processRefreshTokenResponse(server, client, response));
    const refreshed = await refresh(tokens.refresh_token!);
    expect(await isAccepted(refreshed.access_token)).toBe(true);

    const revoke = (token: string) =>
      oauth
        .revocationRequest(server, client, oauth.None(), token, options)
        .then((response) => oauth.processRevocationResponse(response));
    await revoke(refreshed.access_token);
    expect([await isAccepted(refreshed.access_token), await isAccepted(tokens.access_token)]).toEqual([
      false,
      true,
    ]);
    await revoke(refreshed.refresh_token!);
    expect(await isAccepted(tokens.access_token)).toBe(false);
    expect(await catchError(refresh(refreshed.refresh_token!))).toEqual(notKnown);
  });

  test('authorizes a device', async () => {
    const server = await discover();
    const client: oauth.Client = { client_id: (await application()).id };
    const device = await oauth.processDeviceAuthorizationResponse(
      server,
      client,
      await oauth.deviceAuthorizationRequest(server, client, oauth.None(), { scope }, options),
    );
    const poll = async () =>
      oauth.processDeviceCodeResponse(
        server,
        client,
        await oauth.deviceCodeGrantRequest(server, client, oauth.None(), device.device_code, options),
      );
    expect(await catchError(poll())).toMatchObject({ error: 'authorization_pending' });
    await decide(device.user_code, 'Allow');
    const tokens = await poll();
    expect(await isAccepted(tokens.access_token)).toBe(true);
  });
});

// simple-oauth2 supports no discovery, and sends the client ID as the user of HTTP Basic.
describe('simple-oauth2', () => {
  test('exchanges a code with PKCE, refreshes, revokes', async () => {
    const client = new AuthorizationCode({
      client: { id: (await application()).id, secret: '' },
      auth: {
        tokenHost: baseUrl(),
        tokenPath: '/oauth/token',
        revokePath: '/oauth/revoke',
        authorizePath: '/user/oauth',
      },
    });
    const verifier = oauth.generateRandomCodeVerifier();
    const location = await consent(
      client.authorizeURL({
        redirect_uri: CALLBACK,
        scope: scope.split(' '),
        state: 'simple',
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      } as Parameters<typeof client.authorizeURL>[0]),
    );
    expect(location.searchParams.get('state')).toBe('simple');
    const accessToken = await client.getToken({
      code: location.searchParams.get('code')!,
      redirect_uri: CALLBACK,
      code_verifier: verifier,
    } as Parameters<typeof client.getToken>[0]);
    const tokenText = ({ token }: typeof accessToken) => token.access_token as string;
    expect(accessToken.token.scope).toBe(granted);
    expect(accessToken.expired()).toBe(false);
    expect(await isAccepted(tokenText(accessToken))).toBe(true);

    const refreshed = await accessToken.refresh();
    expect(await isAccepted(tokenText(refreshed))).toBe(true);
    await refreshed.revoke('access_token');
    expect([await isAccepted(tokenText(refreshed)), await isAccepted(tokenText(accessToken))]).toEqual([
      false,
      true,
    ]);
    await refreshed.revokeAll();
    expect(await isAccepted(tokenText(accessToken))).toBe(false);
    expect(await catchError(refreshed.refresh())).toMatchObject({ output: { statusCode: 400 } });
  });
});
