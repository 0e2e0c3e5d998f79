import { Injectable, Logger } from '@nestjs/common';
import type { Configuration, CustomFetchOptions, ServerMetadata } from 'openid-client';
import { Settings } from '../../platform/config/settings';
import { serviceUnavailable } from '../../platform/errors/api-error';
import { ConcurrencyLimit, type LimitedClient } from '../../platform/limits/concurrency-limit';
import { Clock } from '../../platform/config/clock';
import { isStorable } from '../../platform/input/readers';
import { ServiceUrl } from '../../platform/server/service-url';

/** The library is loaded at the first sign-in with a provider, because most stores have none. */
const library = () => import('openid-client');

export const CALLBACK_PATH = '/login/callback';
export const SIGNED_OUT_PATH = '/logout';

// HS256 would accept the client secret as a key, and `none` would accept any token.
const ALGORITHMS = [
  ...['RS256', 'RS384', 'RS512', 'PS256', 'PS384', 'PS512', 'ES256', 'ES384', 'ES512'],
  ...['EdDSA', 'Ed25519'],
];
const TIMEOUT_SECONDS = 5;
const METADATA_TTL_MS = 3_600_000;
// Real responses have a few kilobytes; the published keys of large providers have tens of them.
const MAX_RESPONSE_BYTES = 1_000_000;
const MAX_SUBJECT_CHARACTERS = 255;
// A longer ID token isn't sent as a hint at sign-out. The provider then asks which account to sign out.
const MAX_HINT_CHARACTERS = 4096;

/** Values that the browser must return in a cookie, to prove that the response belongs to its own request. */
export interface ProviderRequest {
  state: string;
  nonce: string;
  code_verifier: string;
}

export interface ProviderAccount {
  issuer: string;
  subject: string;
  /** Undefined unless the provider says that it verified the email address. */
  verified_email: string | undefined;
  username: string | undefined;
  id_token: string;
}

/** The provider's response isn't valid, or the person canceled the sign-in. */
export class ProviderError extends Error {
  constructor(
    message: string,
    readonly isCanceled = false,
  ) {
    super(message);
  }
}

interface Discovered {
  config: Configuration;
  metadata: ServerMetadata;
  at: number;
}

/**
 * The OpenID Connect provider of the settings, with the code flow, PKCE, and ID tokens whose signature is
 * verified.
 */
