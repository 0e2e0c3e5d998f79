import {
  FILENAME,
  MAX_DISPLAY_NAME,
  MAX_FILENAME_CHARACTERS,
  UPLOAD_TRAITS,
  UPLOAD_TYPES,
} from '../../../uploads/upload.entity';
import {
  file,
  FILE_COLUMNS,
  httpsUrl,
  idFor,
  integer,
  NO_FILE,
  NULL,
  oneOf,
  ownId,
  text,
  texts,
} from '../value-types';
import { hasField, optional, required, timeOrNow } from './fields';
import { recordType } from './record-type';

const MAX_POSITION = 2 ** 31 - 1;

const filename = text({
  max: MAX_FILENAME_CHARACTERS,
  pattern: FILENAME,
  form: 'be a file name without /, \\ or control characters',
});

const fields = [
  required('id', ownId),
  required('game_id', idFor('game')),
  required('filename', filename, { meaning: 'file name that players see' }),
  optional('display_name', text({ max: MAX_DISPLAY_NAME })),
  // `type` is the record type, so the upload's type has another name.
  optional('upload_type', oneOf(UPLOAD_TYPES), 'default', {
    columns: [{ name: 'type', sql: 'text' }],
    meaning: '`type` in the API',
  }),
  optional('traits', texts({ max: 100, known: UPLOAD_TRAITS }), '{}', {
    meaning: 'platforms, and `demo` for a file that everyone can download',
  }),
  optional('position', integer(0, MAX_POSITION), '0', { meaning: 'position in the list of uploads' }),
  optional('channel_name', text({ max: 200 }), NULL, {
    meaning: 'channel; players download its newest completed build that has a file',
  }),
  optional('file', file, NO_FILE, { columns: FILE_COLUMNS, meaning: 'file in the bucket or at a URL' }),
  optional('external_url', httpsUrl, NULL, { meaning: 'page of another store or site' }),
  timeOrNow('created_at'),
  timeOrNow('updated_at'),
];

const SOURCES = { file: 'size', channel_name: 'channel_name', external_url: 'external_url' };
const sources = Object.entries(SOURCES).map(
  ([field, column]) => `CASE WHEN ${hasField(fields, field)} THEN s.${column} ELSE t.${column} END`,
);

export const UPLOAD_RECORD = recordType({
  name: 'upload',
  table: 'uploads',
  fields,
  unique: [
    `SELECT s.line, concat('upload', ' ' || s.id) || ': exactly one of ${Object.keys(SOURCES).join(', ')} is required' AS text
     FROM import_uploads s LEFT JOIN uploads t ON t.id = s.id WHERE num_nonnulls(${sources.join(', ')}) <> 1`,
  ],
});
