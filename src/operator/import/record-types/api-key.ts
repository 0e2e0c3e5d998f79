import type { BinaryLike } from 'node:crypto';
import { hashApiKey, keyHint, mayBeApiKey } from '../../../auth/keys/api-key';
import { hasFormOfJwt } from '../../../auth/access/credential';
import { fit, idFor, type ValueType, NULL, scopes, text } from '../value-types';
import { optional, required, time, timeOrNow } from './fields';
import { recordType } from './record-type';
import type { TemporaryTable } from '../temporary-tables';

const visible = text({ max: 512 });

/** Hashes of the stream's API keys under previous peppers, under which they may be stored. */
export const PREVIOUS_HASHES: TemporaryTable = {
  name: 'import_previous_hashes',
  columns: [
    { name: 'key_hash', sql: 'bytea' },
    { name: 'previous_hash', sql: 'bytea' },
  ],
};

const encodeHash = (key: string, pepper: BinaryLike) => `\\\\x${hashApiKey(key, pepper).toString('hex')}`;

const hashedKey = (pepper: Buffer): ValueType => ({
  sql: 'bytea',
  allows: 'text of at most 512 characters without whitespace, not in the form of a JWT',
  encode(value, reject) {
    const key = fit(value, { max: 512, pattern: /^\S+$/, form: 'not contain whitespace' }, reject);
    if (key === undefined) return '';
    if (hasFormOfJwt(key)) return reject('must not have the form of a JWT');
    if (!mayBeApiKey(key)) return reject('looks like a key of this service, but has a wrong checksum');
    return [encodeHash(key, pepper), visible.encode(keyHint(key), () => '')];
  },
});

export const apiKeyType = (pepper: Buffer, previousPeppers: string[]) =>
  recordType({
    name: 'api_key',
    table: 'api_keys',
    isDeletedByService: true,
    previousHashes: (key) => previousPeppers.map((previous) => encodeHash(key, previous)),
    fields: [
      required('key', hashedKey(pepper), {
        columns: [
          { name: 'key_hash', sql: 'bytea' },
          { name: 'hint', sql: 'text' },
        ],
        meaning: 'plain text; stored as a hash',
      }),
      required('user_id', idFor('user')),
      optional('scopes', scopes, NULL, { meaning: 'scopes of the key; without them it has all' }),
      optional('label', text({ max: 200 })),
      timeOrNow('created_at'),
      time('revoked_at'),
    ],
  });
