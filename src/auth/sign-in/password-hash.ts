import { randomBytes } from 'node:crypto';

// OWASP's first choice for argon2id; the library's default algorithm is argon2id.
const COST = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };

// Loaded at the first sign-in: most replicas never need its memory.
const argon2 = () => import('@node-rs/argon2');

export const hashPassword = async (password: string): Promise<string> =>
  (await argon2()).hash(password, COST);

export const verifyPassword = async (passwordHash: string, password: string): Promise<boolean> =>
  (await argon2()).verify(passwordHash, password);

/** Takes as long to verify as any other hash; no password matches it. */
export function decoyHash(): string {
  const { memoryCost, timeCost, parallelism } = COST;
  const random = (bytes: number) => randomBytes(bytes).toString('base64').replaceAll('=', '');
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${random(16)}$${random(32)}`;
}
