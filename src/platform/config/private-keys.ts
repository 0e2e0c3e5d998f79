import { createPrivateKey, type KeyObject } from 'node:crypto';

const BLOCK = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----/g;

/** The Ed25519 keys in a text in PEM format; undefined if it contains none, or anything else. */
export function parsePrivateKeys(pem: string): KeyObject[] | undefined {
  try {
    const keys = (pem.match(BLOCK) ?? []).map((block) => createPrivateKey(block));
    return keys.length > 0 && keys.every((key) => key.asymmetricKeyType === 'ed25519') ? keys : undefined;
  } catch {
    return undefined;
  }
}
