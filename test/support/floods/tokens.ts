import { ATTACKER, BOB } from '../world/world';
import type { Attack } from './attack';

const TOKENS = 30;
/** Parsed from RATE_LIMIT: the number of requests, and the period over which they are restored evenly. */
const LIMIT = { count: 1800, seconds: 10 };

const unknownKey = (token: number) => `${ATTACKER.key(BOB)}Token${token}`;

/** Many keys of one account in use: the account has one limit, not each key. */
export async function manyTokens(attack: Attack): Promise<string[]> {
  await attack.import(
    Array.from({ length: TOKENS }, (_, token) => ({
      type: 'api_key',
      key: unknownKey(token),
      user_id: ATTACKER.user(BOB),
    })),
  );
  attack.begin();
  await attack.clientsThat(TOKENS, (token) => ({
    method: 'GET',
    path: '/profile',
    headers: [['Authorization', `Bearer ${unknownKey(token)}`]],
  }));
  const answered = attack.seen.get(200) ?? 0;
  const allowed = Math.ceil(LIMIT.count * (1 + attack.seconds / LIMIT.seconds) * 1.1);
  return answered > allowed
    ? [
        `${answered} requests of one account succeeded in ${attack.seconds} s, but only ${allowed} are allowed`,
      ]
    : [];
}
