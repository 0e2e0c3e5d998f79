import { Injectable } from '@nestjs/common';
import type { Credential } from '../auth/access/credential';
import { Database } from '../platform/database/database';
import { longRead, read, type Statement } from '../platform/database/statement';
import { apiError } from '../platform/errors/api-error';
import { invalidGame } from '../games/errors';
import type { GameUserRow } from '../games/embedded-game.dto';
import { type Build, isPublished } from '../wharf/build.entity';
import {
  ACCESS,
  ACCESS_COLUMNS,
  type AccessRow,
  MAY_SEE,
  mayDownload,
  requireDownload,
  requireOwnKey,
} from './download-access';
import type {
  BuildRequest,
  DownloadBuildRequest,
  UpgradePathRequest,
  UploadRequest,
  UploadsRequest,
} from './download.dto';
import type { Upload } from './upload.entity';
import {
  BUILD_FILES,
  BUILD_ROW,
  type BuildRow,
  FILES_ROW,
  type FilesRow,
  type FlatUploadRow,
  isListed,
  NEWEST_BUILD,
  selectBuild,
  type UploadRow,
  uploadRow,
  uploadsWith,
} from './upload.row';

const MAX_UPLOADS = 1000;
/** Uploads of a game that a small read may return. */
const MAX_SHORT = 50;
/** Files of a game on the page that lists a player's games. */
export const MAX_SHOWN = 30;
const MAX_BUILDS = 200;

const listed = (max: number, isSeen = '(access.edits OR NOT f.hidden)') =>
  `${uploadsWith(`f.game_id = g.id AND (f.channel_name IS NULL OR b.id IS NOT NULL) AND ${isSeen}`)}
   ORDER BY f.position, f.id LIMIT ${max}`;

const selectUploads = (max: number) =>
  `SELECT ${ACCESS_COLUMNS}, f.*
   FROM games g ${ACCESS} LEFT JOIN LATERAL (${listed(max)}) f ON true
   WHERE g.id = $1 AND ${MAY_SEE} ORDER BY f.position, f.id`;

/** A row of nulls: the game has no uploads. */
type ListedRow = AccessRow & (FlatUploadRow | { id: null });

export const UPLOADS = read<ListedRow>('uploads', selectUploads(MAX_SHORT + 1));
const MANY_UPLOADS = longRead<ListedRow>('many_uploads', selectUploads(MAX_UPLOADS), 'user $2');

export const UPLOADS_OF_GAMES = longRead<AccessRow & FlatUploadRow>(
  'uploads_of_games',
  `SELECT ${ACCESS_COLUMNS}, f.*
   FROM games g ${ACCESS} JOIN LATERAL (${listed(MAX_SHOWN + 1)}) f ON true
   WHERE g.id = ANY ($1::bigint[]) AND ${MAY_SEE} ORDER BY f.position, f.id`,
  'user $2',
);

export const UPLOAD = read<AccessRow & FlatUploadRow>(
  'upload',
  `SELECT ${ACCESS_COLUMNS}, f.*
   FROM (${uploadsWith('f.id = $1')}) f JOIN games g ON g.id = f.game_id ${ACCESS} WHERE ${MAY_SEE}`,
);

/** The data that the redirect to an upload's file needs. */
interface UploadFileRow extends Pick<
  UploadRow,
  'game_id' | 'traits' | 'filename' | 'external_url' | 'file_key' | 'file_url' | 'hidden'
> {
  is_listed: boolean;
}

export const UPLOAD_FILE = read<AccessRow & UploadFileRow>(
  'upload_file',
  `SELECT ${ACCESS_COLUMNS}, f.game_id, f.traits, f.filename, f.external_url, f.hidden, coalesce(f.file_key, b.file_key) AS file_key,
          coalesce(f.file_url, b.file_url) AS file_url, f.channel_name IS NULL OR b.id IS NOT NULL AS is_listed
   FROM uploads f ${NEWEST_BUILD} JOIN games g ON g.id = f.game_id ${ACCESS} WHERE f.id = $1 AND ${MAY_SEE}`,
);

/** Anyone with the text of a live key of the game can download its files: the key $1. */
const UPLOADS_OF_KEY = longRead<FlatUploadRow>(
  'uploads_of_key',
  `SELECT f.* FROM download_keys dk JOIN games g ON g.id = dk.game_id JOIN LATERAL (${listed(MAX_UPLOADS, 'NOT f.hidden')}) f ON true
   WHERE dk.key = $1 AND dk.revoked_at IS NULL ORDER BY f.position, f.id`,
);

export const FILE_OF_KEY = read<UploadFileRow>(
  'file_of_key',
  `SELECT f.game_id, f.traits, f.filename, f.external_url, f.hidden, coalesce(f.file_key, b.file_key) AS file_key,
          coalesce(f.file_url, b.file_url) AS file_url, f.channel_name IS NULL OR b.id IS NOT NULL AS is_listed
   FROM download_keys dk JOIN uploads f ON f.game_id = dk.game_id AND f.id = $2 AND NOT f.hidden ${NEWEST_BUILD}
   WHERE dk.key = $1 AND dk.revoked_at IS NULL`,
);

