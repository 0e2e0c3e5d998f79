import { createHash, createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto';
import { OperatorError } from '../../platform/errors/operator-error';

/** A key, with times in seconds since 1970. */
export interface Key {
  kid: string;
  publicKey: KeyObject;
  privateKey: () => KeyObject;
  token_lifetime: number;
  signs_from: number;
  verifies_until: number;
}

export const publicJwk = ({ kid, publicKey }: Key) => {
  const { x } = publicKey.export({ format: 'jwk' });
  return { kty: 'OKP', crv: 'Ed25519', x: x!, kid, alg: 'EdDSA', use: 'sig' };
};

/** RFC 7638. */
export const thumbprintOf = (x: string) =>
  createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url');

export const timeOf = (seconds: number) => new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z');

/** The keys of the SIGNING_KEYS setting. */
export function readPem(pem: string): Key[] {
  const blocks = pem.match(/-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/g) ?? [];
  const keys = blocks.map((block): Key => {
    let privateKey: KeyObject;
    try {
      privateKey = createPrivateKey(block);
    } catch {
      throw new OperatorError('SIGNING_KEYS contains a private key that cannot be read.');
    }
    if (privateKey.asymmetricKeyType !== 'ed25519')
      throw new OperatorError(
        'SIGNING_KEYS must contain Ed25519 keys. Create one with `openssl genpkey -algorithm ed25519`.',
      );
    const publicKey = createPublicKey(privateKey);
    return {
      kid: thumbprintOf(publicKey.export({ format: 'jwk' }).x!),
      publicKey,
      privateKey: () => privateKey,
      token_lifetime: Infinity,
      signs_from: -Infinity,
      verifies_until: Infinity,
    };
  });
  if (keys.length === 0) throw new OperatorError('SIGNING_KEYS contains no private key in PEM format.');
  return keys;
}
