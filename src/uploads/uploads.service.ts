import { Injectable } from '@nestjs/common';
import type { Credential } from '../auth/access/credential';
import { Database } from '../platform/database/database';
import { longRead, read, type Statement } from '../platform/database/statement';
import { apiError } from '../platform/errors/api-error';
import { invalidGame } from '../games/errors';
import { isPublished } from '../wharf/build.entity';
import {
  JOIN_ACCESS,
  ACCESS_COLUMNS,
  type AccessRow,
  MAY_SEE,
  mayDownload,
  requireDownload,
  requireOwnKey,
} from './download-access';
import type { UploadRequest, UploadsRequest } from './download.dto';
import {
  BUILD_ROW,
  type BuildRow,
  type FlatUploadRow,
  isListed,
  NEWEST_BUILD,
  type UploadRow,
  uploadRow,
  uploadsWith,
} from './upload.row';

const MAX_UPLOADS = 1000;
/** Maximum number of uploads of a game that a small read returns. */
const MAX_SHORT = 50;
/** Maximum number of files of a game on the page that lists a player's games. */
export const MAX_SHOWN_FILES = 30;
const MAX_BUILDS = 200;

const listed = (max: number, isSeen = '(access.edits OR NOT f.hidden)') =>
  `${uploadsWith(`f.game_id = g.id AND (f.channel_name IS NULL OR b.id IS NOT NULL) AND ${isSeen}`)}
   ORDER BY f.position, f.id LIMIT ${max}`;

const selectUploads = (max: number) =>
  `SELECT ${ACCESS_COLUMNS}, f.*
   FROM games g ${JOIN_ACCESS} LEFT JOIN LATERAL (${listed(max)}) f ON true
   WHERE g.id = $game_id AND ${MAY_SEE} ORDER BY f.position, f.id`;

/** A row of nulls: the game has no uploads. */
type ListedRow = AccessRow & (FlatUploadRow | { id: null });

const UPLOADS = read<ListedRow>('uploads', selectUploads(MAX_SHORT + 1));
const MANY_UPLOADS = longRead<ListedRow>('many_uploads', selectUploads(MAX_UPLOADS), 'user $user_id');

const UPLOADS_OF_GAMES = longRead<AccessRow & FlatUploadRow>(
  'uploads_of_games',
  `SELECT ${ACCESS_COLUMNS}, f.*
   FROM games g ${JOIN_ACCESS} JOIN LATERAL (${listed(MAX_SHOWN_FILES + 1)}) f ON true
   WHERE g.id = ANY ($game_ids::bigint[]) AND ${MAY_SEE} ORDER BY f.position, f.id`,
  'user $user_id',
);

const UPLOAD = read<AccessRow & FlatUploadRow>(
  'upload',
  `SELECT ${ACCESS_COLUMNS}, f.*
   FROM (${uploadsWith('f.id = $upload_id')}) f JOIN games g ON g.id = f.game_id ${JOIN_ACCESS} WHERE ${MAY_SEE}`,
);

/** The data that the redirect to an upload's file needs. */
interface UploadFileRow extends Pick<
  UploadRow,
  'game_id' | 'traits' | 'filename' | 'external_url' | 'file_key' | 'file_url' | 'hidden'
> {
  is_listed: boolean;
}

const UPLOAD_FILE = read<AccessRow & UploadFileRow>(
  'upload_file',
  `SELECT ${ACCESS_COLUMNS}, f.game_id, f.traits, f.filename, f.external_url, f.hidden, coalesce(f.file_key, b.file_key) AS file_key,
          coalesce(f.file_url, b.file_url) AS file_url, f.channel_name IS NULL OR b.id IS NOT NULL AS is_listed
   FROM uploads f ${NEWEST_BUILD} JOIN games g ON g.id = f.game_id ${JOIN_ACCESS} WHERE f.id = $upload_id AND ${MAY_SEE}`,
);

/** Anyone with the text of a live key of the game can download its files. */
const UPLOADS_OF_KEY = longRead<FlatUploadRow>(
  'uploads_of_key',
  `SELECT f.* FROM download_keys dk JOIN games g ON g.id = dk.game_id JOIN LATERAL (${listed(MAX_UPLOADS, 'NOT f.hidden')}) f ON true
   WHERE dk.key = $key AND dk.revoked_at IS NULL ORDER BY f.position, f.id`,
);

const FILE_OF_KEY = read<UploadFileRow>(
  'file_of_key',
  `SELECT f.game_id, f.traits, f.filename, f.external_url, f.hidden, coalesce(f.file_key, b.file_key) AS file_key,
          coalesce(f.file_url, b.file_url) AS file_url, f.channel_name IS NULL OR b.id IS NOT NULL AS is_listed
   FROM download_keys dk JOIN uploads f ON f.game_id = dk.game_id AND f.id = $upload_id AND NOT f.hidden ${NEWEST_BUILD}
   WHERE dk.key = $key AND dk.revoked_at IS NULL`,
);