const CHANNEL_BUILDS = longRead<BuildRow>(
  'channel_builds',
  `SELECT ${BUILD_ROW} FROM builds b
   WHERE b.game_id = $1 AND b.channel_name = $2 AND ($3 OR ${isPublished('b')}) ORDER BY b.id DESC LIMIT ${MAX_BUILDS}`,
);

/** Joins to the build `b` the upload `f` of its channel. */
const UPLOAD_OF_BUILD = `
   LEFT JOIN LATERAL (
     SELECT o.id, o.filename, o.traits, o.hidden FROM uploads o
     WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name ORDER BY o.id LIMIT 1) f ON true`;

const BUILD_ACCESS = `${ACCESS_COLUMNS}, coalesce(f.traits, '{}') AS traits, b.hidden OR coalesce(f.hidden, false) AS hidden`;

/** What decides who may download a build. */
interface BuildAccessRow
  extends AccessRow, Pick<Build, 'game_id' | 'state' | 'hidden'>, Pick<Upload, 'traits'> {}

interface OneBuildRow extends BuildAccessRow, BuildRow, FilesRow, GameUserRow {}

/** A build with the owner `u` of its game. */
export const BUILD = read<OneBuildRow>(
  'build',
  `SELECT ${BUILD_ACCESS}, ${selectBuild('f.id')}, ${FILES_ROW},
          u.id AS owner_id, u.username, u.display_name, u.cover_url AS owner_cover_url
   FROM builds b JOIN games g ON g.id = b.game_id JOIN users u ON u.id = g.user_id ${ACCESS} ${UPLOAD_OF_BUILD} ${BUILD_FILES}
   WHERE b.id = $1 AND ${MAY_SEE}`,
);

/** The data that the redirect to a build's file needs. */
export interface BuildFileRow extends BuildAccessRow, Pick<Build, 'file_key' | 'file_url'> {
  /** The file name of its upload. */
  filename: string | null;
}

/** The file of type $4: nulls if the build has none. */
export const BUILD_FILE = read<BuildFileRow>(
  'build_file',
  `SELECT ${BUILD_ACCESS}, b.game_id, b.state, f.filename, file.file_key, file.file_url
   FROM builds b JOIN games g ON g.id = b.game_id ${ACCESS} ${UPLOAD_OF_BUILD}
   LEFT JOIN LATERAL (
     SELECT b.file_key, b.file_url WHERE $4 = 'archive'
     UNION ALL SELECT o.file_key, NULL FROM build_files o WHERE o.build_id = b.id AND o.type = $4) file ON true
   WHERE b.id = $1 AND ${MAY_SEE}`,
);

/** Builds of a path, with the one that has no patch for it. */
const MAX_PATH = 50;

const isSeen = (b: string) => `(target.edits OR ${isPublished(b)})`;

/**
 * The parents of the build $1 up to the build $4, which all have the patch that leads to the next one. Only builds that
 * the user may see, of one channel.
 */
export const UPGRADE_PATH = read<AccessRow & Pick<Upload, 'traits'> & BuildRow & FilesRow>(
  'upgrade_path',
  `WITH RECURSIVE target AS (
     SELECT ${BUILD_ACCESS}, b.game_id, b.channel_name, f.id AS upload_id
     FROM builds b JOIN games g ON g.id = b.game_id ${ACCESS} ${UPLOAD_OF_BUILD}
     WHERE b.id = $1 AND ${MAY_SEE} AND (access.edits OR f.hidden IS NOT TRUE)),
   path AS (
     SELECT b.id, b.parent_build_id, 1 AS place FROM builds b CROSS JOIN target WHERE b.id = $1 AND ${isSeen('b')}
     UNION ALL
     SELECT p.id, p.parent_build_id, path.place + 1
     FROM path JOIN builds p ON p.id = path.parent_build_id CROSS JOIN target
     WHERE path.id > $4 AND p.id >= $4 AND path.place < ${MAX_PATH} AND ${isSeen('p')}
       AND p.game_id = target.game_id AND p.channel_name = target.channel_name AND EXISTS (
         SELECT FROM build_files o WHERE o.build_id = path.id AND o.type = 'patch' AND o.file_key IS NOT NULL))
   SELECT target.edits, target.owns, target.is_free, target.held_key, target.requested_key, target.traits,
     ${selectBuild('target.upload_id')}, ${FILES_ROW}
   FROM path JOIN builds b USING (id) ${BUILD_FILES} CROSS JOIN target ORDER BY path.place DESC`,
);

const VISIBLE_GAME = read<AccessRow>(
  'game_to_download',
  `SELECT ${ACCESS_COLUMNS} FROM games g ${ACCESS} WHERE g.id = $1 AND ${MAY_SEE}`,
);

/** The user of a credential, or of a session. */
export type Downloader = Pick<Credential, 'user_id' | 'game_id'>;

