import { MAX_BUNDLE } from './purchase';
import { boolean, idFor, minorUnits, orderedIdsOf, ownId, title, url } from '../value-types';
import { optional, required, timeOrNow } from './fields';
import { slug } from './game';
import { isChanged, isNew, recordType } from './record-type';

const fields = [
  required('id', ownId),
  required('user_id', idFor('user'), { meaning: 'owner' }),
  required('slug', slug),
  required('title', title(200)),
  required('game_ids', orderedIdsOf('game', MAX_BUNDLE), {
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
const insertGames = (added_at: string) => `
  INSERT INTO bundle_games (bundle_id, game_id, position, created_at, updated_at)
  SELECT s.id, e.game_id, e.position, ${added_at}, ${added_at} FROM ${eachGame}`;

export const BUNDLE = recordType({
  name: 'bundle',
  table: 'bundles',
  fields,
  lists: {
    tables: ['bundle_games'],
    stored: { game_ids: storedGames('t') },
    differ: `s.game_ids IS DISTINCT FROM ${storedGames('t')}`,
    change: [
      `UPDATE bundles b SET version = b.version + 1, games_count = cardinality(s.game_ids)
       FROM import_bundles s WHERE b.id = s.id AND ${changed} AND s.game_ids <> ${storedGames('b')}`,
      // Hashed: a comparison with each ID of an array would take a second for ten thousand games.
      `DELETE FROM bundle_games g
       WHERE g.bundle_id IN (SELECT id FROM changed_bundles)
         AND (g.bundle_id, g.game_id) NOT IN (SELECT s.id, e.game_id FROM ${eachGame} WHERE ${changed})`,
      `UPDATE bundle_games g SET position = e.position, updated_at = now()
       FROM ${eachGame} WHERE ${changed} AND g.bundle_id = s.id AND g.game_id = e.game_id AND g.position <> e.position`,
      `${insertGames('now()')} WHERE ${changed} ON CONFLICT (bundle_id, game_id) DO NOTHING`,
    ],
    create: [
      `UPDATE bundles b SET games_count = cardinality(s.game_ids)
       FROM import_bundles s WHERE b.id = s.id AND ${isNew('bundles')}`,
      `${insertGames('coalesce(s.created_at, now())')} WHERE ${isNew('bundles')}`,
    ],
  },
  deletion: {
    // Its buyers own it.
    holds: { purchase: 'purchases p WHERE p.bundle_id = t.id' },
    advice: 'keep it, or delete those first',
    before: [],
  },
});
