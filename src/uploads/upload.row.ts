import { type Build, isPublished } from '../wharf/build.entity';
import { PUSHED_FILE_TYPES } from '../wharf/build-file.entity';
import type { Upload } from './upload.entity';

export interface BuildRow extends Pick<Build, 'id' | 'game_id' | 'user_version' | 'state' | 'created_at'> {
  upload_id: number | null;
  parent_build_id: number;
  version: number;
  updated_at: string;
}

/** An upload with its file. The file of a channel's upload is that of the newest build. */
export interface UploadRow extends Omit<Upload, 'game'> {
  build: BuildRow | null;
}

export interface ChannelRow {
  name: string;
  upload: UploadRow;
  head: BuildRow | null;
  pending: BuildRow | null;
}

/** The columns of a build that an outer join may not find. */
type FoundBuildRow<Prefix extends string> = {
  [Name in keyof BuildRow as `${Prefix}_${Name}`]: BuildRow[Name] | null;
};

/** An UploadRow as a statement returns it. */
export type FlatUploadRow = Omit<UploadRow, 'build'> & FoundBuildRow<'build'>;

/** A ChannelRow as a statement returns it. */
export type FlatChannelRow = FlatUploadRow & FoundBuildRow<'head' | 'pending'>;

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

/** SQL for the upload of the channel of the build `b`. */
const UPLOAD_ID_OF_BUILD =
  '(SELECT min(o.id) FROM uploads o WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name)';

/** The columns of a BuildRow for the build `b`. `upload_id`: SQL for the upload of its channel. */
const buildColumns = (b: string, upload_id: string): Record<keyof BuildRow, string> => ({
  id: `${b}.id`,
  upload_id,
  game_id: `${b}.game_id`,
  // The first build of a channel has no earlier one to look for.
  parent_build_id: `coalesce(${b}.parent_build_id, CASE WHEN ${b}.version <> 1 THEN (SELECT max(o.id) FROM builds o
    WHERE o.game_id = ${b}.game_id AND o.channel_name = ${b}.channel_name AND o.id < ${b}.id) END, -1)`,
  version: `${b}.version`,
  user_version: `${b}.user_version`,
  state: `${b}.state`,
  created_at: `${b}.created_at`,
  updated_at: `coalesce(${b}.updated_at, ${b}.created_at)`,
});

/** The select list of a BuildRow for the build `b`. */
export const selectBuild = (upload_id: string) =>
  Object.entries(buildColumns('b', upload_id))
    .map(([name, sql]) => `${sql} AS ${name}`)
    .join(', ');
export const BUILD_ROW = selectBuild(UPLOAD_ID_OF_BUILD);

/** The archive of a build, and its stored patch and signature; null: it has none. */
export interface FilesRow {
  size: number | null;
  patch_id: number | null;
  patch_size: number | null;
  signature_id: number | null;
  signature_size: number | null;
}

/** The select list of a FilesRow for the build `b` with BUILD_FILES. */
export const FILES_ROW =
  'b.size, patch.id AS patch_id, patch.size AS patch_size, signature.id AS signature_id, signature.size AS signature_size';

/** Joins to the build `b` its stored files. */
export const BUILD_FILES = PUSHED_FILE_TYPES.map(
  (type) => `
  LEFT JOIN build_files ${type} ON ${type}.build_id = b.id AND ${type}.type = '${type}' AND ${type}.file_key IS NOT NULL`,
).join('');

/** The select list of a build that an outer join may not find. CASE prevents lookups for a missing build. */
const selectFoundBuild = (b: string, prefix: string, upload_id: string) =>
  Object.entries(buildColumns(b, upload_id))
    .map(([name, sql]) => {
      const value = sql.startsWith(`${b}.`) ? sql : `CASE WHEN ${b}.id IS NOT NULL THEN ${sql} END`;
      return `${value} AS ${prefix}_${name}`;
    })
    .join(', ');

