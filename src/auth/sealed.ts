import { createCipheriv, createDecipheriv, hkdfSync, randomBytes } from 'node:crypto';

const NONCE_BYTES = 12;
const TAG_BYTES = 16;

const keyOf = (secret: string) => Buffer.from(hkdfSync('sha256', secret, '', 'gamewharf signing keys', 32));

/** AES-256-GCM with the name as additional data: a text cannot be opened under another name. */
export function seal(text: Buffer, name: string, secret: string): Buffer {
  const nonce = randomBytes(NONCE_BYTES);
  const cipher = createCipheriv('aes-256-gcm', keyOf(secret), nonce).setAAD(Buffer.from(name));
  const sealed = Buffer.concat([cipher.update(text), cipher.final()]);
  return Buffer.concat([nonce, cipher.getAuthTag(), sealed]);
}

/** undefined: no pepper opens it. `reseal` gets what a previous pepper opened, sealed under the current one. */
export function unseal(
  sealed: Buffer,
  name: string,
  peppers: string[],
  reseal?: (sealed: Buffer) => void,
): Buffer | undefined {
  for (const pepper of peppers) {
    const text = unsealWith(pepper, sealed, name);
    if (!text) continue;
    if (pepper !== peppers[0]) reseal?.(seal(text, name, peppers[0]!));
    return text;
  }
  return undefined;
}

function unsealWith(secret: string, sealed: Buffer, name: string): Buffer | undefined {
  const nonce = sealed.subarray(0, NONCE_BYTES);
  const tag = sealed.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES);
  try {
    const decipher = createDecipheriv('aes-256-gcm', keyOf(secret), nonce, { authTagLength: TAG_BYTES });
    decipher.setAAD(Buffer.from(name)).setAuthTag(tag);
    return Buffer.concat([decipher.update(sealed.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()]);
  } catch {
    return undefined;
  }
}
