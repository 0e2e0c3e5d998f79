import { randomBytes } from 'node:crypto';

/**
 * OWASP's first choice for argon2id, the library's default algorithm. The class is a provider, so that tests
 * can lower the cost.
 */
export class PasswordCost {
  readonly memoryCost: number = 19_456;
  readonly timeCost: number = 2;
  readonly parallelism: number = 1;
}

/** The libraries are loaded at the first sign-in, because most replicas never need them. */
const argon2 = () => import('@node-rs/argon2');
const bcrypt = () => import('bcrypt');

const BCRYPT = /^\$2[aby]\$(\d\d)\$[./A-Za-z0-9]{53}$/;
const ARGON2 =
  /^\$argon2(?:id?|d)\$v=19\$m=(\d{1,9}),t=(\d{1,9}),p=(\d{1,9})\$[A-Za-z0-9+/]{11,86}\$[A-Za-z0-9+/]{16,86}$/;
/** The highest defaults of common frameworks. Two sign-ins at a time need this much time and memory. */
const MAX_BCRYPT_COST = 14;
const MAX_ARGON2 = { memory: 102_400, passes: 10, lanes: 16 };

/** The reason why a password hash from another system can't be used, or undefined. */
export function problemOfHash(hash: string): string | undefined {
  const [, rounds] = BCRYPT.exec(hash) ?? [];
  const [, memory, passes, lanes] = ARGON2.exec(hash) ?? [];
  if (rounds !== undefined)
    return Number(rounds) >= 4 && Number(rounds) <= MAX_BCRYPT_COST
      ? undefined
      : `must have a bcrypt cost from 4 to ${MAX_BCRYPT_COST}`;
  if (memory === undefined)
    return 'must be a bcrypt or argon2 hash, such as $2b$12$... or $argon2id$v=19$...';
  const [m, t, p] = [Number(memory), Number(passes), Number(lanes)];
  const isPossible = t >= 1 && p >= 1 && m >= 8 * p;
  return isPossible && m <= MAX_ARGON2.memory && t <= MAX_ARGON2.passes && p <= MAX_ARGON2.lanes
    ? undefined
    : `must have argon2 parameters of at most m=${MAX_ARGON2.memory}, t=${MAX_ARGON2.passes} and p=${MAX_ARGON2.lanes}`;
}

export const hashPassword = async (password: string, cost = new PasswordCost()): Promise<string> =>
  (await argon2()).hash(password, cost);

export const verifyPassword = async (passwordHash: string, password: string): Promise<boolean> =>
  passwordHash.startsWith('$2')
    ? // The library doesn't support the version letter of PHP's hashes, which are otherwise identical.
      (await bcrypt()).compare(password, passwordHash.replace('$2y', '$2b'))
    : (await argon2()).verify(passwordHash, password);

const hashPrefix = ({ memoryCost, timeCost, parallelism }: PasswordCost) =>
  `$argon2id$v=19$m=${memoryCost},t=${timeCost},p=${parallelism}$`;

/** Whether a new hash would have a different algorithm or cost, for example after an import. */
export const isOutdated = (passwordHash: string, cost: PasswordCost) =>
  !passwordHash.startsWith(hashPrefix(cost));

/** Takes as long to verify as any other hash, but matches no password. */
export function decoyHash(cost: PasswordCost): string {
  const random = (bytes: number) => randomBytes(bytes).toString('base64').replaceAll('=', '');
  return `${hashPrefix(cost)}${random(16)}$${random(32)}`;
}
