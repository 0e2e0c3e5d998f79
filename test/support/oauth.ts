import { createHash, randomBytes } from 'node:crypto';
import type { OauthApplication } from '../../src/auth/accounts/oauth-application.entity';
import { type Browser, signInBrowser } from './browser';
import { type Actor } from './actor';
import { type Environment, useStore } from './app';
import { send } from './http';
import { make } from './make';
import { sql } from './sql';

export const CALLBACK = 'https://game.example/callback';
export const APPS = '/user/settings/oauth-apps';
export const ACCESS = '/user/settings/authorized-apps';
export const DEVICE_GRANT = 'urn:ietf:params:oauth:grant-type:device_code';
export const OOB = 'urn:ietf:wg:oauth:2.0:oob';

export let user: Actor;
/** A browser in which `user` is signed in. */
export let browser: Browser;
let serial = 0;

export type Fields = Record<string, string>;
export interface Tokens {
  access_token: string;
  refresh_token: string;
  expires_in: number;
  token_type: string;
  scope: string;
  key: { id: number; user_id: number; key: string; created_at: string };
}

/** A running service with a signed-in user. */
export function useOauth(environment: Environment = {}): void {
  useStore({ RATE_LIMIT: 'off', ...environment });
  beforeAll(async () => {
    user = await make.user({ username: 'player' });
    browser = await signInBrowser(user);
  });
}

/** A registered app; every test has its own, so that no consent is stored from another. */
export async function application(
  fields: Partial<
    Pick<OauthApplication, 'redirect_uris' | 'scopes' | 'implicit_allowed' | 'may_start_games'>
  > = {},
): Promise<OauthClient> {
  const owner = await make.user();
  const client_id = `client-${++serial}`;
  await sql(
    `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes, implicit_allowed, may_start_games)
     VALUES ($1, $2, $3, $4, $5, $6, $7)`,
    [
      client_id,
      owner.id,
      `Game <${serial}>`,
      fields.redirect_uris ?? [CALLBACK],
      fields.scopes ?? ['profile', 'collection:view'],
      fields.implicit_allowed ?? true,
      fields.may_start_games ?? false,
    ],
  );
  return new OauthClient(client_id);
}

/** An app with an existing grant from `user`: only such apps are notified of errors. */
export async function appWithGrant(fields: Parameters<typeof application>[0] = {}): Promise<OauthClient> {
  const client = await application(fields);
  await client.codeFor();
  return client;
}

/** S256 of RFC 7636. */
export const codeChallenge = (verifier: string) => createHash('sha256').update(verifier).digest('base64url');

export const pkce = () => {
  const code_verifier = randomBytes(32).toString('base64url');
  return { code_verifier, code_challenge: codeChallenge(code_verifier) };
};

export const authorizePath = (fields: Fields) => `/user/oauth?${new URLSearchParams(fields).toString()}`;
export const parseQuery = (location: string | undefined): Fields =>
  Object.fromEntries(new URL(location!).searchParams);
export const parseFragment = (location: string | undefined): Fields =>
  Object.fromEntries(new URLSearchParams(new URL(location!).hash.slice(1)));

/** The requests that an app sends. */
export class OauthClient {
  constructor(readonly id: string) {}

  codeRequest(code_challenge: string, more: Fields = {}): Fields {
    return {
      response_type: 'code',
      client_id: this.id,
      scope: 'profile:me',
      redirect_uri: CALLBACK,
      state: 's t&a=te',
      code_challenge,
      code_challenge_method: 'S256',
      ...more,
    };
  }

  tokenRequest(more: Fields = {}): Fields {
    return {
      response_type: 'token',
      client_id: this.id,
      scope: 'profile:me',
      redirect_uri: CALLBACK,
      state: 'xyz',
      ...more,
    };
  }

  exchange(code: string, code_verifier: string, more: Fields = {}) {
    return form('/oauth/token', {
      grant_type: 'authorization_code',
      client_id: this.id,
      code,
      code_verifier,
      redirect_uri: CALLBACK,
      ...more,
    });
  }

  refresh(refresh_token: string, more: Fields = {}) {
    return form('/oauth/token', { grant_type: 'refresh_token', client_id: this.id, refresh_token, ...more });
  }

  async codeFor(more: Fields = {}, by = browser) {
    const { code_verifier, code_challenge } = pkce();
    const { code } = parseQuery(await authorize(this.codeRequest(code_challenge, more), by));
    return { code: code!, code_verifier };
  }

  async tokensFor(more: Fields = {}, by = browser): Promise<Tokens> {
    const { code, code_verifier } = await this.codeFor(more, by);
    const { status, body } = await this.exchange(code, code_verifier);
    expect(status).toBe(200);
    return body as Tokens;
  }

  async device(more: Fields = {}) {
    const { body } = await form('/oauth/device', { client_id: this.id, scope: 'profile:me', ...more });
    return body as {
      device_code: string;
      user_code: string;
      verification_uri_complete: string;
      interval: number;
    };
  }

  poll(device_code: string) {
    return form('/oauth/device/poll', { client_id: this.id, device_code });
  }
}

/** Requests authorization and allows it; returns the redirect URI with its parameters. */
export async function authorize(fields: Fields, by = browser): Promise<string> {
  await by.get(authorizePath(fields));
  if (by.page.status === 200) await by.submit('/user/oauth', {}, 'Allow');
  expect(by.page.status).toBe(303);
  return by.page.location!;
}

export async function form(path: string, fields: Fields | string, headers: Fields = {}) {
  return send('POST', path, {
    headers: { 'content-type': 'application/x-www-form-urlencoded', ...headers },
    body: typeof fields === 'string' ? fields : new URLSearchParams(fields).toString(),
  });
}

export const profileWith = (token: string) => user.with(token).get('/profile');
export const isAccepted = async (token: string) => (await profileWith(token)).status === 200;

export const oauthError = (
  error: string,
  status = 400,
  error_description = expect.any(String) as unknown,
) => ({
  status,
  body: expect.objectContaining({
    error,
    error_description,
    errors: expect.arrayContaining([expect.any(String)]) as unknown,
  }) as unknown,
});

export const pollAgainSoon = () => sql('UPDATE oauth_device_requests SET polled_at = NULL');
export const decide = async (user_code: string, button: 'Allow' | 'Cancel') => {
  await browser.get(`/user/oauth/device?code=${user_code}`);
  return browser.submit('/user/oauth/device', {}, button);
};

/** The fields that a browser on the consent page of a device would send, for Allow and for Cancel. */
export async function decisionForms(by: Browser, user_code: string): Promise<Fields[]> {
  await by.get(`/user/oauth/device?code=${user_code}`);
  return ['Allow', 'Cancel'].map((button) => by.formFields('/user/oauth/device', button));
}