const CHANNEL_BUILDS = longRead<BuildRow>(
  'channel_builds',
  `SELECT ${BUILD_ROW} FROM builds b
   WHERE b.game_id = $game_id AND b.channel_name = $channel_name AND ($edits OR ${isPublished('b')}) ORDER BY b.id DESC LIMIT ${MAX_BUILDS}`,
);

const VISIBLE_GAME = read<AccessRow>(
  'game_to_download',
  `SELECT ${ACCESS_COLUMNS} FROM games g ${JOIN_ACCESS} WHERE g.id = $game_id AND ${MAY_SEE}`,
);

/** The user of a credential, or of a session. */
export type Downloader = Pick<Credential, 'user_id' | 'game_id'>;

export const invalidUpload = () => apiError(404, 'invalid upload');
export const invalidBuild = () => apiError(404, 'invalid build');
export const invalidBuildFile = () => apiError(404, 'invalid build file');

/** Deletes the uploads of the games `t` of a FROM item. */
export const deleteUploads = (games: string) => `DELETE FROM uploads f USING ${games} WHERE f.game_id = t.id`;

@Injectable()
export class UploadsService {
  constructor(private readonly database: Database) {}

  /** The uploads of a game that the user may download, by position. */
  async list({ game_id, download_key_id }: UploadsRequest, credential: Downloader): Promise<UploadRow[]> {
    const values = { game_id, ...accessValues(credential, download_key_id) };
    let rows = await this.database.rows(UPLOADS, values);
    if (rows.length > MAX_SHORT) rows = await this.database.rows(MANY_UPLOADS, values);
    if (rows.length === 0 || !isFor(credential, game_id)) throw invalidGame();
    return rows.flatMap((row) =>
      row.id !== null && mayDownload(row, row.traits, download_key_id) ? uploadRow(row) : [],
    );
  }

  /** The first uploads of each game that the user can download: one more than MAX_SHOWN_FILES if there are more. */
  async ofGames(game_ids: number[], user: Downloader): Promise<UploadRow[]> {
    const values = { game_ids, ...accessValues(user) };
    const rows = await this.database.rows(UPLOADS_OF_GAMES, values);
    return rows.filter((row) => mayDownload(row, row.traits, undefined)).map(uploadRow);
  }

  /** All uploads of the game of a live download key, by position. */
  async ofKey(key: string): Promise<UploadRow[]> {
    return (await this.database.rows(UPLOADS_OF_KEY, { key })).map(uploadRow);
  }

  async fileOfKey(key: string, upload_id: number): Promise<UploadFileRow> {
    const row = await this.database.row(FILE_OF_KEY, { key, upload_id });
    if (!row?.is_listed) throw invalidUpload();
    return row;
  }

  async one(request: UploadRequest, credential: Downloader): Promise<UploadRow> {
    return uploadRow(await this.find(UPLOAD, request, credential, isListed));
  }

  async file(request: UploadRequest, credential: Downloader): Promise<UploadFileRow & AccessRow> {
    return this.find(UPLOAD_FILE, request, credential, ({ is_listed }) => is_listed);
  }

  /** The builds of an upload's channel: completed ones, and all of them for editors of the game. */
  async builds(request: UploadRequest, credential: Downloader): Promise<BuildRow[]> {
    const row = await this.find(UPLOAD, request, credential, (one) => isListed(one) || one.edits);
    if (row.channel_name === null) return [];
    return this.database.rows(CHANNEL_BUILDS, {
      game_id: row.game_id,
      channel_name: row.channel_name,
      edits: row.edits,
    });
  }

  /** Throws unless the user can view or owns the game, and has the download key if there is one. */
  async requireGame({ game_id, download_key_id }: UploadsRequest, credential: Downloader): Promise<void> {
    const values = { game_id, ...accessValues(credential, download_key_id) };
    const found = await this.database.row(VISIBLE_GAME, values);
    if (!found || !isFor(credential, game_id)) throw invalidGame();
    requireOwnKey(found, download_key_id);
  }

  private async find<Row extends AccessRow & Pick<UploadRow, 'game_id' | 'traits' | 'hidden'>>(
    statement: Statement<Row>,
    { upload_id, download_key_id }: UploadRequest,
    credential: Downloader,
    isThere: (row: Row) => boolean,
  ): Promise<Row> {
    const values = { upload_id, ...accessValues(credential, download_key_id) };
    const row = await this.database.row(statement, values);
    // Visibility is checked before the permission: a user should not buy the game for an upload that has
    // nothing to download.
    const isSeen = row !== undefined && (row.edits || !row.hidden);
    if (!isSeen || !isFor(credential, row.game_id) || !isThere(row)) throw invalidUpload();
    requireDownload(row, row.traits, download_key_id);
    return row;
  }
}

/** The parameters of JOIN_ACCESS. */
export const accessValues = ({ user_id }: Downloader, download_key_id?: number) => ({
  user_id,
  download_key_id: download_key_id ?? null,
});

/** A game's JWT, even if its scopes include this one, is valid for that game only. */
export const isFor = ({ game_id: own }: Downloader, game_id: number) => own === undefined || own === game_id;