export const invalidUpload = () => apiError(404, 'invalid upload');
export const invalidBuild = () => apiError(404, 'invalid build');
export const invalidBuildFile = () => apiError(404, 'invalid build file');

@Injectable()
export class UploadsService {
  constructor(private readonly database: Database) {}

  /** The uploads of a game that the user may download, by position. */
  async list({ game_id, download_key_id }: UploadsRequest, credential: Downloader): Promise<UploadRow[]> {
    const values = parameters(game_id, credential, download_key_id);
    let rows = await this.database.rows(UPLOADS, values);
    if (rows.length > MAX_SHORT) rows = await this.database.rows(MANY_UPLOADS, values);
    if (rows.length === 0 || !isFor(credential, game_id)) throw invalidGame();
    return rows.flatMap((row) =>
      row.id !== null && mayDownload(row, row.traits, download_key_id) ? uploadRow(row) : [],
    );
  }

  /** The first uploads of each game that the user can download: one more than MAX_SHOWN if there are more. */
  async ofGames(game_ids: number[], user: Downloader): Promise<UploadRow[]> {
    const rows = await this.database.rows(UPLOADS_OF_GAMES, parameters(game_ids, user, undefined));
    return rows.filter((row) => mayDownload(row, row.traits, undefined)).map(uploadRow);
  }

  /** All uploads of the game of a live download key, by position. */
  async ofKey(key: string): Promise<UploadRow[]> {
    return (await this.database.rows(UPLOADS_OF_KEY, [key])).map(uploadRow);
  }

  async fileOfKey(key: string, upload_id: number): Promise<UploadFileRow> {
    const row = await this.database.row(FILE_OF_KEY, [key, upload_id]);
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
    return this.database.rows(CHANNEL_BUILDS, [row.game_id, row.channel_name, row.edits]);
  }

  async build({ build_id, download_key_id }: BuildRequest, credential: Downloader): Promise<OneBuildRow> {
    const row = await this.database.row(BUILD, parameters(build_id, credential, download_key_id));
    return requireBuild(row, credential, download_key_id);
  }

  async buildFile(
    { build_id, file_type, download_key_id }: DownloadBuildRequest,
    credential: Downloader,
  ): Promise<BuildFileRow> {
    const values = [...parameters(build_id, credential, download_key_id), file_type];
    return requireBuild(await this.database.row(BUILD_FILE, values), credential, download_key_id);
  }

  /** The builds whose patches lead from one build to another. */
  async upgradePath(
    { build_id, target_build_id, download_key_id }: UpgradePathRequest,
    credential: Downloader,
  ): Promise<(BuildRow & FilesRow)[]> {
    const values = [...parameters(target_build_id, credential, download_key_id), build_id];
    const path = await this.database.rows(UPGRADE_PATH, values);
    const [first] = path;
    if (first?.id === build_id && isFor(credential, first.game_id)) {
      requireDownload(first, first.traits, download_key_id);
      return path;
    }
    const one = (id: number) => this.build({ build_id: id, download_key_id }, credential);
    await Promise.all([one(build_id), one(target_build_id)]);
    throw apiError(404, 'invalid upgrade path');
  }

  /** Throws unless the user can view or owns the game, and has the download key if there is one. */
  async requireGame({ game_id, download_key_id }: UploadsRequest, credential: Downloader): Promise<void> {
    const found = await this.database.row(VISIBLE_GAME, parameters(game_id, credential, download_key_id));
    if (!found || !isFor(credential, game_id)) throw invalidGame();
    requireOwnKey(found, download_key_id);
  }

  private async find<Row extends AccessRow & Pick<UploadRow, 'game_id' | 'traits' | 'hidden'>>(
    statement: Statement<Row>,
    { upload_id, download_key_id }: UploadRequest,
    credential: Downloader,
    isThere: (row: Row) => boolean,
  ): Promise<Row> {
    const row = await this.database.row(statement, parameters(upload_id, credential, download_key_id));
    // This comes before the permission: a user should not buy the game for an upload that has nothing to download.
    const isSeen = row !== undefined && (row.edits || !row.hidden);
    if (!isSeen || !isFor(credential, row.game_id) || !isThere(row)) throw invalidUpload();
    requireDownload(row, row.traits, download_key_id);
    return row;
  }
}

function requireBuild<Row extends BuildAccessRow>(
  row: Row | undefined,
  credential: Downloader,
  download_key_id: number | undefined,
): Row {
  if (!row || !isFor(credential, row.game_id)) throw invalidBuild();
  if ((row.state !== 'completed' || row.hidden) && !row.edits) throw invalidBuild();
  requireDownload(row, row.traits, download_key_id);
  return row;
}

const parameters = (id: number | number[], { user_id }: Downloader, download_key_id: number | undefined) => [
  id,
  user_id,
  download_key_id ?? null,
];

/** A game's JWT, even if its scopes include this one, is valid for that game only. */
export const isFor = ({ game_id: own }: Downloader, game_id: number) => own === undefined || own === game_id;
