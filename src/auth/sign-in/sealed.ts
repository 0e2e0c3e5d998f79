import { createCipheriv, createDecipheriv, createHash, hkdfSync, randomBytes } from 'node:crypto';

/** A plain hash is enough, since tokens are random. */
export const hashOf = (token: string): Buffer => createHash('sha256').update(token).digest();

export const randomToken = (): string => randomBytes(32).toString('base64url');

const keyFrom = (token: string) => Buffer.from(hkdfSync('sha256', token, '', 'gamewharf sealed', 32));

const IV = 12;
const TAG = 16;

/** Encrypts a value under a token that is not stored. */
export function seal(token: string, value: unknown): Buffer {
  const iv = randomBytes(IV);
  const cipher = createCipheriv('aes-256-gcm', keyFrom(token), iv);
  const sealed = Buffer.concat([cipher.update(JSON.stringify(value), 'utf8'), cipher.final()]);
  return Buffer.concat([iv, cipher.getAuthTag(), sealed]);
}

export function unseal<Value>(token: string, sealed: Buffer): Value {
  const decipher = createDecipheriv('aes-256-gcm', keyFrom(token), sealed.subarray(0, IV));
  decipher.setAuthTag(sealed.subarray(IV, IV + TAG));
  const text = Buffer.concat([decipher.update(sealed.subarray(IV + TAG)), decipher.final()]).toString('utf8');
  return JSON.parse(text) as Value;
}
