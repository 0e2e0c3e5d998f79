import { GAME_CLASSIFICATIONS, GAME_TRAITS, GAME_TYPES, GAME_VISIBILITIES } from '../../../games/game.entity';
import { DEPENDENTS, deleteParts, lockBeforeDeletion } from '../../../games/editing/game-deletion';
import { MAX_SHORT_TEXT_CHARACTERS, MAX_GAME_TITLE_CHARACTERS } from '../../../games/editing/game-edits.dto';
import { MAX_SLUG_CHARACTERS, SLUG } from '../../../games/slug';
import { idFor, idsFor, integer, minorUnits, oneOf, ownId, text, texts, title, url } from '../value-types';
import { adminTable } from './admins';
import { optional, required, time, timeOrNow } from './fields';
import { each, recordType } from './record-type';

export const slug = text({
  max: MAX_SLUG_CHARACTERS,
  pattern: SLUG,
  form: 'consist of letters, digits, _, . and -',
});
const count = integer(0, Number.MAX_SAFE_INTEGER);

const fields = [
  required('id', ownId),
  required('user_id', idFor('user'), { meaning: 'owner' }),
  required('slug', slug),
  required('title', title(MAX_GAME_TITLE_CHARACTERS)),
  optional('short_text', text({ max: MAX_SHORT_TEXT_CHARACTERS })),
  // `type` is the record type, so the game's type has another name.
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
  optional('admins', idsFor('user'), '{}', { inOtherTable: true, meaning: 'replaces the stored list' }),
];

export const GAME_RECORD = recordType({
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
  childTables: {
    tables: ['game_admins', 'game_earnings'],
    ...adminTable('games', fields, { in: 'game_admins', by: 'game_id' }),
  },
  deletion: {
    holds: DEPENDENTS,
    advice: 'make the game private instead, or delete those first',
    first: lockBeforeDeletion(each('deleted_games')),
    before: deleteParts(each('removed_games')),
  },
});
