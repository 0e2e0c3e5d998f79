import type { Relation } from '../database/relations';
import { bitOf, ENTRY_FIELDS, type Field, type RecordType } from './record-types';
import { changedIn, DROPPED_ENTRIES, given, isChanged, isNew, PLANNED_ENTRIES, stagedIn } from './staged';

/** The rows of other tables that belong to a record type. */
export interface Lists {
  /** What to keep before stored and staged records are compared. */
  prepare?: { relation: Relation; sql: string }[];
  /** Whether the lists of the staged record `s` differ from those of the stored record `t`. */
  differ: string;
  /** Statements that replace the lists of changed records. */
  change: string[];
  /** Statements that write the lists of new records. */
  create: string[];
}

const adminsOf = (type: RecordType, table: string, parent: string): Lists => {
  const bit = given(bitOf(type, 'admins'));
  const insert = `
    INSERT INTO ${table} (${parent}, user_id)
    SELECT s.id, a.user_id FROM ${stagedIn(type)} s, unnest(s.admins) AS a (user_id)`;
  return {
    differ: `${bit} AND s.admins IS DISTINCT FROM
      ARRAY(SELECT a.user_id FROM ${table} a WHERE a.${parent} = s.id ORDER BY a.user_id)`,
    change: [
      `DELETE FROM ${table} a USING ${stagedIn(type)} s
       WHERE a.${parent} = s.id AND ${isChanged(type)} AND ${bit} AND NOT a.user_id = ANY (s.admins)`,
      `${insert} WHERE ${isChanged(type)} AND ${bit} ON CONFLICT DO NOTHING`,
    ],
    create: [`${insert} WHERE ${isNew(type)}`],
  };
};

const listsOfUsers = (type: RecordType): Lists => {
  const bit = given(bitOf(type, 'emails'));
  const staged = 'unnest(s.emails, s.emails_verified) AS e (email, verified)';
  const insert = `
    INSERT INTO user_emails (user_id, email, verified)
    SELECT s.id, lower(e.email), e.verified FROM import_users s, ${staged}`;
  return {
    differ: `${bit} AND
      ARRAY(SELECT lower(e.email) || ' ' || e.verified AS one FROM ${staged} ORDER BY one) IS DISTINCT FROM
      ARRAY(SELECT e.email || ' ' || e.verified AS one FROM user_emails e WHERE e.user_id = s.id ORDER BY one)`,
    // Deleted and inserted again, since no order of updates suits all swaps of addresses.
    change: [
      `DELETE FROM user_emails t USING import_users s
       WHERE t.user_id = s.id AND ${isChanged(type)} AND ${bit}
         AND NOT EXISTS (SELECT FROM ${staged} WHERE lower(e.email) = t.email AND e.verified = t.verified)`,
      `${insert} WHERE ${isChanged(type)} AND ${bit} ON CONFLICT (user_id, email) DO NOTHING`,
      `UPDATE games g SET owner_name = u.username
       FROM ${changedIn(type)} s JOIN users u ON u.id = s.id
       WHERE g.user_id = s.id AND g.owner_name <> u.username`,
    ],
    create: [`${insert} WHERE ${isNew(type)}`],
  };
};

/** The import does the work of triggers itself, since they may be turned off. */
export const TRIGGERS_NOT_NEEDED = [
  'purchase_games_take_buyer',
  'purchases_carry_buyer',
  'purchase_games_take_sold_at',
  'purchases_carry_sold_at',
  'download_keys_take_buyer',
  'download_keys_change_buyer',
  'games_take_owner_name',
  'games_change_owner_name',
  'users_carry_username',
];

/** The time of a sale: null for a purchase that is neither complete nor refunded. */
const soldAt = (purchase: string, created_at = `${purchase}.created_at`) =>
  `CASE WHEN ${purchase}.status IN ('complete', 'refunded') THEN ${created_at} END`;

