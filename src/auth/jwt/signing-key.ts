import { createHash, createPublicKey, type KeyObject } from 'node:crypto';

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

/** Computes the thumbprint of a key (RFC 7638). */
export const thumbprint = (x: string) =>
  createHash('sha256')
    .update(JSON.stringify({ crv: 'Ed25519', kty: 'OKP', x }))
    .digest('base64url');

export const formatSeconds = (seconds: number) =>
  new Date(seconds * 1000).toISOString().replace(/\.\d+Z$/, 'Z');

/** A key of the SIGNING_KEYS setting. */
export function configuredKey(privateKey: KeyObject): Key {
  const publicKey = createPublicKey(privateKey);
  return {
    kid: thumbprint(publicKey.export({ format: 'jwk' }).x!),
    publicKey,
    privateKey: () => privateKey,
    token_lifetime: Infinity,
    signs_from: -Infinity,
    verifies_until: Infinity,
  };
}
