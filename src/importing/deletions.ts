import type { Relations } from '../database/relations';
import { find } from './checks';
import type { Problems } from './problems';
import type { RecordType } from './record-types';
import { deletedIn, goneIn, goneOf, subjectIn } from './staged';

interface Deletion {
  /** Rows that keep a record `t` from being deleted: their count, by their name in a problem. */
  holds?: Record<string, string>;
  /** What the operator can do instead. */
  advice?: string;
  /** Locks other records, as the service locks them before those of this type. */
  first?: string;
  /** Statements that delete or change other rows first. Foreign keys do the rest. */
  before?: string[];
}

// The planner expects a hundred given rows, for which it would read a whole table. With a limit it expects ten.
const each = (name: string) => `(SELECT id FROM ${name} LIMIT (SELECT 9223372036854775807)) t`;

const countOf = (rows: string) => `(SELECT count(*) FROM ${rows})`;

// Entries that somebody added to other collections stay, as added by the owner.
const USER: Deletion = {
  holds: {
    game: countOf('games g WHERE g.user_id = t.id'),
    purchase: countOf('purchases p WHERE p.user_id = t.id'),
    'download key': countOf('download_keys k WHERE k.user_id = t.id'),
    collection: countOf('collections c WHERE c.user_id = t.id'),
  },
  advice: 'erase the person instead, with gamewharf users erase',
  before: [
    `UPDATE collection_games g SET user_id = c.user_id
     FROM ${each('gone_users')}, collections c WHERE g.user_id = t.id AND c.id = g.collection_id`,
  ],
};

const GAME: Deletion = {
  holds: {
    purchase: countOf('purchase_games p WHERE p.game_id = t.id'),
    'download key': countOf('download_keys k WHERE k.game_id = t.id'),
  },
  advice: 'make the game private instead, or delete those first',
  first: `
    SELECT c.id FROM collections c
    WHERE c.id IN (SELECT g.collection_id FROM ${each('deleted_games')} JOIN collection_games g ON g.game_id = t.id)
    ORDER BY c.id FOR NO KEY UPDATE`,
  before: [
    `WITH removed AS (
       DELETE FROM collection_games g USING ${each('gone_games')} WHERE g.game_id = t.id RETURNING g.collection_id
     )
     UPDATE collections c SET games_count = c.games_count - r.games, updated_at = now()
     FROM (SELECT collection_id, count(*) AS games FROM removed GROUP BY collection_id) r WHERE c.id = r.collection_id`,
    `DELETE FROM builds b USING ${each('gone_games')} WHERE b.game_id = t.id`,
  ],
};

// A complete purchase is part of its games' earnings. Somebody has paid for a live key.
const PURCHASE: Deletion = {
  holds: {
    'live download key': countOf('download_keys k WHERE k.purchase_id = t.id AND k.revoked_at IS NULL'),
  },
  advice: 'revoke or delete them first',
  before: [`DELETE FROM download_keys k USING ${each('gone_purchases')} WHERE k.purchase_id = t.id`],
};

const DELETIONS: Record<string, Deletion> = { user: USER, game: GAME, purchase: PURCHASE };

/**
 * Deletes records after all other writes, whose rows may keep a record from being deleted. Children come first, so that a stream
 * may delete them together with their parents.
 */
export async function deleteRecords(relations: Relations, types: RecordType[], problems: Problems) {
  for (const type of types.toReversed()) {
    if (!relations.rowsOf(deletedIn(type))) continue;
    const { first, before = [] } = DELETIONS[type.name] ?? {};
    if (first) await relations.query(first);
    const { table, key } = type;
    const gone = await relations.keep(
      goneOf(type),
      `SELECT s.line, t.${key} FROM ${deletedIn(type)} s JOIN ${table} t ON t.${key} = s.${key} ORDER BY t.${key} FOR UPDATE OF t`,
    );
    if (!gone) continue;
    await find(relations, heldBack(type), problems);
    problems.throwIfAny();
    for (const statement of before) await relations.query(statement);
    await relations.query(`DELETE FROM ${table} t USING ${goneIn(type)} g WHERE t.${key} = g.${key}`);
  }
}

function heldBack(type: RecordType): string[] {
  const { holds, advice } = DELETIONS[type.name] ?? {};
  if (!holds) return [];
  const counts = Object.entries(holds).map(([what, count]) => `(${count}, '${what}')`);
  const held = `
    SELECT s.line, ${subjectIn(type)} || ': has ' || h.what || ': ${advice}' AS text
    FROM ${goneIn(type)} s JOIN ${type.table} t ON t.id = s.id
    CROSS JOIN LATERAL (
      SELECT string_agg(n || ' ' || one || CASE n WHEN 1 THEN '' ELSE 's' END, ' and ') AS what
      FROM (VALUES ${counts.join(', ')}) AS v (n, one) WHERE n > 0) h
    WHERE h.what IS NOT NULL`;
  if (type.name !== 'purchase') return [held];
  return [
    `SELECT s.line, ${subjectIn(type)} || ': is complete: refund it first' AS text
     FROM gone_purchases s JOIN purchases t ON t.id = s.id WHERE t.status = 'complete'`,
    held,
  ];
}
