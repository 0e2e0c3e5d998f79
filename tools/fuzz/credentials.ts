import { ALICE, BOB, CAROL, SCOPED, type Tenant, UNKNOWN_KEY } from '../../test/support/world/world';
import { ROOT_SCOPES } from '../../src/auth/access/scopes';

/** The user of a valid credential, and its permissions. */
export interface Bearer {
  user: number;
  type: 'key' | 'jwt';
  scopes: string[];
}

const BY_LETTER: Record<string, number> = { a: ALICE, b: BOB, c: CAROL };

/** Names of credentials; `a:profile` is a key of Alice's with that scope, `jwt:a` a JWT issued to her. */
export const GOOD = ['a', 'b', 'c'];
export const NARROW = [...SCOPED.map((scope) => `a:${scope}`), 'jwt:a', 'jwt:b'];
export const BAD = [
  'none',
  'empty',
  'unknown',
  'revoked',
  'jwt:tail',
  'jwt:none',
  'jwt:junk',
  'latin',
  'huge',
];

/** Formats of the header; the service accepts the bare credential too. */
export const SCHEMES = ['Bearer CREDENTIAL', 'CREDENTIAL', 'bearer CREDENTIAL', 'Bearer   CREDENTIAL  '];

const UNSIGNED = `${Buffer.from('{"alg":"none","typ":"JWT"}').toString('base64url')}.${Buffer.from('{"sub":"1","scope":"profile"}').toString('base64url')}.`;

export function findBearer(tenant: Tenant, name: string): Bearer | undefined {
  const [letter = '', ...rest] = name.split(':');
  if (name === 'jwt:a' || name === 'jwt:b')
    return { user: tenant.user(BY_LETTER[rest[0]!]!), type: 'jwt', scopes: ['profile:me'] };
  if (letter === 'jwt' || !(letter in BY_LETTER)) return undefined;
  const user = tenant.user(BY_LETTER[letter]!);
  return { user, type: 'key', scopes: rest.length > 0 ? [rest.join(':')] : [...ROOT_SCOPES] };
}

/** The text of a credential. The running service issues the JWTs: `jwts` has them by letter. */
export function buildCredential(tenant: Tenant, name: string, jwts: Map<string, string>): string {
  const [letter = '', ...rest] = name.split(':');
  if (letter in BY_LETTER)
    return rest.length > 0 ? tenant.scopedKey(rest.join(':')) : tenant.key(BY_LETTER[letter]!);
  switch (name) {
    case 'jwt:a':
    case 'jwt:b':
      return jwts.get(rest[0]!) ?? '';
    case 'jwt:tail': {
      const jwt = jwts.get('a') ?? 'a.b.c';
      return `${jwt.slice(0, -4)}${jwt.endsWith('AAAA') ? 'BBBB' : 'AAAA'}`;
    }
    case 'jwt:none':
      return UNSIGNED;
    case 'jwt:junk':
      return 'e30.e30.e30';
    case 'unknown':
      return UNKNOWN_KEY;
    case 'revoked':
      return tenant.revokedKey;
    case 'latin':
      return 'k\xe9y\xff\xfe';
    case 'huge':
      return `${UNKNOWN_KEY}${'x'.repeat(2000)}`;
    case 'empty':
      return ' ';
    default:
      return '';
  }
}

export const covers = (granted: string[], needed: string) =>
  granted.some((scope) => needed === scope || needed.startsWith(`${scope}:`));
