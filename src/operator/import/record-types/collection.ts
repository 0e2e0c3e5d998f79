import type { TemporaryTable } from '../temporary-tables';
import { COLLECTION_LAYOUTS } from '../../../collections/collection.entity';
import { boolean, html, ownId, idFor, idsFor, type ValueType, NULL, oneOf, title } from '../value-types';
import { adminTable } from './admins';
import { hasField, optional, PRESENT, required, timeOrNow } from './fields';
import { isNew, LINE, recordType } from './record-type';

const counted: ValueType = {
  sql: 'integer',
  allows: 'list of entries',
  encode: (value, reject) => (Array.isArray(value) ? String(value.length) : reject('must be a list')),
};

const fields = [
  required('id', ownId),
  required('user_id', idFor('user'), { meaning: 'owner' }),
  required('title', title(60, { pattern: /^\P{Cc}*$/u, form: 'not contain control characters' })),
  optional('private', boolean, 'f'),
  optional('description', html),
  optional('layout', oneOf(COLLECTION_LAYOUTS), 'grid'),
  optional('admins', idsFor('user'), '{}', { inOtherTable: true }),
  // Entries have their own staging table: a collection may have a hundred thousand.
  optional('games', counted, '0', {
    columns: [{ name: 'games_count', sql: 'integer' }],
    meaning: 'games in display order; replaces the stored list',
  }),
  timeOrNow('created_at'),
  timeOrNow('updated_at'),
];

/** The fields of an entry of `games`. */
export const ENTRY_FIELDS = [
  required('game_id', idFor('game')),
  optional('blurb', html),
  optional('user_id', idFor('user'), NULL, {
    meaning: 'user who added the game; default: the owner of the collection',
  }),
  timeOrNow('created_at'),
];

/** The entries of the stream's collections. */
export const IMPORTED_ENTRIES: TemporaryTable = {
  name: 'import_collection_games',
  columns: [
    LINE,
    { name: 'collection_id', sql: 'bigint' },
    { name: 'rank', sql: 'integer' },
    PRESENT,
    ...ENTRY_FIELDS.flatMap(({ columns }) => columns),
  ],
};

/** The new entries of stored collections. */
const PLANNED_ENTRIES: TemporaryTable = {
  name: 'planned_entries',
  columns: [
    { name: 'collection_id', sql: 'bigint' },
    { name: 'game_id', sql: 'bigint' },
    { name: 'stored', sql: 'boolean' },
    { name: 'blurb', sql: 'text' },
    { name: 'user_id', sql: 'bigint' },
    { name: 'created_at', sql: 'timestamptz' },
    { name: 'sort_key', sql: 'bigint' },
    { name: 'differs', sql: 'boolean' },
  ],
};

/** The stored entries that the stream omits. */
const DROPPED_ENTRIES: TemporaryTable = {
  name: 'dropped_entries',
  columns: PLANNED_ENTRIES.columns.slice(0, 2),
};

const has = (field: string) => hasField(ENTRY_FIELDS, field, 'e');
// Leading entries that are already in order keep their sort_keys. The others get keys above all existing
// ones, so that no update collides.
const planEntries = `
  WITH staged AS (
    SELECT e.collection_id, e.game_id, e.rank, t.game_id IS NOT NULL AS stored,
           CASE WHEN ${has('blurb')} THEN e.blurb ELSE t.blurb END AS blurb,
           CASE WHEN ${has('user_id')} OR t.user_id IS NULL
                THEN coalesce(e.user_id, s.user_id) ELSE t.user_id END AS user_id,
           CASE WHEN ${has('created_at')} THEN e.created_at
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
  FROM placed`;
const dropEntries = `
  SELECT g.collection_id, g.game_id
  FROM stored_collections o
  JOIN import_collections s ON s.id = o.id
  JOIN collection_games g ON g.collection_id = o.id
  WHERE ${hasField(fields, 'games')} AND NOT EXISTS (
    SELECT FROM import_collection_games e WHERE e.collection_id = g.collection_id AND e.game_id = g.game_id)`;

const admins = adminTable('collections', fields, { in: 'collection_admins', by: 'collection_id' });

export const COLLECTION_RECORD = recordType({
  name: 'collection',
  table: 'collections',
  fields,
  createdByService: { differs: 's.user_id <> t.user_id', as: 'for another user' },
  isDeletedByService: true,
  childTables: {
    tables: ['collection_admins', 'collection_games'],
    prepare: [
      { table: PLANNED_ENTRIES, sql: planEntries },
      { table: DROPPED_ENTRIES, sql: dropEntries },
    ],
    differ: `${admins.differ}
      OR EXISTS (SELECT FROM planned_entries p WHERE p.collection_id = s.id AND p.differs)
      OR EXISTS (SELECT FROM dropped_entries d WHERE d.collection_id = s.id)`,
    change: [
      ...admins.change,
      `DELETE FROM collection_games g USING dropped_entries d
       WHERE g.collection_id = d.collection_id AND g.game_id = d.game_id`,
      `UPDATE collection_games g
       SET sort_key = p.sort_key, blurb = p.blurb, user_id = p.user_id, created_at = p.created_at,
         blurb_user_id = CASE WHEN g.blurb = p.blurb
           THEN nullif(coalesce(g.blurb_user_id, g.user_id), p.user_id) END
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
       WHERE ${isNew('collections')}`,
    ],
  },
});
