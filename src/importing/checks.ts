import type { ClientBase } from 'pg';
import { Problems } from './problems';
import { bitOf, type RecordType } from './record-types';
import { missingReferences, type Outside } from './references';
import type { Staging } from './staging';

/** Checks all records together: duplicate ids, names and addresses, and references to missing records. */
export async function checkTogether(
  client: ClientBase,
  types: RecordType[],
  staging: Staging,
  outside: Outside,
  problems: Problems,
) {
  const given = types.filter((type) => staging.rowsOf(type));
  const checks = [
    ...given.flatMap((type) => [repeated(type), ...taken(type)]),
    ...missingReferences(types, outside),
  ];
  for (const check of checks) {
    const { rows } = await client.query<{ line: string; text: string; count: string }>(
      `SELECT line, text, count(*) OVER () AS count FROM (${check}) found ORDER BY line, text LIMIT ${Problems.limit}`,
    );
    if (!rows[0]) continue;
    const found = rows.map((row) => ({ line: Number(row.line), text: row.text }));
    problems.addFound(found, Number(rows[0].count));
  }
}

/** Finds lines with a unique value that an earlier line has. */
const claimedTwice = (rows: string, values: string, subject: string, what: string) => `
  SELECT r.line, ${subject} || ': ${what} is also on line ' || d.first AS text
  FROM ${rows} r
  JOIN (SELECT ${values}, min(line) AS first FROM ${rows} r GROUP BY ${values} HAVING count(*) > 1) d
    USING (${values})
  WHERE r.line > d.first`;

function repeated({ name, table, key }: RecordType): string {
  const rows = `import_${table}`;
  if (name === 'api_key') return claimedTwice(rows, key, `'api_key'`, 'the key');
  if (name === 'oauth_application') {
    return claimedTwice(rows, key, `'oauth_application ' || left(client_id, 40)`, 'the client_id');
  }
  return claimedTwice(rows, key, `'${name} ' || id`, 'the id');
}

/** Finds unique values that a stored record has, unless the stream changes that record's value. */
function taken(type: RecordType): string[] {
  const rows = `import_${type.table}`;
  if (type.name === 'user') {
    const usernames = `(SELECT line, id, lower(username) AS name FROM ${rows})`;
    const addresses = `(
      SELECT DISTINCT s.line, s.id, lower(e.email) AS email
      FROM ${rows} s, unnest(s.emails, s.emails_verified) AS e (email, verified) WHERE e.verified)`;
    return [
      claimedTwice(usernames, 'name', `'user ' || id`, 'the username'),
      `SELECT s.line, 'user ' || s.id || ': the username is taken by user ' || t.id AS text
       FROM ${rows} s JOIN users t ON lower(t.username) = lower(s.username) AND t.id <> s.id
       WHERE NOT EXISTS (SELECT FROM ${rows} o WHERE o.id = t.id)`,
      `SELECT s.line, 'user ' || s.id || ': an address is in emails twice' AS text
       FROM ${rows} s
       WHERE cardinality(s.emails) > 1
         AND cardinality(s.emails) > (SELECT count(DISTINCT lower(email)) FROM unnest(s.emails) AS email)`,
      claimedTwice(addresses, 'email', `'user ' || id`, 'a verified address'),
      `SELECT e.line, 'user ' || e.id || ': an address is already verified by user ' || t.user_id AS text
       FROM ${addresses} e JOIN user_emails t ON t.email = e.email AND t.verified AND t.user_id <> e.id
       WHERE NOT EXISTS (
         SELECT FROM ${rows} o WHERE o.id = t.user_id AND o.present & ${bitOf(type, 'emails')} <> 0)`,
    ];
  }
  if (type.name === 'game') {
    return [
      claimedTwice(rows, 'user_id, slug', `'game ' || id`, 'the slug'),
      `SELECT s.line, 'game ' || s.id || ': the slug is taken by game ' || t.id AS text
       FROM ${rows} s JOIN games t ON t.user_id = s.user_id AND t.slug = s.slug AND t.id <> s.id
       WHERE NOT EXISTS (SELECT FROM ${rows} o WHERE o.id = t.id)`,
    ];
  }
  if (type.name === 'download_key') {
    return [
      claimedTwice(rows, 'key', `'download_key ' || id`, 'the key'),
      `SELECT s.line, 'download_key ' || s.id || ': the key is taken by download_key ' || t.id AS text
       FROM ${rows} s JOIN download_keys t ON t.key = s.key AND t.id <> s.id
       WHERE NOT EXISTS (SELECT FROM ${rows} o WHERE o.id = t.id)`,
    ];
  }
  return [];
}
