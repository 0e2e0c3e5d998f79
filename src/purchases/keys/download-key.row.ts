import type { UserRow } from '../../users/users.service';
import type { DownloadKey } from './download-key.entity';

export const DOWNLOAD_KEY_COLUMNS = [
  'created_at',
  'downloads',
  'key',
] as const satisfies (keyof DownloadKey)[];
export type DownloadKeyColumns = Pick<DownloadKey, (typeof DOWNLOAD_KEY_COLUMNS)[number]>;

export interface DownloadKeyRow extends DownloadKeyColumns, Pick<DownloadKey, 'id' | 'game_id'> {
  /** Null: the key belongs to no account. */
  owner: UserRow | null;
}

export type CreatedKeyRow = Pick<DownloadKey, 'id' | 'game_id' | 'label' | keyof DownloadKeyColumns>;
