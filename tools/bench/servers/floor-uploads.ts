import { createHash, createHmac } from 'node:crypto';
import type { Row } from './row';

const {
  FILES_S3_ENDPOINT = '',
  FILES_S3_BUCKET = '',
  FILES_S3_REGION = '',
  FILES_S3_ACCESS_KEY_ID = '',
  FILES_S3_SECRET_ACCESS_KEY = '',
} = process.env;
const { origin, host } = new URL(FILES_S3_ENDPOINT || 'http://localhost');

const hmac = (key: string | Buffer, text: string) => createHmac('sha256', key).update(text).digest();
const encoded = (text: string) =>
  encodeURIComponent(text).replace(/[!'()*]/g, (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`);

let signing = { day: '', key: Buffer.alloc(0) };

/** The signing key of a day, for all URLs of that day. */
function signingKey(day: string): Buffer {
  if (signing.day === day) return signing.key;
  let key = hmac(`AWS4${FILES_S3_SECRET_ACCESS_KEY}`, day);
  for (const part of [FILES_S3_REGION, 's3', 'aws4_request']) key = hmac(key, part);
  signing = { day, key };
  return key;
}

/** A presigned GET, Signature Version 4. */
export function presigned(file_key: string, filename: string): string {
  const date = `${new Date().toISOString().slice(0, 19).replace(/[-:]/g, '')}Z`;
  const scope = `${date.slice(0, 8)}/${FILES_S3_REGION}/s3/aws4_request`;
  const path = `/${FILES_S3_BUCKET}/${file_key.split('/').map(encoded).join('/')}`;
  const query =
    `X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=${encoded(`${FILES_S3_ACCESS_KEY_ID}/${scope}`)}` +
    `&X-Amz-Date=${date}&X-Amz-Expires=300&X-Amz-SignedHeaders=host` +
    `&response-content-disposition=${encoded(`attachment; filename="${filename}"`)}`;
  const canonical = `GET\n${path}\n${query}\nhost:${host}\n\nhost\nUNSIGNED-PAYLOAD`;
  const hash = createHash('sha256').update(canonical).digest('hex');
  const signature = hmac(signingKey(date.slice(0, 8)), `AWS4-HMAC-SHA256\n${date}\n${scope}\n${hash}`);
  return `${origin}${path}?${query}&X-Amz-Signature=${signature.toString('hex')}`;
}

export const IN_CHANNEL = 'o.game_id = b.game_id AND o.channel_name = b.channel_name';

const parentBuildSql = (b: string) => `coalesce(${b}.parent_build_id, (SELECT max(o.id) FROM builds o
  WHERE o.game_id = ${b}.game_id AND o.channel_name = ${b}.channel_name AND o.id < ${b}.id))`;

/** The columns of the build `b`; their names start with the alias. */
export const buildColumns = (b: string) => `
  ${b}.id AS ${b}_id, ${b}.game_id AS ${b}_game_id, ${parentBuildSql(b)} AS ${b}_parent_build_id, ${b}.version AS ${b}_version,
  ${b}.user_version AS ${b}_user_version, ${b}.state AS ${b}_state, ${b}.created_at AS ${b}_created_at,
  coalesce(${b}.updated_at, ${b}.created_at) AS ${b}_updated_at`;
export const UPLOAD_OF_BUILD = `(SELECT min(o.id) FROM uploads o WHERE ${IN_CHANNEL}) AS upload_id`;

const NEWEST_BUILD = `
  LEFT JOIN LATERAL (
    SELECT * FROM builds o WHERE o.game_id = f.game_id AND o.channel_name = f.channel_name
      AND o.state = 'completed' AND NOT o.hidden AND o.size IS NOT NULL
    ORDER BY o.id DESC LIMIT 1) b ON true
  WHERE (f.channel_name IS NULL OR b.id IS NOT NULL) AND NOT f.hidden`;
const FILES = `
  SELECT f.id, f.game_id, f.position, f.type, f.traits, f.filename, f.display_name, f.external_url, f.channel_name,
    f.created_at, f.updated_at, coalesce(f.size, b.size) AS size, coalesce(f.md5_hash, b.md5_hash) AS md5_hash,
    ${UPLOAD_OF_BUILD}, ${buildColumns('b')}
  FROM uploads f ${NEWEST_BUILD}`;
const FILE = `
  SELECT f.game_id, f.traits, f.filename, coalesce(f.file_key, b.file_key) AS file_key
  FROM uploads f ${NEWEST_BUILD} AND f.id = $1`;

const MAY_DOWNLOAD = `(owns OR free OR 'demo' = ANY (traits))`;

export const modern = (text: unknown) => `${String(text).slice(0, 10)}T${String(text).slice(11, 19)}Z`;

export const toBuild = (row: Row, b = 'b', upload_id = row.upload_id) => ({
  id: row[`${b}_id`],
  upload_id,
  game_id: row[`${b}_game_id`],
  parent_build_id: row[`${b}_parent_build_id`] ?? -1,
  version: row[`${b}_version`],
  user_version: row[`${b}_user_version`],
  state: row[`${b}_state`],
  created_at: modern(row[`${b}_created_at`]),
  updated_at: modern(row[`${b}_updated_at`]),
});

export const nullableBuild = (row: Row, b: string, upload_id: unknown) =>
  row[`${b}_id`] === null ? null : toBuild(row, b, upload_id);

function toSource(row: Row) {
  const { external_url, channel_name, size, md5_hash } = row;
  if (external_url) return { storage: 'external', host: new URL(String(external_url)).host };
  if (channel_name === null) return { storage: 'hosted', size, md5_hash };
  const build = nullableBuild(row, 'b', row.upload_id);
  return { storage: 'build', size, md5_hash, build_id: row.b_id, channel_name, build };
}

export const toUpload = (row: Row) => ({
  id: row.id,
  game_id: row.game_id,
  position: row.position,
  type: row.type,
  traits: row.traits,
  filename: row.filename,
  display_name: row.display_name,
  created_at: modern(row.created_at),
  updated_at: modern(row.updated_at),
  ...toSource(row),
});

const ADD = (table: string, column: string) => `
  UPDATE ${table} t SET ${column} = t.${column} + added.n FROM unnest($1::bigint[], $2::bigint[]) AS added (id, n)
  WHERE t.id = added.id`;
const ADD_TO_GAMES = ADD('games', 'downloads_count');
const ADD_TO_KEYS = ADD('download_keys', 'downloads');

/** Selects what the user $2 may do with a game. */
export const accessSql =
  (owns: string) =>
  (game: string, more = '') => `
    SELECT * FROM (
      SELECT g.visibility = 'public' AND g.published_at IS NOT NULL AS public, g.min_price = 0 AS free, ${owns} AS owns${more}
      FROM games g WHERE g.id = ${game} OFFSET 0) asked
    WHERE owns OR public`;

/** `owns`: SQL for whether the user $2 owns the game `g`; `heldKey`: for their newest key of it. */
export function uploadResponses(
  many: (name: string, text: string, values: unknown[]) => Promise<Row[]>,
  { owns, heldKey }: { owns: string; heldKey: string },
) {
  let games = new Map<unknown, number>();
  let keys = new Map<unknown, number>();
  setInterval(async () => {
    const [addedGames, addedKeys] = [games, keys];
    games = new Map();
    keys = new Map();
    const values = (added: Map<unknown, number>) => [[...added.keys()], [...added.values()]];
    try {
      if (addedGames.size > 0) await many('add_to_games', ADD_TO_GAMES, values(addedGames));
      if (addedKeys.size > 0) await many('add_to_keys', ADD_TO_KEYS, values(addedKeys));
    } catch (error) {
      // The benchmark cancels statements that outlast their measurement.
      console.error(`Downloads were not counted: ${(error as Error).message}`);
    }
  }, 2000).unref();
  const access = accessSql(owns);
  const LIST = `
    SELECT f.* FROM (${access('$1')}) access
    LEFT JOIN LATERAL (SELECT * FROM (${FILES} AND f.game_id = $1) f WHERE ${MAY_DOWNLOAD}) f ON true
    ORDER BY f.position, f.id`;
  const ONE = `
    SELECT f.game_id, held_key, f.filename, f.file_key
    FROM (${FILE}) f CROSS JOIN LATERAL (${access('f.game_id', `, (${heldKey}) AS held_key`)}) access
    WHERE ${MAY_DOWNLOAD}`;
  return {
    async list(user: number, game_id: number) {
      const rows = await many('uploads', LIST, [game_id, user]);
      if (rows.length === 0) return undefined;
      return { uploads: rows[0]!.id === null ? [] : rows.map(toUpload) };
    },
    async download(user: number, id: number) {
      const [row] = await many('upload', ONE, [id, user]);
      if (!row) return undefined;
      games.set(row.game_id, (games.get(row.game_id) ?? 0) + 1);
      if (row.held_key !== null) keys.set(row.held_key, (keys.get(row.held_key) ?? 0) + 1);
      return { location: presigned(String(row.file_key), String(row.filename)) };
    },
  };
}
