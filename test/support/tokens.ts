import { randomUUID } from 'node:crypto';
import { type JWTPayload, SignJWT } from 'jose';
import { SigningKeysService } from '../../src/auth/jwt/signing-keys.service';
import { TokensService } from '../../src/auth/jwt/tokens.service';
import { theApp, theClock } from './app';

interface Forgery {
  sub?: unknown;
  scope?: unknown;
  api_key_id?: unknown;
  aud?: unknown;
  iss?: unknown;
  expires_in?: number;
  /** Merged over the claims; undefined removes a claim. */
  claims?: Record<string, unknown>;
  header?: Record<string, unknown>;
}

/** A JWT signed with the service's own key, with any claims. */
export async function forge(forgery: Forgery = {}): Promise<string> {
  const { kid, privateKey } = await theApp().get(SigningKeysService).signer(3600);
  return new SignJWT(buildClaims(forgery) as JWTPayload)
    .setProtectedHeader({ alg: 'EdDSA', typ: 'JWT', kid, ...forgery.header })
    .sign(privateKey());
}

export function buildClaims(forgery: Forgery): Record<string, unknown> {
  const { issuer, audience } = theApp().get(TokensService);
  const { sub = 1, scope = 'profile', aud = audience, iss = issuer, expires_in = 3600 } = forgery;
  const iat = Math.floor(theClock().now() / 1000);
  return {
    iss,
    aud,
    sub: String(sub),
    scope,
    game_id: 1,
    jti: randomUUID(),
    iat,
    exp: iat + expires_in,
    ...(forgery.api_key_id === undefined ? {} : { api_key_id: forgery.api_key_id }),
    ...forgery.claims,
  };
}
