import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

/** A plain hash is sufficient, because tokens are random. */
export const sha256 = (token: string): Buffer => createHash('sha256').update(token).digest();

export const randomToken = (): string => randomBytes(32).toString('base64url');

/** What a secret encrypts or signs. Each purpose has its own key. */
type Purpose =
  | 'gamewharf signing keys'
  | 'gamewharf account links'
  | 'gamewharf sealed'
  | 'gamewharf file URLs'
  | 'gamewharf download sessions'
  | 'gamewharf upload sessions'
  | 'gamewharf setup code';

export const deriveKey = (secret: string, purpose: Purpose): Buffer =>
  Buffer.from(hkdfSync('sha256', secret, '', purpose, 32));

/** AES-256-GCM with the name as additional data, so that a text cannot be decrypted under another name. */
export function seal(
  text: Buffer,
  name: string,
  secret: string,
  purpose: Purpose = 'gamewharf signing keys',
): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', deriveKey(secret, purpose), nonce).setAAD(Buffer.from(name));
  const sealed = Buffer.concat([cipher.update(text), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/**
 * Returns undefined if no pepper decrypts the text. If a previous pepper does, `reseal` receives the text
 * encrypted with the current one.
 */
export function unseal(
  sealed: Buffer,
  name: string,
  peppers: string[],
  reseal?: (sealed: Buffer) => void,
): Buffer | undefined {
  for (const pepper of peppers) {
    const text = open(sealed, name, pepper, 'gamewharf signing keys');
    if (!text) continue;
    if (pepper !== peppers[0]) reseal?.(seal(text, name, peppers[0]!));
    return text;
  }
  return undefined;
}

/** Encrypts a value with a token that is not stored. */
export const encryptWithToken = (token: string, value: unknown): Buffer =>
  seal(Buffer.from(JSON.stringify(value)), '', token, 'gamewharf sealed');

/** Returns undefined if the value was encrypted with another token. */
export function decryptWithToken<Value>(token: string, sealed: Buffer): Value | undefined {
  const text = open(sealed, '', token, 'gamewharf sealed');
  return text && (JSON.parse(text.toString()) as Value);
}

function open(sealed: Buffer, name: string, secret: string, purpose: Purpose): Buffer | undefined {
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
  const key = deriveKey(secret, purpose);
  try {
    const decipher = createDecipheriv('aes-256-gcm', key, nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(name)).setAuthTag(tag);
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
  }
}
