import type { Relations } from '../../platform/database/relations';
import { MAX_LISTED, type Problems } from './problems';
import { given } from './record-types/fields';
import type { RecordType, Unique } from './record-types/record-type';
import { missingReferences, type Outside } from './references';

/**
 * Queries for problems across all records: duplicate IDs, names and email addresses, and references to missing records.
 */
function checksOf(relations: Relations, types: RecordType[], outside: Outside): string[] {
  const several = types.filter(
    ({ records, deleted }) => relations.rowsOf(records) + relations.rowsOf(deleted) > 1,
  );
  return [
    ...several.map((type) => repeated(type, relations.rowsOf(type.deleted) > 0)),
    ...types
      .filter(({ records }) => relations.rowsOf(records))
      .flatMap((type) => taken(type, relations.rowsOf(type.records) > 1)),
    ...missingReferences(relations, types, outside),
  ];
}

export async function checkTogether(
  relations: Relations,
  types: RecordType[],
  outside: Outside,
  problems: Problems,
) {
  const checks = checksOf(relations, types, outside);
  // For few rows, one statement costs less than the round trips of several.
  if (relations.isSmall) await find(relations, checks, problems);
  else for (const check of checks) await find(relations, [check], problems);
}

/** Runs queries for lines and texts of problems. */
export async function find(relations: Relations, checks: string[], problems: Problems) {
  if (checks.length === 0) return;
  const all = checks.map(
    (check, place) => `SELECT line, text, ${place} AS place FROM (${check}) found_${place}`,
  );
  const { rows } = await relations.query<{ line: number; text: string; count: number }>(
    `SELECT line, text, count(*) OVER () AS count FROM (${all.join(' UNION ALL ')}) found
     ORDER BY line, place, text LIMIT ${MAX_LISTED}`,
  );
  if (!rows[0]) return;
  const found = rows.map((row) => ({ line: Number(row.line), text: row.text }));
  problems.addFound(found, Number(rows[0].count));
}

/** Finds lines with a unique value that an earlier line has. */
const claimedTwice = (rows: string, columns: string, subject: string, what: string) => `
  SELECT s.line, ${subject} || ': ${what} is also on line ' || d.first AS text
  FROM ${rows} s
  JOIN (SELECT ${columns}, min(line) AS first FROM ${rows} s GROUP BY ${columns} HAVING count(*) > 1) d
    USING (${columns})
  WHERE s.line > d.first`;

function repeated(type: RecordType, withDeleted: boolean): string {
  const { key, records, deleted, fields } = type;
  const rows = withDeleted
    ? `(SELECT line, ${key} FROM ${records.name} UNION ALL SELECT line, ${key} FROM ${deleted.name})`
    : records.name;
  return claimedTwice(rows, key, type.subject, `the ${fields[0]!.name}`);
}

const taken = (type: RecordType, several: boolean): string[] =>
  (type.unique ?? []).flatMap((unique) => {
    if (typeof unique === 'string') return [unique];
    const { what, rows = type.records.name, columns } = unique;
    const stored = takenByStored(type, unique, rows);
    return several ? [claimedTwice(rows, columns, type.subject, what), stored] : [stored];
  });

/**
 * Finds values of stored records. Records may swap values, but only within one import, because imports are merged one
 * after the other.
 */
function takenByStored(type: RecordType, unique: Unique, rows: string): string {
  const { what, stored, owner = 't.id', taken = `${what} is taken by ${type.name}`, field } = unique;
  const released = field ? `AND ${given(type.fields, field, 'o')}` : '';
  return `
    SELECT s.line, ${type.subject} || ': ${taken} ' || ${owner} AS text
    FROM ${rows} s JOIN ${stored} AND ${owner} <> s.id
    WHERE NOT EXISTS (
      SELECT FROM ${type.records.name} o
      WHERE o.line >> ${SENDER_BITS} = s.line >> ${SENDER_BITS} AND o.id = ${owner} ${released})`;
}

/** The higher bits of a staged line contain the number of its import, the lower bits the number of the line. */
export const SENDER_BITS = 40;
