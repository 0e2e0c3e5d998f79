import { type Build, isPublished } from '../wharf/build.entity';
import type { BuildFile } from '../wharf/build-file.entity';
import type { Upload } from './upload.entity';

export interface BuildRow extends Pick<Build, 'id' | 'game_id' | 'user_version' | 'state' | 'created_at'> {
  upload_id: number | null;
  parent_build_id: number;
  version: number;
  updated_at: string;
}

/** An upload with its file: of an upload for a channel, the file of the newest build. */
export interface UploadRow extends Omit<Upload, 'game'> {
  build: BuildRow | null;
}

export interface ChannelRow {
  name: string;
  upload: UploadRow;
  head: BuildRow | null;
  pending: BuildRow | null;
}

/** An UploadRow as a statement returns it. */
export type FlatUploadRow = Omit<UploadRow, 'build'> & {
  [Name in keyof BuildRow as `build_${Name}`]: BuildRow[Name] | null;
};

const UPLOAD_COLUMNS = [
  'id',
  'game_id',
  'filename',
  'display_name',
  'type',
  'traits',
  'position',
  'channel_name',
  'external_url',
  'hidden',
  'created_at',
  'updated_at',
] as const satisfies (keyof Upload)[];
const FILE_COLUMNS = ['file_key', 'file_url', 'size', 'md5_hash'] as const satisfies (keyof Upload &
  keyof Build)[];

const BUILD: Record<keyof BuildRow, string> = {
  id: 'b.id',
  upload_id: `(SELECT min(o.id) FROM uploads o WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name)`,
  game_id: 'b.game_id',
  parent_build_id: `coalesce(b.parent_build_id, (SELECT max(o.id) FROM builds o
    WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name AND o.id < b.id), -1)`,
  version: 'b.version',
  user_version: 'b.user_version',
  state: 'b.state',
  created_at: 'b.created_at',
  updated_at: 'coalesce(b.updated_at, b.created_at)',
};

const named = (columns: Record<string, string>, prefix = '') =>
  Object.entries(columns)
    .map(([name, sql]) => `${sql} AS ${prefix}${name}`)
    .join(', ');

/** The select list of a BuildRow for the build `b`. */
export const BUILD_ROW = named(BUILD);

/** The archive of a build, and its stored patch and signature. */
export interface FilesRow {
  size: number | null;
  files: { id: number; type: BuildFile['type']; size: number; file_key: string }[];
}

/** The select list of a FilesRow for the build `b`. */
export const FILES_ROW = `b.size,
  (SELECT coalesce(json_agg(json_build_object('id', o.id, 'type', o.type, 'size', o.size, 'file_key', o.file_key)
            ORDER BY o.type), '[]')
   FROM build_files o WHERE o.build_id = b.id AND o.file_key IS NOT NULL) AS files`;

// CASE, so that nothing is looked up for an upload without a channel.
const ofBuild = (sql: string) => (sql.startsWith('b.') ? sql : `CASE WHEN b.id IS NOT NULL THEN ${sql} END`);

/** Joins the newest build `b` with a file to an upload `f` of a channel. */
export const NEWEST_BUILD = `
  LEFT JOIN LATERAL (
    SELECT * FROM builds o
    WHERE o.game_id = f.game_id AND o.channel_name = f.channel_name AND ${isPublished('o')} AND o.size IS NOT NULL
    ORDER BY o.id DESC LIMIT 1) b ON true`;

/** Uploads `f` that meet the condition with their newest builds `b`, as flat rows. */
export const uploadsWith = (condition: string) => `
  SELECT ${UPLOAD_COLUMNS.map((name) => `f.${name}`).join(', ')},
         ${FILE_COLUMNS.map((name) => `coalesce(f.${name}, b.${name}) AS ${name}`).join(', ')},
         ${Object.entries(BUILD)
           .map(([name, sql]) => `${ofBuild(sql)} AS build_${name}`)
           .join(', ')}
  FROM uploads f ${NEWEST_BUILD}
  WHERE ${condition}`;

/** Whether there is something to download. */
export const isListed = ({ channel_name, build_id }: FlatUploadRow) =>
  channel_name === null || build_id !== null;

export function uploadRow(row: FlatUploadRow): UploadRow {
  const build = row.build_id === null ? null : readBuild(row);
  return { ...row, build };
}

const readBuild = (row: FlatUploadRow): BuildRow => ({
  id: row.build_id!,
  upload_id: row.build_upload_id,
  game_id: row.build_game_id!,
  parent_build_id: row.build_parent_build_id!,
  version: row.build_version!,
  user_version: row.build_user_version,
  state: row.build_state!,
  created_at: row.build_created_at!,
  updated_at: row.build_updated_at!,
});
