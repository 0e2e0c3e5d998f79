import { randomBytes } from 'node:crypto';

/** OWASP's first choice for argon2id, the library's default algorithm. A provider, so that tests can lower the cost. */
export class PasswordCost {
  readonly memoryCost: number = 19_456;
  readonly timeCost: number = 2;
  readonly parallelism: number = 1;
}

// Loaded at the first sign-in: most replicas never need its memory.
const argon2 = () => import('@node-rs/argon2');

export const hashPassword = async (password: string, cost = new PasswordCost()): Promise<string> =>
  (await argon2()).hash(password, cost);

export const verifyPassword = async (passwordHash: string, password: string): Promise<boolean> =>
  (await argon2()).verify(passwordHash, password);

/** Takes as long to verify as any other hash; no password matches it. */
export function decoyHash({ memoryCost, timeCost, parallelism }: PasswordCost): string {
  const random = (bytes: number) => randomBytes(bytes).toString('base64').replaceAll('=', '');
  return `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$${random(16)}$${random(32)}`;
}
