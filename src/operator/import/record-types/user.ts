import { problemOfHash } from '../../../auth/sign-in/password-hash';
import { boolean, emails, fit, ownId, type ValueType, NULL, text, url } from '../value-types';
import { hasField, optional, required, timeOrNow } from './fields';
import { each, isChanged, isNew, recordType } from './record-type';

/** A hash created by another system, as the value of `password`. */
class PasswordHash {
  constructor(readonly text: string) {}
}

/** A plain password isn't staged, only its hash. */
const password: ValueType = {
  sql: 'text',
  allows: 'text of at most 1,000 characters',
  encode: (value, reject) =>
    value instanceof PasswordHash ? value.text : fit(value, { max: 1000 }, reject) === undefined ? '' : NULL,
};

const passwordHash: ValueType = {
  sql: 'text',
  allows: 'bcrypt or argon2 hash',
  encode(value, reject) {
    const text = fit(value, { max: 300 }, reject);
    const problem = text === undefined ? undefined : problemOfHash(text);
    return problem === undefined ? '' : reject(problem);
  },
};

const fields = [
  required('id', ownId),
  required(
    'username',
    text({ max: 63, pattern: /^[A-Za-z0-9_-]+$/, form: 'consist of letters, digits, _ and -' }),
  ),
  optional('display_name', text({ max: 200 })),
  optional('gamer', boolean, 't'),
  optional('developer', boolean, 'f'),
  optional('press_user', boolean, 'f'),
  optional('cover_url', url),
  optional('password', password, NULL, {
    columns: [{ name: 'password_hash', sql: 'text' }],
    meaning: 'plain text; stored as a hash',
    implied: ({ password_hash: hash }) =>
      typeof hash === 'string' ? new PasswordHash(hash) : hash === null ? null : undefined,
  }),
  optional('emails', emails, ['{}', '{}'], {
    columns: [
      { name: 'emails', sql: 'text[]' },
      { name: 'emails_verified', sql: 'boolean[]' },
    ],
    inOtherTable: true,
    meaning: 'replaces the stored list',
  }),
  timeOrNow('created_at'),
  // Stored as the hash of `password`.
  optional('password_hash', passwordHash, NULL, {
    columns: [],
    meaning: 'instead of `password`; replaced by a hash of this service at the next sign-in',
  }),
];

const hasEmails = hasField(fields, 'emails');
const staged = 'unnest(s.emails, s.emails_verified) AS e (email, verified)';
const insertEmails = `
  INSERT INTO user_emails (user_id, email, verified)
  SELECT s.id, lower_ascii(e.email), e.verified FROM import_users s, ${staged}`;

export const USER_RECORD = recordType({
  name: 'user',
  table: 'users',
  fields,
  compare({ id, username, password, password_hash }, reject) {
    if (password != null && password_hash != null) reject('has both password and password_hash');
    const [, erased] = /^erased-(\d+)(-|$)/i.exec(String(username)) ?? [];
    if (erased !== undefined && erased !== String(id))
      reject(`username is reserved for the erased user ${erased}`);
  },
  unique: [
    {
      what: 'the username',
      rows: '(SELECT line, id, lower_ascii(username) AS name FROM import_users)',
      columns: 'name',
      stored: 'users t ON lower_ascii(t.username) = s.name',
    },
    `SELECT s.line, concat('user', ' ' || s.id) || ': an email address is in emails twice' AS text
     FROM import_users s
     WHERE cardinality(s.emails) > 1
       AND cardinality(s.emails) > (SELECT count(DISTINCT lower_ascii(email)) FROM unnest(s.emails) AS email)`,
    {
      what: 'a verified email address',
      rows: `(SELECT DISTINCT s.line, s.id, lower_ascii(e.email) AS email FROM import_users s, ${staged} WHERE e.verified)`,
      columns: 'email',
      stored: 'user_emails t ON t.email = s.email AND t.verified',
      owner: 't.user_id',
      taken: 'an email address is already verified by user',
      field: 'emails',
    },
  ],
  swap: { value: 'username', clash: 'lower_ascii(s.username) = lower_ascii(t.username)' },
  childTables: {
    tables: ['user_emails'],
    differ: `${hasEmails} AND
      ARRAY(SELECT lower_ascii(e.email) || ' ' || e.verified AS one FROM ${staged} ORDER BY one) IS DISTINCT FROM
      ARRAY(SELECT e.email || ' ' || e.verified AS one FROM user_emails e WHERE e.user_id = s.id ORDER BY one)`,
    // Email addresses are deleted and inserted again, because no order of updates supports all swaps.
    change: [
      `DELETE FROM user_emails t USING import_users s
       WHERE t.user_id = s.id AND ${isChanged('users')} AND ${hasEmails}
         AND NOT EXISTS (SELECT FROM ${staged} WHERE lower_ascii(e.email) = t.email AND e.verified = t.verified)`,
      `${insertEmails} WHERE ${isChanged('users')} AND ${hasEmails} ON CONFLICT (user_id, email) DO NOTHING`,
    ],
    create: [`${insertEmails} WHERE ${isNew('users')}`],
  },
  deletion: {
    holds: {
      game: 'games g WHERE g.user_id = t.id',
      purchase: 'purchases p WHERE p.user_id = t.id',
      'download key': 'download_keys k WHERE k.user_id = t.id',
      collection: 'collections c WHERE c.user_id = t.id',
      bundle: 'bundles b WHERE b.user_id = t.id',
    },
    advice: 'erase the person instead, with gamewharf users erase',
    before: [
      `DELETE FROM webhooks w USING ${each('removed_users')} WHERE w.user_id = t.id`,
      // Entries that the user added to other collections stay, attributed to the collection's owner.
      `UPDATE collection_games g SET user_id = c.user_id
       FROM ${each('removed_users')}, collections c WHERE g.user_id = t.id AND c.id = g.collection_id`,
    ],
  },
});
