import { Injectable } from '@nestjs/common';
import type { GameUserRow } from '../games/embedded-game.dto';
import { Database } from '../platform/database/database';
import { read } from '../platform/database/statement';
import { apiError } from '../platform/errors/api-error';
import { type Build, isPublished } from '../wharf/build.entity';
import { JOIN_ACCESS, ACCESS_COLUMNS, type AccessRow, MAY_SEE, requireDownload } from './download-access';
import type { BuildRequest, DownloadBuildRequest, UpgradePathRequest } from './download.dto';
import type { Upload } from './upload.entity';
import { BUILD_FILES, type BuildRow, FILES_ROW, type FilesRow, selectBuild } from './upload.row';
import { type Downloader, invalidBuild, isFor, accessValues } from './uploads.service';

/** Joins to the build `b` the upload `f` of its channel. */
const JOIN_UPLOAD_OF_BUILD = `
   LEFT JOIN LATERAL (
     SELECT o.id, o.filename, o.traits, o.hidden FROM uploads o
     WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name ORDER BY o.id LIMIT 1) f ON true`;

const BUILD_ACCESS = `${ACCESS_COLUMNS}, coalesce(f.traits, '{}') AS traits, b.hidden OR coalesce(f.hidden, false) AS hidden`;

/** What decides who may download a build. */
interface BuildAccessRow
  extends AccessRow, Pick<Build, 'game_id' | 'state' | 'hidden'>, Pick<Upload, 'traits'> {}

interface OneBuildRow extends BuildAccessRow, BuildRow, FilesRow, GameUserRow {}

/** A build with the owner `u` of its game. */
const DOWNLOADABLE_BUILD = read<OneBuildRow>(
  'build',
  `SELECT ${BUILD_ACCESS}, ${selectBuild('f.id')}, ${FILES_ROW},
          u.id AS owner_id, u.username, u.display_name, u.cover_url AS owner_cover_url
   FROM builds b JOIN games g ON g.id = b.game_id JOIN users u ON u.id = g.user_id ${JOIN_ACCESS} ${JOIN_UPLOAD_OF_BUILD} ${BUILD_FILES}
   WHERE b.id = $build_id AND ${MAY_SEE}`,
);

/** The data that the redirect to a build's file needs. */
export interface BuildFileRow extends BuildAccessRow, Pick<Build, 'file_key' | 'file_url'> {
  /** The file name of its upload. */
  filename: string | null;
}

/** The file of the type: nulls if the build has none. */
const BUILD_FILE = read<BuildFileRow>(
  'build_file',
  `SELECT ${BUILD_ACCESS}, b.game_id, b.state, f.filename, file.file_key, file.file_url
   FROM builds b JOIN games g ON g.id = b.game_id ${JOIN_ACCESS} ${JOIN_UPLOAD_OF_BUILD}
   LEFT JOIN LATERAL (
     SELECT b.file_key, b.file_url WHERE $file_type = 'archive'
     UNION ALL SELECT o.file_key, NULL FROM build_files o WHERE o.build_id = b.id AND o.type = $file_type) file ON true
   WHERE b.id = $build_id AND ${MAY_SEE}`,
);

/** Maximum number of builds in an upgrade path, including the first one, which needs no patch. */
const MAX_BUILDS_OF_PATH = 50;

const isSeen = (b: string) => `(target.edits OR ${isPublished(b)})`;

/**
 * The parents of the target up to the build, which all have the patch that leads to the next one. Only builds that the
 * user may see, of one channel.
 */
const UPGRADE_PATH = read<AccessRow & Pick<Upload, 'traits'> & BuildRow & FilesRow>(
  'upgrade_path',
  `WITH RECURSIVE target AS (
     SELECT ${BUILD_ACCESS}, b.game_id, b.channel_name, f.id AS upload_id
     FROM builds b JOIN games g ON g.id = b.game_id ${JOIN_ACCESS} ${JOIN_UPLOAD_OF_BUILD}
     WHERE b.id = $target_build_id AND ${MAY_SEE} AND (access.edits OR f.hidden IS NOT TRUE)),
   path AS (
     SELECT b.id, b.parent_build_id, 1 AS place FROM builds b CROSS JOIN target
     WHERE b.id = $target_build_id AND ${isSeen('b')}
     UNION ALL
     SELECT p.id, p.parent_build_id, path.place + 1
     FROM path JOIN builds p ON p.id = path.parent_build_id CROSS JOIN target
     WHERE path.id > $build_id AND p.id >= $build_id AND path.place < ${MAX_BUILDS_OF_PATH} AND ${isSeen('p')}
       AND p.game_id = target.game_id AND p.channel_name = target.channel_name AND EXISTS (
         SELECT FROM build_files o WHERE o.build_id = path.id AND o.type = 'patch' AND o.file_key IS NOT NULL))
   SELECT target.edits, target.owns, target.is_free, target.held_key, target.requested_key, target.traits,
     ${selectBuild('target.upload_id')}, ${FILES_ROW}
   FROM path JOIN builds b USING (id) ${BUILD_FILES} CROSS JOIN target ORDER BY path.place DESC`,
);

@Injectable()
export class DownloadableBuilds {
  constructor(private readonly database: Database) {}

  async one({ build_id, download_key_id }: BuildRequest, credential: Downloader): Promise<OneBuildRow> {
    const values = { build_id, ...accessValues(credential, download_key_id) };
    return requireBuild(await this.database.row(DOWNLOADABLE_BUILD, values), credential, download_key_id);
  }

  async file(
    { build_id, file_type, download_key_id }: DownloadBuildRequest,
    credential: Downloader,
  ): Promise<BuildFileRow> {
    const values = { build_id, file_type, ...accessValues(credential, download_key_id) };
    return requireBuild(await this.database.row(BUILD_FILE, values), credential, download_key_id);
  }

  /** The builds whose patches lead from one build to another. */
  async upgradePath(
    { build_id, target_build_id, download_key_id }: UpgradePathRequest,
    credential: Downloader,
  ): Promise<(BuildRow & FilesRow)[]> {
    const values = { build_id, target_build_id, ...accessValues(credential, download_key_id) };
    const path = await this.database.rows(UPGRADE_PATH, values);
    const [first] = path;
    if (first?.id === build_id && isFor(credential, first.game_id)) {
      requireDownload(first, first.traits, download_key_id);
      return path;
    }
    const found = (id: number) => this.one({ build_id: id, download_key_id }, credential);
    await Promise.all([found(build_id), found(target_build_id)]);
    throw apiError(404, 'invalid upgrade path');
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
