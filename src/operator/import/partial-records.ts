import type { TemporaryTables } from './temporary-tables';
import { find } from './checks';
import type { Problems } from './problems';
import { hasField } from './record-types/fields';
import { GAME_RECORD } from './record-types/game';
import type { RecordType } from './record-types/record-type';
import { REJECTED_IDS } from './staging';
import { lockChangedKeys } from './write-records';

/**
 * Completes records with missing required fields from stored records. Locks the stored ones, because their
 * values are written back. Removes rejected records, which are staged only for this step.
 */
export async function completePartial(tables: TemporaryTables, type: RecordType, problems: Problems) {
  const { table, key, records, childTables } = type;
  const fields = type.fields
    .slice(1)
    .filter(({ required }) => required)
    .map(({ name, columns, instead }) => ({ name, column: columns[0]!.name, instead }));
  if (type === GAME_RECORD) await lockChangedKeys(tables);
  const partial = fields.map(({ column }) => `s.${column} IS NULL`).join(' OR ');
  const { rows } = await tables.query<{ found: number }>(`
    WITH found AS MATERIALIZED (
      SELECT t.${key} FROM ${table} t
      WHERE t.${key} IN (SELECT s.${key} FROM ${records.name} s WHERE ${partial}) ORDER BY t.${key} FOR NO KEY UPDATE
    )
    SELECT count(*)::int AS found FROM found`);
  if (rows[0]!.found) {
    const completed = fields.map(({ column }) => [
      column,
      `coalesce(s.${column}, ${childTables?.stored?.[column] ?? `t.${column}`})`,
    ]);
    const join = { table, on: `t.${key} = s.${key} AND (${partial})` };
    await tables.update(records, Object.fromEntries(completed) as Record<string, string>, join);
  }
  // A value that isn't valid was already reported.
  const missing = fields.map(
    ({ name, column, instead }) =>
      `('${name}', s.${column} IS NULL AND NOT (${[name, instead ?? []]
        .flat()
        .map((one) => hasField(type.fields, one))
        .join(' OR ')}))`,
  );
  const check = `
    SELECT s.line, ${type.subject} || ': ' || f.name || ' is required' AS text
    FROM ${records.name} s CROSS JOIN LATERAL (VALUES ${missing.join(', ')}) AS f (name, missing) WHERE f.missing`;
  await find(tables, [check], problems);
  if (key === 'id' && tables.rowCount(REJECTED_IDS) > 0)
    await tables.query(
      `DELETE FROM ${records.name} s USING ${REJECTED_IDS.name} r WHERE r.type = '${type.name}' AND r.id = s.id`,
    );
}
