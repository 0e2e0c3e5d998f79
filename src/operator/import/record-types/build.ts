import { BUILD_STATES } from '../../../wharf/build.entity';
import { file, FILE_COLUMNS, idFor, NO_FILE, oneOf, ownId, text } from '../value-types';
import { optional, required, timeOrNow } from './fields';
import { recordType } from './record-type';

export const BUILD_RECORD = recordType({
  name: 'build',
  table: 'builds',
  fields: [
    required('id', ownId, { meaning: 'the highest ID of a channel is the newest build' }),
    required('game_id', idFor('game')),
    required('channel_name', text({ max: 200 })),
    optional('user_version', text({ max: 200 })),
    optional('state', oneOf(BUILD_STATES), 'completed'),
    timeOrNow('created_at'),
    optional('file', file, NO_FILE, {
      columns: FILE_COLUMNS,
      meaning: 'file that players of the channel download',
    }),
  ],
  hasUpdatedAt: true,
});
