import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database';
import { prefixColumns, read, statement } from '../../platform/database/statement';
import { invalidGame } from '../../games/errors';
import { keysFoundBy, selectOwnedKeys, newestOfGame, selectKeyOwner } from '../ownership/key-owners';
import { canEdit } from '../../games/visibility';
import { apiError } from '../../platform/errors/api-error';
import { USER_COLUMNS, type UserRow } from '../../users/users.service';
import type { DownloadKeyRequest } from './download-key.dto';
import { type DownloadKeyColumns, DOWNLOAD_KEY_COLUMNS, type DownloadKeyRow } from './download-key.row';

interface Row extends DownloadKeyColumns, Record<keyof UserRow, unknown> {
  /** Null: no key was found. */
  key_id: number | null;
}

/** No row: the user can't edit the game. `chosen` selects rows of download_keys. */
const lookup = (name: string, chosen: string) =>
  read<Row>(
    name,
    `SELECT dk.id AS key_id, ${prefixColumns('dk', DOWNLOAD_KEY_COLUMNS)}, ${prefixColumns('u', USER_COLUMNS)}
     FROM games g
     LEFT JOIN LATERAL (${chosen}) dk ON true
     LEFT JOIN users u ON u.id = ${selectKeyOwner('dk')}
     WHERE g.id = $game_id AND ${canEdit('g', '$editor_id')}`,
  );

const selectNewest = (keys: string) => `
  SELECT dk.* FROM (SELECT id FROM (${keys}) found ORDER BY created_at DESC, id DESC LIMIT 1) newest
  JOIN download_keys dk ON dk.id = newest.id`;

export const KEY_BY_KEY = lookup(
  'download_key_by_key',
  'SELECT dk.* FROM download_keys dk WHERE dk.key = $download_key AND dk.game_id = g.id AND dk.revoked_at IS NULL',
);
export const KEY_BY_USER = lookup(
  'download_key_by_user',
  selectNewest(selectOwnedKeys('$user_id', newestOfGame('g'))),
);
export const KEY_BY_EMAIL = lookup(
  'download_key_by_email',
  selectNewest(keysFoundBy('$email', newestOfGame('g'))),
);

/** Locks in the order of the IDs, because replicas count concurrently. */
export const ADD_KEY_DOWNLOADS = statement(
  'add_key_downloads',
  `WITH locked AS MATERIALIZED (
     SELECT dk.id, added.downloads FROM unnest($ids::bigint[], $counts::bigint[]) AS added (id, downloads)
     JOIN download_keys dk ON dk.id = added.id ORDER BY dk.id FOR NO KEY UPDATE OF dk)
   UPDATE download_keys dk SET downloads = dk.downloads + l.downloads, last_download_at = now() FROM locked l WHERE dk.id = l.id`,
);

@Injectable()
export class DownloadKeysService {
  constructor(private readonly database: Database) {}

  /** The newest matching key; only for users who can edit the game. */
  async find(
    { game_id, download_key, user_id, email }: DownloadKeyRequest,
    editor_id: number,
  ): Promise<DownloadKeyRow> {
    const row =
      download_key !== undefined
        ? await this.database.row(KEY_BY_KEY, { game_id, editor_id, download_key })
        : user_id !== undefined
          ? await this.database.row(KEY_BY_USER, { game_id, editor_id, user_id })
          : await this.database.row(KEY_BY_EMAIL, { game_id, editor_id, email });
    if (!row) throw invalidGame();
    const { key_id, created_at, downloads, key, ...user } = row;
    if (key_id === null)
      throw apiError(404, download_key === undefined ? 'no download key found' : 'invalid download key');
    const owner = user.id === null ? null : (user as UserRow);
    return { id: key_id, created_at, downloads, key, game_id, owner };
  }
}
