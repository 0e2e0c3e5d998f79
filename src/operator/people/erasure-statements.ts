import { MAX_LABEL_CHARACTERS } from '../../purchases/keys/download-key.dto';
import type { DataSource } from 'typeorm';
import { personalRows } from '../../platform/database/personal-data';
import { longRead, type Statement, statement } from '../../platform/database/statement';
import { ERASED_ADDRESS, isErased, PSEUDONYM } from '../../auth/accounts/erased-users';
import { PERSON_QUERY } from './table-scan';

/** The maximum number of rows that one statement changes. The statement is repeated until none is left. */
export const ROWS_PER_BATCH = 1000;

const removal = (table: string, key: string, condition: string, name = table) =>
  statement(
    `erase_${name}`,
    `DELETE FROM ${table} WHERE (${key}) IN (SELECT ${key} FROM ${table} t WHERE ${condition} LIMIT ${ROWS_PER_BATCH}) RETURNING 1`,
  );

// The user may sign in concurrently. Such a session ends when the credentials are deleted again.
export const CLOSE_ACCOUNT = statement(
  'erase_password',
  'UPDATE users SET password_hash = NULL WHERE id = $user_id AND password_hash IS NOT NULL RETURNING 1',
);

/** An app without scopes gets no new grants while its old ones are deleted. */
export const EMPTY_APPLICATIONS = statement(
  'erase_application_fields',
  `UPDATE oauth_applications SET name = 'erased', redirect_uris = '{}', scopes = '{}' WHERE user_id = $user_id`,
);

/**
 * Grants are deleted first: issuing a token locks its grant, so none is issued afterward. Codes and tokens
 * are deleted with their grant.
 */
export const DELETE_CREDENTIALS = [
  ['identities', removal('identities', 'id', 'user_id = $user_id')],
  ['sessions', removal('sessions', 'token_hash', 'user_id = $user_id')],
  ['account_links', removal('account_links', 'id', 'user_id = $user_id')],
  [
    'oauth_grants',
    removal(
      'oauth_grants',
      'id',
      'user_id = $user_id OR client_id IN (SELECT client_id FROM oauth_applications WHERE user_id = $user_id)',
    ),
  ],
  ['oauth_applications', removal('oauth_applications', 'client_id', 'user_id = $user_id')],
  ['api_keys', removal('api_keys', 'id', 'user_id = $user_id')],
  ['webhooks', removal('webhooks', 'id', 'user_id = $user_id')],
] as const;

export const FORGET_EVENT_DETAILS = statement(
  'erase_event_details',
  `UPDATE audit_events SET details = details - '{address,host,network}'::text[]
   WHERE id IN (SELECT id FROM audit_events WHERE user_id = $user_id AND details ?| '{address,host,network}' LIMIT ${ROWS_PER_BATCH}) RETURNING 1`,
);

/** The refunds stay with the sales. */
export const FORGET_REFUNDERS = statement(
  'erase_refunders',
  `UPDATE refunds SET user_id = NULL WHERE purchase_id IN (SELECT purchase_id FROM refunds WHERE user_id = $user_id LIMIT ${ROWS_PER_BATCH}) RETURNING 1`,
);

/** Rows that concern only this account: those of entities with `@PersonalData({ erasure: 'delete' })`. */
export const deletions = ({ entityMetadatas }: DataSource): [table: string, Statement][] =>
  entityMetadatas.flatMap(({ target, tableName, primaryColumns }): [string, Statement][] => {
    const { erasure, where = 't.user_id = $user_id' } = personalRows(target) ?? {};
    const key = primaryColumns.map(({ databaseName }) => databaseName).join(', ');
    return erasure === 'delete' ? [[tableName, removal(tableName, key, where)]] : [];
  });

// Must exceed the number of concurrent sales, because an ID is assigned before its row is visible.
const NEWEST_SALES_SKIPPED = 10_000;
const before = (table: string) =>
  `coalesce((SELECT id FROM ${table} ORDER BY id DESC OFFSET ${NEWEST_SALES_SKIPPED} LIMIT 1), 0) AS ${table}`;
/** Later sales have higher IDs than these. */
export const NEWEST_SALES = longRead<{ purchases: number; download_keys: number }>(
  'erase_newest_sales',
  `SELECT ${before('purchases')}, ${before('download_keys')}`,
);

// All writers lock in this order: purchases, then their games and keys.
export const LOCK_PURCHASES = statement(
  'erase_lock_purchases',
  'SELECT FROM purchases WHERE id = ANY ($ids::bigint[]) ORDER BY id FOR UPDATE',
);
export const LOCK_PURCHASES_OF_KEYS = statement(
  'erase_lock_purchases_of_keys',
  `SELECT FROM purchases WHERE id IN (SELECT purchase_id FROM download_keys WHERE id = ANY ($ids::bigint[]))
   ORDER BY id FOR UPDATE`,
);

/**
 * Whether an email address is the person's: one of their own, or one on a row of their account that no other account
 * has verified.
 */
const isTheirs = (email: string, account: string) =>
  `(lower_ascii(${email}) = ANY (person.addresses) OR (${account} = person.user_id AND NOT EXISTS (
     SELECT FROM user_emails other
     WHERE other.email = lower_ascii(${email}) AND other.verified AND other.user_id <> person.user_id)))`;

// Triggers copy the buyer of a purchase to its games and keys.
export const FORGET_BUYERS = statement(
  'erase_buyers',
  `WITH ${PERSON_QUERY}
   UPDATE purchases t SET user_id = nullif(t.user_id, person.user_id),
     email = CASE WHEN ${isTheirs('t.email', 't.user_id')} THEN '${ERASED_ADDRESS}' ELSE t.email END
   FROM person WHERE t.id = ANY ($ids::bigint[])`,
);

