import type { TemporaryTables } from './temporary-tables';
import { MAX_LISTED_PROBLEMS, type Problems } from './problems';
import { hasField } from './record-types/fields';
import type { RecordType, Unique } from './record-types/record-type';
import { type ExternalReferences, missingReferences } from './references';

/** Finds problems across all records: duplicate IDs, names and email addresses, and references to missing records. */
export async function checkTogether(
  tables: TemporaryTables,
  types: RecordType[],
  external: ExternalReferences,
  problems: Problems,
) {
  const several = types.filter(
    ({ records, deleted }) => tables.rowCount(records) + tables.rowCount(deleted) > 1,
  );
  const checks = [
    ...several.map((type) => repeated(tables, type)),
    ...types
      .filter(({ records }) => tables.rowCount(records))
      .flatMap((type) => findTaken(type, tables.rowCount(type.records) > 1)),
    ...missingReferences(tables, types, external),
  ];
  for (const check of checks) await find(tables, [check], problems);
}

/** Runs queries for lines and texts of problems. */
export async function find(tables: TemporaryTables, checks: string[], problems: Problems) {
  if (checks.length === 0) return;
  const all = checks.map(
    (check, place) => `SELECT line, text, ${place} AS place FROM (${check}) found_${place}`,
  );
  const { rows } = await tables.query<{ line: number; text: string; count: number }>(
    `SELECT line, text, count(*) OVER () AS count FROM (${all.join(' UNION ALL ')}) found
     ORDER BY line, place, text LIMIT ${MAX_LISTED_PROBLEMS}`,
  );
  if (!rows[0]) return;
  const found = rows.map((row) => ({ line: Number(row.line), text: row.text }));
  problems.addFound(found, Number(rows[0].count));
}

/** Finds lines with a unique value that an earlier line has. */
const claimedTwice = (rows: string, columns: string, subject: string, what: string, more = '') => `
  SELECT s.line, ${subject} || ': ${what} is also on line ' || d.first AS text
  FROM ${rows} s
  JOIN (SELECT ${columns}, min(line) AS first${more} FROM ${rows} s GROUP BY ${columns} HAVING count(*) > 1) d
    USING (${columns})
  WHERE s.line > d.first`;

/**
 * Finds repeated IDs. If no line contains the ID, because the purchase was found by its reference, the repeated
 * reference is reported instead.
 */
function repeated(tables: TemporaryTables, { key, records, deleted, fields, subject }: RecordType): string {
  const name = fields[0]!.name;
  const rows = [
    { table: records, isOwn: hasField(fields, name) },
    { table: deleted, isOwn: 'true' },
  ]
    .filter(({ table }) => tables.rowCount(table) > 0)
    .map(({ table, isOwn }) => `SELECT line, ${key}, ${isOwn} AS is_own FROM ${table.name} s`)
    .join(' UNION ALL ');
  return `${claimedTwice(`(${rows})`, key, subject, `the ${name}`, ', bool_or(is_own) AS any_own')} AND any_own`;
}

const findTaken = (type: RecordType, several: boolean): string[] =>
  (type.unique ?? []).flatMap((unique) => {
    if (typeof unique === 'string') return [unique];
    const { what, rows = type.records.name, columns } = unique;
    const stored = takenByStored(type, unique, rows);
    return several ? [claimedTwice(rows, columns, type.subject, what), stored] : [stored];
  });

/** Finds values that stored records already have. The records of one import may swap values. */
function takenByStored(type: RecordType, unique: Unique, rows: string): string {
  const { what, stored, owner = 't.id', taken = `${what} is taken by ${type.name}`, field } = unique;
  const released = field ? `AND ${hasField(type.fields, field, 'o')}` : '';
  return `
    SELECT s.line, ${type.subject} || ': ${taken} ' || ${owner} AS text
    FROM ${rows} s JOIN ${stored} AND ${owner} <> s.id
    WHERE NOT EXISTS (SELECT FROM ${type.records.name} o WHERE o.id = ${owner} ${released})`;
}
