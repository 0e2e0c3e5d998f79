import type { Relations } from '../database/relations';
import { find } from './checks';
import type { Problems } from './problems';
import type { Field, RecordType } from './record-types';
import { recordsOf, stagedIn, subjectIn } from './staged';

/** Stored lists that a record must have, by the column that they are staged in. */
const STORED_LISTS: Record<string, string> = {
  game_ids: 'ARRAY(SELECT g.game_id FROM purchase_games g WHERE g.purchase_id = t.id ORDER BY g.game_id)',
};

const columnOf = ({ columns }: Field) => columns[0]!.name;

/**
 * Completes partial records: required fields that are absent get the stored values. The stored records are locked, since the
 * import writes back what it read. A new record must have all of them.
 */
export async function complete(relations: Relations, type: RecordType, problems: Problems) {
  const { table, key } = type;
  const fields = type.fields.filter(({ required, columns }) => required && columns[0]!.name !== key);
  const partial = fields.map((field) => `s.${columnOf(field)} IS NULL`).join(' OR ');
  const { rows } = await relations.query<{ found: number }>(`
    WITH found AS MATERIALIZED (
      SELECT t.${key} FROM ${table} t
      WHERE t.${key} IN (SELECT s.${key} FROM ${stagedIn(type)} s WHERE ${partial}) ORDER BY t.${key} FOR NO KEY UPDATE
    )
    SELECT count(*)::int AS found FROM found`);
  if (rows[0]!.found)
    await relations.update(
      recordsOf(type),
      Object.fromEntries(
        fields.map((field) => {
          const column = columnOf(field);
          return [column, `coalesce(s.${column}, ${STORED_LISTS[column] ?? `t.${column}`})`];
        }),
      ),
      { table, on: `t.${key} = s.${key} AND (${partial})` },
    );
  const missing = fields.map((field) => `('${field.name}', s.${columnOf(field)} IS NULL)`);
  await find(
    relations,
    [
      `SELECT s.line, ${subjectIn(type)} || ': ' || f.name || ' is required' AS text
     FROM ${stagedIn(type)} s CROSS JOIN LATERAL (VALUES ${missing.join(', ')}) AS f (name, missing) WHERE f.missing`,
    ],
    problems,
  );
}
