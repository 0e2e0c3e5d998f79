import { MAX_BUNDLE } from './purchase';
import type { TemporaryTable } from '../temporary-tables';
import { boolean, idFor, minorUnits, orderedIdsFor, ownId, title, url } from '../value-types';
import { optional, required, timeOrNow } from './fields';
import { slug } from './game';
import { isChanged, isNew, recordType } from './record-type';

const fields = [
  required('id', ownId),
  required('user_id', idFor('user'), { meaning: 'owner' }),
  required('slug', slug),
  required('title', title(200)),
  required('game_ids', orderedIdsFor('game', MAX_BUNDLE), {
    columns: [{ name: 'game_ids', sql: 'bigint[]' }],
    inOtherTable: true,
    meaning: 'games in their order; replaces the stored list',
  }),
  optional('cover_url', url),
  optional('min_price', minorUnits, '0', { meaning: 'minimum price in US cents' }),
  timeOrNow('created_at'),
  timeOrNow('updated_at'),
  optional('extend', boolean, 'f', {
    inOtherTable: true,
    meaning: 'gives all games of the bundle to those who bought it earlier, too',
  }),
];

const changed = isChanged('bundles');
const storedGames = (bundle: string) =>
  `ARRAY(SELECT g.game_id FROM bundle_games g WHERE g.bundle_id = ${bundle}.id ORDER BY g.position)`;

const eachGame = 'import_bundles s CROSS JOIN unnest(s.game_ids) WITH ORDINALITY AS e (game_id, position)';
const insertGames = (from: string, added_at: string) => `
  INSERT INTO bundle_games (bundle_id, game_id, position, created_at, updated_at)
  SELECT s.id, s.game_id, s.position, ${added_at}, ${added_at} FROM ${from} s`;

/**
 * The games of the stream's bundles. They are in a table because PostgreSQL can't estimate the number of
 * games in arrays.
 */
const LISTED_GAMES: TemporaryTable = {
  name: 'listed_games',
  columns: [
    { name: 'id', sql: 'bigint' },
    { name: 'game_id', sql: 'bigint' },
    { name: 'position', sql: 'bigint' },
  ],
};
const listGames = (time = '') => `SELECT s.id, e.game_id, e.position ${time} FROM ${eachGame}`;

export const BUNDLE_RECORD = recordType({
  name: 'bundle',
  table: 'bundles',
  fields,
  childTables: {
    tables: ['bundle_games'],
    stored: { game_ids: storedGames('t') },
    prepare: [{ table: LISTED_GAMES, sql: listGames() }],
    differ: `s.game_ids IS DISTINCT FROM ${storedGames('t')}`,
    change: [
      `UPDATE bundles b SET version = b.version + 1, games_count = cardinality(s.game_ids)
       FROM import_bundles s WHERE b.id = s.id AND ${changed} AND s.game_ids <> ${storedGames('b')}`,
      `DELETE FROM bundle_games g
       WHERE g.bundle_id IN (SELECT id FROM changed_bundles)
         AND NOT EXISTS (SELECT FROM ${LISTED_GAMES.name} s WHERE s.id = g.bundle_id AND s.game_id = g.game_id)`,
      `UPDATE bundle_games g SET position = s.position, updated_at = now()
       FROM ${LISTED_GAMES.name} s
       WHERE ${changed} AND g.bundle_id = s.id AND g.game_id = s.game_id AND g.position <> s.position`,
      `${insertGames(LISTED_GAMES.name, 'now()')} WHERE ${changed} ON CONFLICT (bundle_id, game_id) DO NOTHING`,
    ],
    create: [
      `UPDATE bundles b SET games_count = cardinality(s.game_ids)
       FROM import_bundles s WHERE b.id = s.id AND ${isNew('bundles')}`,
      `${insertGames(`(${listGames(', s.created_at')})`, 'coalesce(s.created_at, now())')} WHERE ${isNew('bundles')}`,
    ],
  },
  deletion: {
    holds: { purchase: 'purchases p WHERE p.bundle_id = t.id' },
    advice: 'keep it, or delete those first',
    before: [],
  },
});
