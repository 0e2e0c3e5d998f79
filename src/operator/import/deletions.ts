import type { TemporaryTables } from './temporary-tables';
import { find } from './checks';
import type { Problems } from './problems';
import type { RecordType } from './record-types/record-type';

/**
 * Deletes records after all other writes, whose rows may refer to them. Children are deleted first, because a stream
 * may delete their parents too.
 */
export async function deleteRecords(tables: TemporaryTables, types: RecordType[], problems: Problems) {
  for (const type of types.toReversed()) {
    const { table, key, deleted, removed, deletion } = type;
    if (!tables.rowCount(deleted)) continue;
    if (deletion?.first) await tables.query(deletion.first);
    const found = await tables.materialize(
      removed,
      `SELECT s.line, t.${key} FROM ${deleted.name} s JOIN ${table} t ON t.${key} = s.${key} ORDER BY t.${key} FOR UPDATE OF t`,
    );
    if (!found) continue;
    if (deletion) {
      await find(tables, [...(deletion.problems ?? []), blockedDeletions(type, deletion)], problems);
      problems.throwIfAny();
      for (const statement of deletion.before) await tables.query(statement);
    }
    await tables.query(`DELETE FROM ${table} t USING ${removed.name} g WHERE t.${key} = g.${key}`);
  }
}

function blockedDeletions(type: RecordType, { holds, advice }: NonNullable<RecordType['deletion']>): string {
  const counts = Object.entries(holds).map(([what, rows]) => `((SELECT count(*) FROM ${rows}), '${what}')`);
  return `
    SELECT s.line, ${type.subject} || ': has ' || h.what || ': ${advice}' AS text
    FROM ${type.removed.name} s JOIN ${type.table} t ON t.id = s.id
    CROSS JOIN LATERAL (
      SELECT string_agg(n || ' ' || one || CASE n WHEN 1 THEN '' ELSE 's' END, ' and ') AS what
      FROM (VALUES ${counts.join(', ')}) AS v (n, one) WHERE n > 0) h
    WHERE h.what IS NOT NULL`;
}
