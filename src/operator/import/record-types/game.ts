import { GAME_CLASSIFICATIONS, GAME_TRAITS, GAME_TYPES, GAME_VISIBILITIES } from '../../../games/game.entity';
import { idOf, idsOf, integer, minorUnits, oneOf, ownId, text, texts, title, url } from '../value-types';
import { adminsOf } from './admins';
import { optional, required, time, timeOrNow } from './fields';
import { each, recordType } from './record-type';

const slug = text({ max: 100, pattern: /^[A-Za-z0-9_.-]+$/, form: 'consist of letters, digits, _, . and -' });
const count = integer(0, Number.MAX_SAFE_INTEGER);

const fields = [
  required('id', ownId),
  required('user_id', idOf('user'), { meaning: 'owner' }),
  required('slug', slug),
  required('title', title(500)),
  optional('short_text', text({ max: 1000 })),
  // `type` is the type of record, so the game's type has another name.
  optional('game_type', oneOf(GAME_TYPES), 'default', {
    columns: [{ name: 'type', sql: 'text' }],
    meaning: '`type` in the API',
  }),
  optional('classification', oneOf(GAME_CLASSIFICATIONS), 'game'),
  optional('traits', texts({ max: 100, known: GAME_TRAITS }), '{}'),
  optional('visibility', oneOf(GAME_VISIBILITIES), 'public'),
  time('published_at', 'without it the game is not published'),
  timeOrNow('created_at'),
  optional('min_price', minorUnits, '0', { meaning: 'minimum price in US cents' }),
  optional('cover_url', url),
  optional('views_count', count, '0'),
  optional('downloads_count', count, '0'),
  optional('admins', idsOf('user'), '{}', { inOtherTable: true, meaning: 'replaces the stored list' }),
];

export const GAME = recordType({
  name: 'game',
  table: 'games',
  fields,
  unique: [
    {
      what: 'the slug',
      columns: 'user_id, slug',
      stored: 'games t ON t.user_id = s.user_id AND t.slug = s.slug',
    },
  ],
  swap: { value: 'slug', clash: 's.slug = t.slug AND s.user_id = t.user_id' },
  lists: {
    tables: ['game_admins', 'game_earnings'],
    ...adminsOf('games', fields, { in: 'game_admins', by: 'game_id' }),
  },
  deletion: {
    holds: {
      purchase: 'purchase_games p WHERE p.game_id = t.id',
      'download key': 'download_keys k WHERE k.game_id = t.id',
    },
    advice: 'make the game private instead, or delete those first',
    first: `
      SELECT c.id FROM collections c
      WHERE c.id IN (SELECT g.collection_id FROM ${each('deleted_games')} JOIN collection_games g ON g.game_id = t.id)
      ORDER BY c.id FOR NO KEY UPDATE`,
    before: [
      `WITH removed AS (
         DELETE FROM collection_games g USING ${each('removed_games')} WHERE g.game_id = t.id RETURNING g.collection_id
       )
       UPDATE collections c SET games_count = c.games_count - r.games, updated_at = now()
       FROM (SELECT collection_id, count(*) AS games FROM removed GROUP BY collection_id) r WHERE c.id = r.collection_id`,
      `DELETE FROM uploads f USING ${each('removed_games')} WHERE f.game_id = t.id`,
      `DELETE FROM builds b USING ${each('removed_games')} WHERE b.game_id = t.id`,
    ],
  },
});
