import { PURCHASE_STATUSES, PURCHASE_TYPES } from '../../../purchases/purchase.entity';
import {
  boolean,
  email,
  idFor,
  idOrIdsFor,
  integer,
  minorUnits,
  NULL,
  number,
  oneOf,
  ownId,
  text,
} from '../value-types';
import { hasField, optional, required, timeOrNow } from './fields';
import { each, isChanged, isNew, recordType } from './record-type';

// The number of games is limited because every response with the purchase contains all of them.
export const MAX_BUNDLE = 10_000;
const MAX_INTEGER = 2 ** 31 - 1;

const fields = [
  required('id', ownId),
  required('game_id', idOrIdsFor('game', MAX_BUNDLE), {
    columns: [{ name: 'game_ids', sql: 'bigint[]' }],
    inOtherTable: true,
    instead: 'bundle_id',
    meaning: 'a list makes the purchase a bundle',
  }),
  optional('bundle_id', idFor('bundle'), NULL, {
    meaning: 'in place of `game_id`: the sold bundle, whose games become those of the purchase',
  }),
  optional('purchase_type', oneOf(PURCHASE_TYPES), 'game', {
    implied: ({ game_id, bundle_id }) => (Array.isArray(game_id) || bundle_id != null ? 'bundle' : undefined),
    meaning: '`bundle` for `bundle_id` or a list',
  }),
  required('email', text(email), { meaning: 'email address of the buyer' }),
  optional('user_id', idFor('user'), NULL, { meaning: 'account of the buyer' }),
  timeOrNow('created_at'),
  required('source', text({ max: 100 }), {
    meaning: 'where or how the buyer paid, such as `card` or `store`; for information only',
  }),
  required('currency', text({ max: 3, pattern: /^[A-Z]{3}$/, form: 'be an ISO 4217 code such as USD' })),
  required('amount', minorUnits, { meaning: 'total price paid, in minor units' }),
  optional('sale_rate', number(0, 100), '0', { meaning: 'discount in percent' }),
  optional('quantity', integer(1, MAX_INTEGER, 'integer'), '1', { meaning: 'number of copies' }),
  optional('status', oneOf(PURCHASE_STATUSES), 'complete'),
  optional('donation', boolean, 'f'),
  optional('reference', text({ max: 200 }), NULL, {
    inOtherTable: true,
    meaning: "the checkout's unique ID for the sale; makes `id` optional",
  }),
  optional('with_key', boolean, 'f', {
    inOtherTable: true,
    meaning:
      'creates a download key for each game of a complete purchase that has none; existing keys are kept',
  }),
];

/** The time of a sale: null for a purchase that is neither complete nor refunded. */
const soldAt = (purchase: string, created_at = `${purchase}.created_at`) =>
  `CASE WHEN ${purchase}.status IN ('complete', 'refunded') THEN ${created_at} END`;

const changed = isChanged('purchases');
const has = (field: string) => hasField(fields, field);
const hasReference = has('reference');
const createdAt = 'coalesce(s.created_at, now())';
const eachGame = 'import_purchases s CROSS JOIN unnest(s.game_ids) AS g (game_id)';

const insertGames = (buyer: string, sold_at: string, from = eachGame) => `
  INSERT INTO purchase_games (purchase_id, game_id, user_id, email, sold_at)
  SELECT s.id, g.game_id, ${buyer}.user_id, lower_ascii(${buyer}.email), ${sold_at} FROM ${from}`;

// A key has 144 bits, which are random except for the version of a UUID, in base64url.
const newKey = `'gwdl_' || translate(encode(
  uuid_send(gen_random_uuid()) || substr(uuid_send(gen_random_uuid()), 1, 2), 'base64'), '+/', '-_')`;
const insertKeys = (purchase: string, created_at: string) => `
  INSERT INTO download_keys (key, game_id, purchase_id, account_id, purchase_email, created_at)
  SELECT ${newKey}, g.game_id, s.id, ${purchase}.user_id, lower_ascii(${purchase}.email), ${created_at} FROM ${eachGame}`;
const lacksKey = `NOT EXISTS (SELECT FROM download_keys k WHERE k.purchase_id = s.id AND k.game_id = g.game_id)`;

const insertReferences = `
  INSERT INTO purchase_references (reference, purchase_id)
  SELECT s.reference, s.id FROM import_purchases s WHERE s.reference IS NOT NULL`;

/** The games of a purchase, in ascending order. */
export const storedGames = (purchase: string) =>
  `ARRAY(SELECT g.game_id FROM purchase_games g WHERE g.purchase_id = ${purchase}.id ORDER BY g.game_id)`;
const gamesWithout = (games: string, others: string) =>
  `ARRAY(SELECT unnest(${games}) EXCEPT SELECT unnest(${others}))`;