@Injectable()
export class IdentityProvider {
  private readonly log = new Logger(IdentityProvider.name);
  // Requests that wait for the provider must not use up the concurrency limits of other routes.
  private readonly limit = new ConcurrencyLimit({ accepted: 50, each: 4 });
  private discovered: Discovered | undefined;
  private discovering: Promise<Discovered> | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly service: ServiceUrl,
    private readonly clock: Clock,
  ) {}

  get isConfigured(): boolean {
    return this.settings.OIDC_ISSUER !== undefined;
  }

  get name(): string {
    return this.settings.OIDC_NAME ?? new URL(this.settings.OIDC_ISSUER!).host;
  }

  /** The issuers in ID tokens of the provider: a slash after the host may differ from the setting. */
  get issuers(): string[] {
    const { OIDC_ISSUER } = this.settings;
    if (OIDC_ISSUER === undefined) return [];
    const { origin, pathname, href } = new URL(OIDC_ISSUER);
    return pathname === '/' ? [origin, href] : [href];
  }

  /** The origin to which forms may redirect. */
  get origin(): string | undefined {
    return this.settings.OIDC_ISSUER && new URL(this.settings.OIDC_ISSUER).origin;
  }

  /**
   * Returns the URL at which the person signs in; `signsInAgain`: even if they are already signed in to the
   * provider.
   */
  begin(
    client: LimitedClient,
    { signsInAgain }: { signsInAgain: boolean },
  ): Promise<{ url: string; request: ProviderRequest }> {
    return this.calling(client, async () => {
      const { config } = await this.discover();
      const openid = await library();
      const request = {
        state: openid.randomState(),
        nonce: openid.randomNonce(),
        code_verifier: openid.randomPKCECodeVerifier(),
      };
      const url = openid.buildAuthorizationUrl(config, {
        redirect_uri: this.redirectUri,
        scope: this.settings.OIDC_SCOPES.join(' '),
        state: request.state,
        nonce: request.nonce,
        code_challenge: await openid.calculatePKCECodeChallenge(request.code_verifier),
        code_challenge_method: 'S256',
        ...(signsInAgain && { prompt: 'login' }),
      });
      return { url: url.href, request };
    }).catch((error: unknown) => {
      // Its metadata isn't valid, which the person can't change by trying again.
      throw error instanceof ProviderError ? serviceUnavailable() : error;
    });
  }

  /**
   * Exchanges the code in the query of the callback. `isNew` decides whether to request the user info as well.
   */
  finish(
    client: LimitedClient,
    query: string,
    { state, nonce, code_verifier }: ProviderRequest,
    isNew: (account: Pick<ProviderAccount, 'issuer' | 'subject'>) => Promise<boolean>,
  ): Promise<ProviderAccount> {
    return this.calling(client, async () => {
      const { config } = await this.discover();
      const openid = await library();
      // The URL is built from the settings, because the Host header of the request may be forged.
      const callback = new URL(this.redirectUri + query);
      const tokens = await openid.authorizationCodeGrant(config, callback, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: code_verifier,
        idTokenExpected: true,
      });
      const claims = tokens.claims()!;
      const { OIDC_CLIENT_ID } = this.settings;
      if (claims.azp !== undefined && claims.azp !== OIDC_CLIENT_ID)
        throw new ProviderError('the ID token was issued to another client');
      if (claims.sub === '' || claims.sub.length > MAX_SUBJECT_CHARACTERS || !isStorable(claims.sub))
        throw new ProviderError('the subject is empty, too long or not storable');
      const account = { issuer: claims.iss, subject: claims.sub };
      const claimed: Record<string, unknown> = claims;
      let userInfo: Record<string, unknown> = {};
      const isElsewhere =
        (claims.email === undefined || claims.preferred_username === undefined) &&
        config.serverMetadata().userinfo_endpoint !== undefined;
      // The library compares the subject of the response with that of the ID token.
      if (isElsewhere && (await isNew(account)))
        userInfo = await openid.fetchUserInfo(config, tokens.access_token, claims.sub);
      // Both fields come from one source, because its verification applies only to its own email address.
      const { email, email_verified } = claimed.email === undefined ? userInfo : claimed;
      return {
        ...account,
        // Some providers send strings, even `"false"`, which must not count as verified.
        verified_email: email_verified === true ? storableText(email) : undefined,
        username: storableText(claimed.preferred_username ?? userInfo.preferred_username),
        id_token: tokens.id_token!,
      };
    });
  }

  /**
   * The URL that signs out at the provider; undefined if it has none or can't be reached, because a sign-out
   * never fails.
   */
  async endSessionUrl(client: LimitedClient, id_token: string): Promise<URL | undefined> {
    try {
      return await this.calling(client, async () => {
        const { config, metadata } = await this.discover();
        if (metadata.end_session_endpoint === undefined) return undefined;
        return (await library()).buildEndSessionUrl(config, {
          post_logout_redirect_uri: this.service.url + SIGNED_OUT_PATH,
          ...(id_token.length <= MAX_HINT_CHARACTERS ? { id_token_hint: id_token } : {}),
        });
      });
    } catch {
      return undefined;
    }
  }

  private get redirectUri(): string {
    return this.service.url + CALLBACK_PATH;
  }

  private async calling<Result>(client: LimitedClient, work: () => Promise<Result>): Promise<Result> {
    try {
      return await this.limit.run(client, undefined, work);
    } catch (error) {
      throw this.explained(error);
    }
  }

  /** Logs the cause, and tells the browser only whether it makes sense to try again later. */
  private explained(error: unknown): unknown {
    if (!(error instanceof Error) || error instanceof ProviderError) return error;
    const { code, error: response } = error as { code?: string; error?: string };
    // Only the first cause: the next one may quote the response, which contains tokens.
    const reason = [error.message, ...(error.cause instanceof Error ? [error.cause.message] : [])].join(': ');
    if (error.name === 'AuthorizationResponseError')
      return new ProviderError(`the provider responded ${response}`, response === 'access_denied');
    if (error.name === 'ResponseBodyError' && response === 'invalid_grant')
      return new ProviderError('the code has expired or was used');
    if (INVALID_RESPONSE_ERRORS.includes(error.name) && !UNAVAILABLE.includes(code)) {
      this.log.warn(`A response of the identity provider was rejected: ${reason} (${code})`);
      return new ProviderError(error.message);
    }
    if (UNAVAILABLE_ERRORS.includes(error.name) || error instanceof TypeError) {
      this.log.warn(`The identity provider can't be used: ${reason} ${response ?? code ?? ''}`.trimEnd());
      return serviceUnavailable();
    }
    return error;
  }

  private async discover(): Promise<Discovered> {
    const now = this.clock.monotonic();
    if (this.discovered && now - this.discovered.at < METADATA_TTL_MS) return this.discovered;
    this.discovering ??= this.fetchMetadata().finally(() => (this.discovering = undefined));
    try {
      this.discovered = await this.discovering;
    } catch (error) {
      // Expired metadata is better than none.
      if (!this.discovered) throw error;
    }
    return this.discovered;
  }

  private async fetchMetadata(): Promise<Discovered> {
    const openid = await library();
    const { OIDC_ISSUER, OIDC_CLIENT_ID, OIDC_CLIENT_SECRET } = this.settings;
    const issuer = new URL(OIDC_ISSUER!);
    const isPlain = issuer.protocol === 'http:' ? [openid.allowInsecureRequests] : [];
    const options = { timeout: TIMEOUT_SECONDS, execute: isPlain, [openid.customFetch]: fetchWhole };
    const found = await openid.discovery(issuer, OIDC_CLIENT_ID!, undefined, undefined, options);
    const { supportsPKCE: _, ...metadata } = found.serverMetadata();
    const offered = metadata.id_token_signing_alg_values_supported ?? ['RS256'];
    const inBody = metadata.token_endpoint_auth_methods_supported?.includes('client_secret_post') ?? false;
    const config = new openid.Configuration(
      {
        ...metadata,
        id_token_signing_alg_values_supported: offered.filter((algorithm) => ALGORITHMS.includes(algorithm)),
      },
      OIDC_CLIENT_ID!,
      { client_secret: OIDC_CLIENT_SECRET },
      inBody ? openid.ClientSecretPost() : openid.ClientSecretBasic(),
    );
    config.timeout = TIMEOUT_SECONDS;
    config[openid.customFetch] = fetchWhole;
    for (const apply of isPlain) apply(config);
    // By default, the library trusts the connection to the token endpoint, and doesn't verify the signature.
    openid.enableNonRepudiationChecks(config);
    return { config, metadata, at: this.clock.monotonic() };
  }
}

const storableText = (claim: unknown) => (typeof claim === 'string' && isStorable(claim) ? claim : undefined);

/**
 * Reads the whole response. The library would read one of any size, and report one that is cut or too slow as invalid.
 */
async function fetchWhole(url: string, options: CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, options);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += chunk.byteLength;
    if (bytes > MAX_RESPONSE_BYTES) throw new TypeError('a response is too large');
    chunks.push(chunk);
  }
  return new Response(response.body && Buffer.concat(chunks), response);
}

// The library doesn't wrap all errors in its own.
const INVALID_RESPONSE_ERRORS = ['ClientError', 'OperationProcessingError'];

// The third: the provider doesn't accept the client's secret, or its own access token.
const UNAVAILABLE_ERRORS = ['ClientError', 'ResponseBodyError', 'WWWAuthenticateChallengeError'];

const UNAVAILABLE = [
  // An error that isn't from the library, such as a key that can't be imported.
  undefined,
  'OAUTH_TIMEOUT',
  'OAUTH_ABORT',
  'OAUTH_RESPONSE_IS_NOT_CONFORM',
  'OAUTH_RESPONSE_IS_NOT_JSON',
];
