import { amount, email, ownId, idFor, NULL, text } from '../value-types';
import { optional, required, time, timeOrNow } from './fields';
import { recordType } from './record-type';

export const DOWNLOAD_KEY_RECORD = recordType({
  name: 'download_key',
  table: 'download_keys',
  fields: [
    required('id', ownId),
    required('key', text({ max: 512 })),
    required('game_id', idFor('game'), { meaning: 'game that the key gives access to' }),
    optional('purchase_id', idFor('purchase'), NULL, {
      meaning: 'purchase that the key belongs to, even if it is of another game',
    }),
    optional('email', text(email)),
    optional('user_id', idFor('user'), NULL, { meaning: 'account that claimed the key' }),
    timeOrNow('created_at'),
    optional('downloads', amount, '0', { meaning: 'number of downloads' }),
    time('revoked_at'),
    optional('label', text({ max: 100 }), NULL, { meaning: "the seller's note" }),
  ],
  hasUpdatedAt: true,
  unique: [{ what: 'the key', columns: 'key', stored: 'download_keys t ON t.key = s.key' }],
  createdByService: {
    differs: 's.key <> t.key OR s.game_id <> t.game_id',
    as: 'as another key or for another game',
  },
  swap: { value: 'key', clash: 's.key = t.key' },
});