export const PURCHASE_RECORD = recordType({
  name: 'purchase',
  table: 'purchases',
  fields,
  compare(record, reject) {
    if (Array.isArray(record.game_id) && (record.purchase_type ?? 'bundle') !== 'bundle') {
      reject('purchase_type must be bundle when game_id is a list');
    }
    if (record.bundle_id == null) return;
    if (record.game_id != null) reject('exactly one of game_id, bundle_id is required');
    if ((record.purchase_type ?? 'bundle') !== 'bundle')
      reject('purchase_type must be bundle when bundle_id is sent');
  },
  unique: [
    {
      what: 'the reference',
      columns: 'reference',
      stored: 'purchase_references t ON t.reference = s.reference',
      owner: 't.purchase_id',
      field: 'reference',
    },
    // The games of a record without them are the stored ones.
    `SELECT s.line, concat('purchase', ' ' || s.id) || ': purchase_type must be bundle for a bundle or several games' AS text
     FROM import_purchases s JOIN purchases t ON t.id = s.id
     WHERE ${has('purchase_type')} AND s.purchase_type <> 'bundle' AND NOT (${has('game_id')})
       AND (cardinality(s.game_ids) > 1 OR NOT (${has('bundle_id')}) AND t.bundle_id IS NOT NULL)`,
  ],
  createdByService: {
    differs: `${hasField(fields, 'game_id')} AND s.game_ids <> ${storedGames('t')}
      OR ${hasField(fields, 'bundle_id')} AND s.bundle_id IS DISTINCT FROM t.bundle_id
      OR lower_ascii(s.email) <> lower_ascii(t.email)
      OR ${hasField(fields, 'user_id')} AND s.user_id IS DISTINCT FROM t.user_id`,
    as: 'for another buyer or game',
  },
  childTables: {
    tables: ['purchase_games', 'purchase_references', 'download_keys'],
    stored: { game_ids: storedGames('t') },
    differ: `s.game_ids IS DISTINCT FROM ${storedGames('t')}
      OR ${hasReference} AND s.reference IS DISTINCT FROM
        (SELECT r.reference FROM purchase_references r WHERE r.purchase_id = s.id)
      OR s.with_key AND CASE WHEN ${hasField(fields, 'status')} THEN s.status ELSE t.status END = 'complete'
        AND EXISTS (SELECT FROM unnest(s.game_ids) AS g (game_id) WHERE ${lacksKey})`,
    change: [
      // Many purchases of a bundle with thousands of games may change in the same way.
      `WITH lists AS MATERIALIZED (
         SELECT array_agg(id) AS purchases, ${gamesWithout('old', 'new')} AS removed, ${gamesWithout('new', 'old')} AS added
         FROM (SELECT s.id, s.game_ids AS new, ${storedGames('s')} AS old FROM import_purchases s WHERE ${changed}) lists
         WHERE old <> new GROUP BY old, new
       ), removed AS (
         DELETE FROM purchase_games g
         USING lists l CROSS JOIN unnest(l.purchases) AS p (id) CROSS JOIN unnest(l.removed) AS r (id)
         WHERE g.purchase_id = p.id AND g.game_id = r.id
       )
       ${insertGames('p', soldAt('p'), `lists l CROSS JOIN unnest(l.purchases) AS s (id) CROSS JOIN unnest(l.added) AS g (game_id)`)}
       JOIN purchases p ON p.id = s.id`,
      `DELETE FROM purchase_references r USING import_purchases s
       WHERE r.purchase_id = s.id AND ${changed} AND ${hasReference} AND r.reference IS DISTINCT FROM s.reference`,
      `${insertReferences} AND ${changed} ON CONFLICT (purchase_id) DO NOTHING`,
      `${insertKeys('p', 'now()')} JOIN purchases p ON p.id = s.id
       WHERE ${changed} AND s.with_key AND p.status = 'complete' AND ${lacksKey}`,
    ],
    create: [
      `${insertGames('s', soldAt('s', createdAt))} WHERE ${isNew('purchases')}`,
      `${insertReferences} AND ${isNew('purchases')}`,
      `${insertKeys('s', createdAt)} WHERE ${isNew('purchases')} AND s.with_key AND s.status = 'complete'`,
    ],
  },
  deletion: {
    // A complete purchase counts in the earnings of its games, which a refund corrects.
    problems: [
      `SELECT s.line, concat('purchase', ' ' || s.id) || ': is complete: refund it first' AS text
       FROM removed_purchases s JOIN purchases t ON t.id = s.id WHERE t.status = 'complete'`,
    ],
    // An active key was paid for.
    holds: {
      'active download key': 'download_keys k WHERE k.purchase_id = t.id AND k.revoked_at IS NULL',
    },
    advice: 'revoke or delete them first',
    before: [`DELETE FROM download_keys k USING ${each('removed_purchases')} WHERE k.purchase_id = t.id`],
  },
});