const gamesOfPurchases = (type: RecordType): Lists => {
  const insert = (buyer: string, sold_at: string) => `
    INSERT INTO purchase_games (purchase_id, game_id, user_id, email, sold_at)
    SELECT s.id, g.game_id, ${buyer}.user_id, lower(${buyer}.email), ${sold_at}
    FROM import_purchases s CROSS JOIN unnest(s.game_ids) AS g (game_id)`;
  const named = given(bitOf(type, 'reference'));
  // 144 bits, random but for the version of a UUID; base64url.
  const newKey = `'gwdl_' || translate(encode(
    uuid_send(gen_random_uuid()) || substr(uuid_send(gen_random_uuid()), 1, 2), 'base64'), '+/', '-_')`;
  const insertKeys = (purchase: string, created_at: string) => `
    INSERT INTO download_keys (key, game_id, purchase_id, account_id, purchase_email, created_at)
    SELECT ${newKey}, g.game_id, s.id, ${purchase}.user_id, lower(${purchase}.email), ${created_at}
    FROM import_purchases s CROSS JOIN unnest(s.game_ids) AS g (game_id)`;
  const lacksKey = `NOT EXISTS (SELECT FROM download_keys k WHERE k.purchase_id = s.id AND k.game_id = g.game_id)`;
  return {
    differ: `s.game_ids IS DISTINCT FROM
      ARRAY(SELECT g.game_id FROM purchase_games g WHERE g.purchase_id = s.id ORDER BY g.game_id)
      OR ${named} AND s.reference IS DISTINCT FROM
        (SELECT r.reference FROM purchase_references r WHERE r.purchase_id = s.id)
      OR s.with_key AND CASE WHEN ${given(bitOf(type, 'status'))} THEN s.status ELSE t.status END = 'complete'
        AND EXISTS (SELECT FROM unnest(s.game_ids) AS g (game_id) WHERE ${lacksKey})`,
    change: [
      `DELETE FROM purchase_games g USING import_purchases s
       WHERE g.purchase_id = s.id AND ${isChanged(type)} AND NOT g.game_id = ANY (s.game_ids)`,
      `UPDATE purchase_games g SET user_id = p.user_id, email = lower(p.email), sold_at = ${soldAt('p')}
       FROM ${changedIn(type)} s JOIN purchases p ON p.id = s.id
       WHERE g.purchase_id = s.id
         AND (g.user_id, g.email, g.sold_at) IS DISTINCT FROM (p.user_id, lower(p.email), ${soldAt('p')})`,
      `UPDATE download_keys k SET account_id = coalesce(k.user_id, p.user_id), purchase_email = lower(p.email)
       FROM ${changedIn(type)} s JOIN purchases p ON p.id = s.id
       WHERE k.purchase_id = s.id
         AND (k.account_id, k.purchase_email) IS DISTINCT FROM (coalesce(k.user_id, p.user_id), lower(p.email))`,
      `${insert('p', soldAt('p'))} JOIN purchases p ON p.id = s.id WHERE ${isChanged(type)} ON CONFLICT DO NOTHING`,
      `DELETE FROM purchase_references r USING import_purchases s
       WHERE r.purchase_id = s.id AND ${isChanged(type)} AND ${named} AND r.reference IS DISTINCT FROM s.reference`,
      `INSERT INTO purchase_references (reference, purchase_id)
       SELECT s.reference, s.id FROM import_purchases s
       WHERE ${isChanged(type)} AND s.reference IS NOT NULL ON CONFLICT (purchase_id) DO NOTHING`,
      `${insertKeys('p', 'now()')} JOIN purchases p ON p.id = s.id
       WHERE ${isChanged(type)} AND s.with_key AND p.status = 'complete' AND ${lacksKey}`,
    ],
    create: [
      `${insert('s', soldAt('s', 'coalesce(s.created_at, now())'))} WHERE ${isNew(type)}`,
      `INSERT INTO purchase_references (reference, purchase_id)
       SELECT s.reference, s.id FROM import_purchases s WHERE ${isNew(type)} AND s.reference IS NOT NULL`,
      `${insertKeys('s', 'coalesce(s.created_at, now())')}
       WHERE ${isNew(type)} AND s.with_key AND s.status = 'complete'`,
    ],
  };
};

