import { ERASED_ADDRESS } from './person';
import { scanOf } from './scan';

export const PURCHASES = scanOf<{ id: number }>(
  'purchases',
  { id: 'bigint' },
  't.user_id = person.user_id OR lower_ascii(t.email) = ANY (person.addresses)',
);

export const DOWNLOAD_KEYS = scanOf<{ id: number }>(
  'download_keys',
  { id: 'bigint' },
  `person.user_id IN (t.user_id, t.account_id)
     OR lower_ascii(t.email) = ANY (person.addresses) OR t.purchase_email = ANY (person.addresses)`,
);

export interface Entry {
  collection_id: number;
  game_id: number;
}

/** Entries of the person's collections, and entries of other collections that they added or wrote the blurb of. */
export const ENTRIES = scanOf<Entry>(
  'collection_games',
  { collection_id: 'bigint', game_id: 'bigint' },
  `person.user_id IN (t.user_id, t.blurb_user_id)
     OR t.collection_id IN (SELECT id FROM collections WHERE user_id = (SELECT user_id FROM person))`,
);

export const ON_PROFILE = scanOf<{ collection_id: number; user_id: number }>(
  'profile_collections',
  { collection_id: 'bigint', user_id: 'bigint' },
  't.user_id = person.user_id',
);

export interface StoredResponse {
  credential: string;
  key_hash: Buffer;
}

const RESPONSE_KEYS = { credential: 'text', key_hash: 'bytea' } as const;

/** Also responses to other users that contain a collection or an entry of the person. */
export const RESPONSES = scanOf<StoredResponse>(
  'idempotency_keys',
  RESPONSE_KEYS,
  `t.user_id = person.user_id OR t.credential = 'user ' || person.user_id
     OR (t.user_id IS NOT NULL AND strpos(t.answer, '"user_id":' || person.user_id || ',') > 0)`,
);

/** Stored responses of sales that contain the buyer: a current or former email address, or a deleted reference. */
export const RESPONSES_ABOUT_SALES = scanOf<StoredResponse>(
  'idempotency_keys',
  RESPONSE_KEYS,
  `CASE WHEN t.user_id IS NULL AND t.answer LIKE '{"purchase":%' THEN
     lower_ascii(t.answer::json #>> '{purchase,email}') = ANY (person.addresses) OR EXISTS (
       SELECT FROM purchases p WHERE p.id = (t.answer::json #>> '{purchase,id}')::bigint AND (
         (p.email = '${ERASED_ADDRESS}' AND t.answer::json #>> '{purchase,email}' <> '${ERASED_ADDRESS}')
         OR (t.answer::json #>> '{purchase,reference}' IS NOT NULL
             AND NOT EXISTS (SELECT FROM purchase_references r WHERE r.purchase_id = p.id)))) END`,
  'scan_responses_about_sales',
);

/** Stored responses that contain one of the texts in `addresses`. */
export const RESPONSES_WITH = scanOf<StoredResponse>(
  'idempotency_keys',
  RESPONSE_KEYS,
  'EXISTS (SELECT FROM unnest(person.addresses) AS text WHERE strpos(lower(t.answer), lower(text)) > 0)',
  'scan_responses_with',
);
