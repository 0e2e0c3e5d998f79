import { ATTACKER, CAROL } from '../world/world';
import type { Attack } from './attack';

const CLIENTS = 10;

/** An account with more collections than a user would create by hand, and clients that request all of them. */
async function collections(attack: Attack, count: number, description: string): Promise<void> {
  const { sql } = attack;
  const user = ATTACKER.user(CAROL);
  await sql.query(
    `INSERT INTO collections (user_id, title, description, games_count)
     SELECT $1, 'Collection ' || n, nullif($3, ''), 0 FROM generate_series(1, $2::int) AS n`,
    [user, count, description],
  );
  try {
    attack.begin();
    await attack.clientsThat(CLIENTS, () => ({
      method: 'GET',
      path: '/profile/collections',
      headers: [['Authorization', `Bearer ${ATTACKER.key(CAROL)}`]],
    }));
  } finally {
    await sql.query('DELETE FROM collections WHERE user_id = $1 AND id NOT BETWEEN $2 AND $3', [
      user,
      ATTACKER.base,
      ATTACKER.base + 99,
    ]);
  }
}

export const manyCollections = (attack: Attack) => collections(attack, 40_000, '');
export const longCollections = (attack: Attack) => collections(attack, 3000, `<p>${'ü'.repeat(19_990)}</p>`);