const listsOfCollections = (type: RecordType): Lists => {
  const admins = adminsOf(type, 'collection_admins', 'collection_id');
  const [, blurb, user, time] = ENTRY_FIELDS as [Field, Field, Field, Field];
  const givenByEntry = (field: Field) => `e.present & ${field.bit} <> 0`;
  return {
    prepare: [
      // The new entries of stored collections. A leading part in the right order keeps its sort_keys; the others get keys
      // above all that are in use, so that no update collides.
      {
        relation: PLANNED_ENTRIES,
        sql: `WITH staged AS (
         SELECT e.collection_id, e.game_id, e.rank, t.game_id IS NOT NULL AS stored,
                CASE WHEN ${givenByEntry(blurb)} THEN e.blurb ELSE t.blurb END AS blurb,
                CASE WHEN ${givenByEntry(user)} OR t.user_id IS NULL
                     THEN coalesce(e.user_id, s.user_id) ELSE t.user_id END AS user_id,
                CASE WHEN ${givenByEntry(time)} THEN e.created_at
                     ELSE coalesce(t.created_at, now()) END AS created_at,
                t.sort_key AS old_key, t.blurb AS old_blurb, t.user_id AS old_user, t.created_at AS old_time,
                lag(t.sort_key, 1, t.sort_key - 1) OVER (PARTITION BY e.collection_id ORDER BY e.rank) AS key_before,
                (SELECT greatest(max(g.sort_key), 0) FROM collection_games g
                 WHERE g.collection_id = o.id) AS highest_key
         FROM stored_collections o
         JOIN import_collections s ON s.id = o.id
         JOIN import_collection_games e ON e.collection_id = o.id
         LEFT JOIN collection_games t ON t.collection_id = e.collection_id AND t.game_id = e.game_id
       ), placed AS (
         SELECT *, CASE WHEN bool_and(coalesce(old_key > key_before, false))
                               OVER (PARTITION BY collection_id ORDER BY rank)
                        THEN old_key ELSE highest_key + rank END AS sort_key
         FROM staged
       )
       SELECT collection_id, game_id, stored, blurb, user_id, created_at, sort_key,
              NOT stored OR (blurb, user_id, created_at, sort_key)
                IS DISTINCT FROM (old_blurb, old_user, old_time, old_key) AS differs
       FROM placed`,
      },
      {
        relation: DROPPED_ENTRIES,
        sql: `SELECT g.collection_id, g.game_id
       FROM stored_collections o
       JOIN import_collections s ON s.id = o.id
       JOIN collection_games g ON g.collection_id = o.id
       WHERE ${given(bitOf(type, 'games'))} AND NOT EXISTS (
         SELECT FROM import_collection_games e WHERE e.collection_id = g.collection_id AND e.game_id = g.game_id)`,
      },
    ],
    differ: `${admins.differ}
      OR EXISTS (SELECT FROM planned_entries p WHERE p.collection_id = s.id AND p.differs)
      OR EXISTS (SELECT FROM dropped_entries d WHERE d.collection_id = s.id)`,
    change: [
      ...admins.change,
      `DELETE FROM collection_games g USING dropped_entries d
       WHERE g.collection_id = d.collection_id AND g.game_id = d.game_id`,
      `UPDATE collection_games g
       SET sort_key = p.sort_key, blurb = p.blurb, user_id = p.user_id, created_at = p.created_at
       FROM planned_entries p
       WHERE p.stored AND p.differs AND g.collection_id = p.collection_id AND g.game_id = p.game_id`,
      `INSERT INTO collection_games (collection_id, game_id, sort_key, blurb, user_id, created_at)
       SELECT collection_id, game_id, sort_key, blurb, user_id, created_at FROM planned_entries WHERE NOT stored`,
    ],
    create: [
      ...admins.create,
      `INSERT INTO collection_games (collection_id, game_id, sort_key, blurb, user_id, created_at)
       SELECT e.collection_id, e.game_id, e.rank, e.blurb,
              coalesce(e.user_id, s.user_id), coalesce(e.created_at, now())
       FROM import_collection_games e JOIN import_collections s ON s.id = e.collection_id
       WHERE ${isNew(type)}`,
    ],
  };
};

export function listsOf(type: RecordType): Lists | undefined {
  switch (type.name) {
    case 'user':
      return listsOfUsers(type);
    case 'game':
      return adminsOf(type, 'game_admins', 'game_id');
    case 'purchase':
      return gamesOfPurchases(type);
    case 'collection':
      return listsOfCollections(type);
  }
}
