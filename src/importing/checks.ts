import type { Relations } from '../database/relations';
import { MAX_LISTED, type Problems } from './problems';
import { bitOf, type RecordType } from './record-types';
import { missingReferences, type Outside } from './references';
import { deletedIn, stagedIn, subjectIn } from './staged';

/** Queries for problems of all records together: duplicate ids, names and addresses, and references to missing records. */
export function checksOf(relations: Relations, types: RecordType[], outside: Outside): string[] {
  const given = types.filter((type) => relations.rowsOf(stagedIn(type)));
  const removed = types.filter((type) => relations.rowsOf(deletedIn(type)));
  return [
    ...types
      .filter((type) => relations.rowsOf(stagedIn(type)) + relations.rowsOf(deletedIn(type)) > 1)
      .map((type) => repeated(type, removed.includes(type))),
    ...given.flatMap((type) => taken(type, relations.rowsOf(stagedIn(type)) > 1)),
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
  if (relations.few) await find(relations, checks, problems);
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
const claimedTwice = (rows: string, values: string, subject: string, what: string) => `
  SELECT s.line, ${subject} || ': ${what} is also on line ' || d.first AS text
  FROM ${rows} s
  JOIN (SELECT ${values}, min(line) AS first FROM ${rows} s GROUP BY ${values} HAVING count(*) > 1) d
    USING (${values})
  WHERE s.line > d.first`;

const NAMES: Record<string, string> = { api_key: 'the key', oauth_application: 'the client_id' };

function repeated(type: RecordType, withDeleted: boolean): string {
  const { name, key } = type;
  const rows = withDeleted
    ? `(SELECT line, ${key} FROM ${stagedIn(type)} UNION ALL SELECT line, ${key} FROM ${deletedIn(type)})`
    : stagedIn(type);
  return claimedTwice(rows, key, subjectIn(type), NAMES[name] ?? 'the id');
}

/** Finds unique values that another record has; not those of a stored one that the same sender changes. */
function taken(type: RecordType, several: boolean): string[] {
  const rows = stagedIn(type);
  const twice = (of: string, values: string, what: string) =>
    several ? [claimedTwice(of, values, subject, what)] : [];
  const subject = subjectIn(type);
  // Only records of one sender may swap values: senders that share a transaction come one after the other.
  const released = `SELECT FROM ${rows} o WHERE o.line >> ${SENDER_BITS} = s.line >> ${SENDER_BITS} AND o.id`;
  if (type.name === 'user') {
    const usernames = `(SELECT line, id, lower(username) AS name FROM ${rows})`;
    const addresses = `(
      SELECT DISTINCT s.line, s.id, lower(e.email) AS email
      FROM ${rows} s, unnest(s.emails, s.emails_verified) AS e (email, verified) WHERE e.verified)`;
    return [
      ...twice(usernames, 'name', 'the username'),
      `SELECT s.line, ${subject} || ': the username is taken by user ' || t.id AS text
       FROM ${rows} s JOIN users t ON lower(t.username) = lower(s.username) AND t.id <> s.id
       WHERE NOT EXISTS (${released} = t.id)`,
      `SELECT s.line, ${subject} || ': an address is in emails twice' AS text
       FROM ${rows} s
       WHERE cardinality(s.emails) > 1
         AND cardinality(s.emails) > (SELECT count(DISTINCT lower(email)) FROM unnest(s.emails) AS email)`,
      ...twice(addresses, 'email', 'a verified address'),
      `SELECT s.line, ${subject} || ': an address is already verified by user ' || t.user_id AS text
       FROM ${addresses} s JOIN user_emails t ON t.email = s.email AND t.verified AND t.user_id <> s.id
       WHERE NOT EXISTS (${released} = t.user_id AND o.present & ${bitOf(type, 'emails')} <> 0)`,
    ];
  }
  if (type.name === 'game') {
    return [
      ...twice(rows, 'user_id, slug', 'the slug'),
      `SELECT s.line, ${subject} || ': the slug is taken by game ' || t.id AS text
       FROM ${rows} s JOIN games t ON t.user_id = s.user_id AND t.slug = s.slug AND t.id <> s.id
       WHERE NOT EXISTS (${released} = t.id)`,
    ];
  }
  if (type.name === 'purchase') {
    return [
      ...twice(rows, 'reference', 'the reference'),
      `SELECT s.line, ${subject} || ': the reference is taken by purchase ' || t.purchase_id AS text
       FROM ${rows} s JOIN purchase_references t ON t.reference = s.reference AND t.purchase_id <> s.id
       WHERE NOT EXISTS (${released} = t.purchase_id AND o.present & ${bitOf(type, 'reference')} <> 0)`,
    ];
  }
  if (type.name === 'download_key') {
    return [
      ...twice(rows, 'key', 'the key'),
      `SELECT s.line, ${subject} || ': the key is taken by download_key ' || t.id AS text
       FROM ${rows} s JOIN download_keys t ON t.key = s.key AND t.id <> s.id
       WHERE NOT EXISTS (${released} = t.id)`,
    ];
  }
  return [];
}

/** A staged line is the number of its sender in these higher bits, and below them the number of the line. */
export const SENDER_BITS = 40;