/** Joins the newest build `b` that meets the condition for `o` to an upload `f` of a channel. */
const newestBuild = (b: string, condition: string) => `
  LEFT JOIN LATERAL (
    SELECT * FROM builds o
    WHERE o.game_id = f.game_id AND o.channel_name = f.channel_name AND ${condition}
    ORDER BY o.id DESC LIMIT 1) ${b} ON true`;

/** Joins the newest build `b` with a file to an upload `f` of a channel. */
export const NEWEST_BUILD = newestBuild('b', `${isPublished('o')} AND o.size IS NOT NULL`);

const UPLOAD_ROW = `${UPLOAD_COLUMNS.map((name) => `f.${name}`).join(', ')},
         ${FILE_COLUMNS.map((name) => `coalesce(f.${name}, b.${name}) AS ${name}`).join(', ')}`;

/** Uploads `f` that meet the condition with their newest builds `b`, as flat rows. */
export const uploadsWith = (condition: string) => `
  SELECT ${UPLOAD_ROW},
         ${selectFoundBuild('b', 'build', UPLOAD_ID_OF_BUILD)}
  FROM uploads f ${NEWEST_BUILD}
  WHERE ${condition}`;

/**
 * Channels `f` of the game `g`: the oldest upload of each, with its newest builds. The head is null if it is
 * the build with the file.
 */
export const selectChannels = (condition: string, limit: string) => `
  SELECT ${UPLOAD_ROW},
         ${selectFoundBuild('b', 'build', 'f.id')},
         ${selectFoundBuild('head', 'head', 'f.id')},
         ${selectFoundBuild('pending', 'pending', 'f.id')}
  FROM (
    SELECT DISTINCT ON (channel_name) * FROM uploads
    WHERE game_id = g.id AND ${condition} ORDER BY channel_name, id${limit}) f
  ${NEWEST_BUILD}
  ${newestBuild('head', `${isPublished('o')} AND o.id > coalesce(b.id, 0)`)}
  ${newestBuild('pending', `o.state IN ('started', 'processing') AND o.id > coalesce(head.id, b.id, 0)`)}`;

/** Whether there is something to download. */
export const isListed = ({ channel_name, build_id }: FlatUploadRow) =>
  channel_name === null || build_id !== null;

/** Reads the columns with the prefix. */
function buildReader<Prefix extends string>(prefix: Prefix): (row: FoundBuildRow<Prefix>) => BuildRow | null {
  const names = Object.keys(buildColumns('b', '')) as (keyof BuildRow)[];
  const copy = columnCopier(names.map((name) => [name, `${prefix}_${name}`]));
  return (row: Record<string, unknown>) =>
    row[`${prefix}_id`] === null ? null : (copy(row) as unknown as BuildRow);
}

/**
 * Copies columns to properties: `[property, column]`. Spreading a row of 50 columns takes longer and creates
 * more garbage.
 */
function columnCopier(columns: [property: string, column: string][]) {
  // A copy keeps the hidden class; adding properties one by one changes it with each.
  const empty = Object.fromEntries(columns.map(([property]) => [property, null]));
  return (row: Record<string, unknown>) => {
    const copy: Record<string, unknown> = { ...empty };
    for (const [property, column] of columns) copy[property] = row[column];
    return copy;
  };
}

const readBuild = buildReader('build');
const readHead = buildReader('head');
const readPending = buildReader('pending');
const copyUpload = columnCopier([...UPLOAD_COLUMNS, ...FILE_COLUMNS, 'build'].map((name) => [name, name]));

export function uploadRow(row: FlatUploadRow): UploadRow {
  const upload = copyUpload(row) as unknown as UploadRow;
  upload.build = readBuild(row);
  return upload;
}

export function channelRow(row: FlatChannelRow): ChannelRow {
  const upload = uploadRow(row);
  return {
    name: row.channel_name!,
    upload,
    head: readHead(row) ?? upload.build,
    pending: readPending(row),
  };
}
