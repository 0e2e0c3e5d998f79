import { createScan } from './table-scan';

export const PURCHASES = createScan<{ id: number }>(
  'purchases',
  { id: 'bigint' },
  't.user_id = person.user_id OR lower_ascii(t.email) = ANY (person.addresses)',
);

export const DOWNLOAD_KEYS = createScan<{ id: number }>(
  'download_keys',
  { id: 'bigint' },
  `person.user_id IN (t.user_id, t.account_id)
     OR lower_ascii(t.email) = ANY (person.addresses) OR t.purchase_email = ANY (person.addresses)`,
);

/** Keys of other people whose label names the person: `addresses` are patterns. */
export const KEY_LABELS = createScan<{ id: number }>(
  'download_keys',
  { id: 'bigint' },
  't.label ~* ANY (person.addresses)',
  'scan_labels',
);

export interface Entry {
  collection_id: number;
  game_id: number;
}

/** Entries of the person's collections, and entries of other collections that they added or whose blurb they wrote. */
export const COLLECTION_ENTRIES = createScan<Entry>(
  'collection_games',
  { collection_id: 'bigint', game_id: 'bigint' },
  `person.user_id IN (t.user_id, t.blurb_user_id)
     OR t.collection_id IN (SELECT id FROM collections WHERE user_id = (SELECT user_id FROM person))`,
);

/**
 * Responses stored for retries: to the person, and to other users with one of the texts in `addresses`. Those to
 * operators contain no buyer.
 */
export const RESPONSES = createScan<{ credential: string; key_hash: Buffer }>(
  'idempotency_keys',
  { credential: 'text', key_hash: 'bytea' },
  `t.user_id = person.user_id OR (t.user_id IS NOT NULL
     AND EXISTS (SELECT FROM unnest(person.addresses) AS text WHERE strpos(lower(t.answer), lower(text)) > 0))`,
);