// A label may contain the name of the person for whom the key was created.
export const FORGET_KEY_OWNERS = statement(
  'erase_key_owners',
  `WITH ${PERSON_QUERY}
   UPDATE download_keys t SET user_id = nullif(t.user_id, person.user_id),
     email = CASE WHEN ${isTheirs('t.email', 't.account_id')} THEN NULL ELSE t.email END, label = NULL
   FROM person WHERE t.id = ANY ($ids::bigint[])`,
);

/** Labels of other people's keys stay useful to the seller, so only the name in them is replaced. */
export const FORGET_NAMES_IN_LABELS = statement(
  'erase_names_in_labels',
  `UPDATE download_keys SET label = left(regexp_replace(label, $pattern, 'erased', 'gi'), ${MAX_LABEL_CHARACTERS})
   WHERE id = ANY ($ids::bigint[]) AND label ~* $pattern RETURNING 1`,
);

/** A reference is the checkout's ID for the sale. It is deleted only if it identifies the buyer. */
export const DELETE_REFERENCES = statement(
  'erase_references',
  `DELETE FROM purchase_references r
   WHERE r.purchase_id = ANY ($ids::bigint[]) AND r.reference ~* ANY ($names::text[])`,
);

/** Names that are also parts of other words or numbers, such as `1`, are found only as whole words. */
export function namePattern(name: string): string {
  const isCommon = /^[a-z0-9]{1,2}$/i.test(name) || !/\p{L}/u.test(name);
  return isCommon ? wholeWord(name) : escaped(name);
}

/** The labels of all sellers are searched, so a name in ASCII is found only as a whole word. */
export const patternInLabels = (name: string): string =>
  /^[ -~]+$/.test(name) ? wholeWord(name) : namePattern(name);

const escaped = (name: string) => name.replace(/[!-/:-@[-`{-~]/g, '\\$&');
const wholeWord = (name: string) => `(?<![a-z0-9])${escaped(name)}(?![a-z0-9])`;

/** A receiver may have repeated the reference in its response. */
export const FORGET_RESPONSES = statement(
  'erase_webhook_responses',
  `UPDATE webhook_attempts SET response = NULL
   WHERE subject_type = 'purchase' AND subject_id = ANY ($ids::bigint[]) AND response IS NOT NULL`,
);

export const DELETE_ENTRIES_OF_OWN = removal(
  'collection_games',
  'collection_id, game_id',
  'collection_id IN (SELECT id FROM collections WHERE user_id = $user_id)',
);
export const DELETE_COLLECTIONS = removal('collections', 'id', 'user_id = $user_id');

/** The owner of the collection keeps the entry. The blurb is cleared if the user wrote it last. */
export const REASSIGN_ENTRIES = statement(
  'erase_entries_elsewhere',
  `UPDATE collection_games e SET
     user_id = CASE e.user_id WHEN $user_id THEN c.user_id ELSE e.user_id END,
     blurb = CASE coalesce(e.blurb_user_id, e.user_id) WHEN $user_id THEN NULL ELSE e.blurb END,
     blurb_user_id = nullif(e.blurb_user_id, $user_id)
   FROM unnest($collection_ids::bigint[], $game_ids::bigint[]) AS added (collection_id, game_id) JOIN collections c ON c.id = added.collection_id
   WHERE e.collection_id = added.collection_id AND e.game_id = added.game_id
     AND $user_id IN (e.user_id, e.blurb_user_id)`,
);
export const TOUCH_COLLECTIONS = statement(
  'erase_touch_collections',
  'UPDATE collections SET updated_at = clock_timestamp() WHERE id = ANY ($collection_ids::bigint[])',
);

export const DELETE_RESPONSES = statement(
  'erase_responses',
  `DELETE FROM idempotency_keys WHERE (credential, key_hash) IN (SELECT * FROM unnest($credentials::text[], $key_hashes::bytea[]))
   RETURNING 1`,
);

/** Sign-ups, which have no account yet, and requests for the email addresses $credentials. */
export const DELETE_LINKS = [
  ['account_links', removal('account_links', 'id', 'email = ANY ($addresses::text[])', 'links_of_addresses')],
  [
    'link_requests',
    removal('link_requests', 'id', 'email = ANY ($addresses::text[])', 'link_requests_of_addresses'),
  ],
] as const;

export const DELETE_CLAIMS = statement(
  'erase_claims',
  `DELETE FROM user_emails WHERE (user_id, email) IN (SELECT * FROM unnest($user_ids::bigint[], $emails::text[])) RETURNING 1`,
);
export const DELETE_ADDRESSES = statement(
  'erase_addresses',
  'DELETE FROM user_emails WHERE user_id = $user_id RETURNING 1',
);

export const LOCK_USER = statement('erase_lock_user', 'SELECT FROM users WHERE id = $user_id FOR UPDATE');
/** The row stays, because games and the accounting refer to it. A trigger copies its new name to the games. */
export const ERASE_ACCOUNT = statement(
  'erase_account',
  `UPDATE users u SET display_name = NULL, cover_url = NULL, password_hash = NULL, gamer = true, press_user = false,
     username = CASE
       WHEN ${isErased('u')} THEN u.username
       WHEN EXISTS (SELECT FROM users other WHERE lower_ascii(other.username) = ${PSEUDONYM('u.id')})
       THEN ${PSEUDONYM('u.id')} || '-' || substr(md5(random()::text), 1, 8)
       ELSE ${PSEUDONYM('u.id')} END
   WHERE u.id = $user_id AND (NOT ${isErased('u')} OR NOT u.gamer OR u.press_user
     OR num_nonnulls(u.display_name, u.cover_url, u.password_hash) > 0) RETURNING 1`,
);
