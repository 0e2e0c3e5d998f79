import {
  buildColumns,
  toBuild,
  IN_CHANNEL,
  modern,
  nullableBuild,
  presigned,
  UPLOAD_OF_BUILD,
  toUpload,
} from './floor-uploads';
import type { Row } from './row';

const PUBLISHED = (b: string) => `${b}.state = 'completed' AND NOT ${b}.hidden`;

const toPushedBuild = (row: Row) => ({ ...toBuild(row), hidden: row.hidden, error: row.error });

const newest = (b: string, condition: string) => `
  LEFT JOIN LATERAL (
    SELECT * FROM builds o WHERE o.game_id = f.game_id AND o.channel_name = f.channel_name AND ${condition}
    ORDER BY o.id DESC LIMIT 1) ${b} ON true`;

const channelsSql = (canEdit: string, condition: string) => `
  SELECT f.id, f.game_id, f.position, f.type, f.traits, f.filename, f.display_name, f.channel_name, f.created_at,
    f.updated_at, f.id AS upload_id, b.size, b.md5_hash, ${['b', 'head', 'pending'].map(buildColumns).join()}
  FROM users u
  JOIN LATERAL (SELECT id, user_id FROM games WHERE user_id = u.id AND slug = $3 LIMIT 1) g ON true
  LEFT JOIN LATERAL (
    SELECT DISTINCT ON (channel_name) * FROM uploads WHERE game_id = g.id AND ${condition}
    ORDER BY channel_name, id) f ON true
  ${newest('b', `${PUBLISHED('o')} AND o.size IS NOT NULL`)}
  ${newest('head', PUBLISHED('o'))}
  ${newest('pending', `o.state IN ('started', 'processing') AND o.id > coalesce(head.id, 0)`)}
  WHERE lower_ascii(u.username) = lower_ascii($1) AND ${canEdit}`;

const toChannel = (row: Row) => ({
  name: row.channel_name,
  tags: row.traits
    .filter((trait) => trait.startsWith('p_'))
    .map((trait) => trait.slice(2))
    .join(),
  upload: toUpload(row),
  head: nullableBuild(row, 'head', row.id),
  pending: nullableBuild(row, 'pending', row.id),
});

const toBuildFile = (row: Row) => ({
  id: row.id,
  size: row.size,
  type: row.type,
  sub_type: 'default',
  state: row.state,
  created_at: modern(row.created_at),
  updated_at: modern(row.updated_at),
});

const stored = (id: unknown, size: unknown, type: unknown) => ({
  ...{ id, size, type },
  sub_type: 'default',
  state: 'uploaded',
});
const withFiles = (row: Row) => ({
  ...toBuild(row),
  files: [
    ...(row.size === null ? [] : [stored(row.b_id, row.size, 'archive')]),
    ...(row.files as { id: number; size: number; type: string }[]).map((file) =>
      stored(file.id, file.size, file.type),
    ),
  ],
});

const FILES = `
  SELECT f.id, coalesce(f.size, s.received, 0) AS size, f.type,
    CASE WHEN f.state = 'created' AND s.received > 0 THEN 'uploading' ELSE f.state END AS state, f.created_at, f.updated_at
  FROM build_files f LEFT JOIN upload_sessions s ON s.id = f.session_id WHERE f.build_id = b.id
  UNION ALL
  SELECT b.id, b.size, 'archive', 'uploaded', b.created_at, coalesce(b.updated_at, b.created_at)
  WHERE b.state = 'completed' AND b.size IS NOT NULL`;

const OF_PROFILE = `
  SELECT ${buildColumns('b')}, ${UPLOAD_OF_BUILD}, b.hidden, b.error
  FROM (SELECT id FROM games WHERE user_id = $1 UNION SELECT game_id FROM game_admins WHERE user_id = $1) g
  CROSS JOIN LATERAL (
    SELECT * FROM builds o WHERE o.game_id = g.id AND o.state <> 'started' ORDER BY o.id DESC LIMIT $2::bigint + $3::bigint) b
  ORDER BY b.id DESC LIMIT $2 OFFSET $3`;

/** Whether the user may download the builds of the channel of the build `b`. */
const MAY_DOWNLOAD = `coalesce((
  SELECT NOT o.hidden AND (owns OR free OR 'demo' = ANY (o.traits)) FROM uploads o
  WHERE ${IN_CHANNEL} ORDER BY o.id LIMIT 1), owns OR free)`;

const upgradePathSql = (access: string) => `
  WITH RECURSIVE path AS (
    SELECT id, parent_build_id, 1 AS place FROM builds t WHERE id = $3 AND ${PUBLISHED('t')}
    UNION ALL
    SELECT p.id, p.parent_build_id, path.place + 1 FROM path JOIN builds p ON p.id = path.parent_build_id
    WHERE path.id > $1 AND p.id >= $1 AND path.place < 50 AND ${PUBLISHED('p')}
      AND EXISTS (SELECT FROM build_files WHERE build_id = path.id AND type = 'patch' AND file_key IS NOT NULL))
  SELECT ${buildColumns('b')}, ${UPLOAD_OF_BUILD}, b.size,
    (SELECT coalesce(json_agg(json_build_object('id', id, 'type', type, 'size', size) ORDER BY type), '[]')
     FROM build_files WHERE build_id = b.id AND file_key IS NOT NULL) AS files
  FROM (
    SELECT FROM (SELECT * FROM builds WHERE id = $1) b CROSS JOIN LATERAL (${access}) access WHERE ${MAY_DOWNLOAD}) allowed
  CROSS JOIN path JOIN builds b USING (id)
  ORDER BY path.place DESC`;

const signatureSql = (access: string) => `
  SELECT f.file_key
  FROM builds b JOIN build_files f ON f.build_id = b.id AND f.type = 'signature'
  CROSS JOIN LATERAL (${access}) access
  WHERE b.id = $1 AND ${PUBLISHED('b')} AND ${MAY_DOWNLOAD}`;

/** `canEdit`: SQL for whether the user $2 can edit the game `g`; `access`: selects what they may do with a game. */
export function pushResponses(
  many: (name: string, text: string, values: unknown[]) => Promise<Row[]>,
  { canEdit, access }: { canEdit: string; access: (game: string) => string },
) {
  const CHANNELS = `${channelsSql(canEdit, 'channel_name IS NOT NULL')} ORDER BY f.channel_name`;
  const CHANNEL = channelsSql(canEdit, 'channel_name = $4');
  const EDITED = `FROM builds b JOIN games g ON g.id = b.game_id`;
  const BUILD = `
    SELECT ${buildColumns('b')}, ${UPLOAD_OF_BUILD}, b.hidden, b.error ${EDITED} WHERE b.id = $1 AND ${canEdit}`;
  const FILES_OF_BUILD = `
    SELECT f.* ${EDITED} LEFT JOIN LATERAL (${FILES}) f ON true WHERE b.id = $1 AND ${canEdit} ORDER BY f.id`;
  const PATH = upgradePathSql(access('b.game_id'));
  const SIGNATURE = signatureSql(access('b.game_id'));
  return {
    async channels(user: number, target: string) {
      const [owner, slug] = target.split('/');
      const rows = await many('channels', CHANNELS, [owner, user, slug]);
      if (rows.length === 0) return undefined;
      const named = rows[0]!.id === null ? [] : rows.map((row) => [row.channel_name, toChannel(row)]);
      return { channels: Object.fromEntries(named) as object };
    },
    async channel(user: number, target: string, name: string) {
      const [owner, slug] = target.split('/');
      const [row] = await many('channel', CHANNEL, [owner, user, slug, name]);
      return row && row.id !== null ? { channel: toChannel(row) } : undefined;
    },
    async build(user: number, id: number) {
      const [row] = await many('pushed_build', BUILD, [id, user]);
      return row && { build: toPushedBuild(row) };
    },
    async files(user: number, id: number) {
      const rows = await many('pushed_files', FILES_OF_BUILD, [id, user]);
      if (rows.length === 0) return undefined;
      return { files: rows[0]!.id === null ? [] : rows.map(toBuildFile) };
    },
    async ofProfile(user: number, page: number, per_page: number) {
      const rows = await many('profile_builds', OF_PROFILE, [user, per_page, (page - 1) * per_page]);
      return { page, per_page, builds: rows.map(toPushedBuild) };
    },
    async upgradePath(user: number, from: number, to: number) {
      const rows = await many('upgrade_path', PATH, [from, user, to]);
      return rows[0]?.b_id === from ? { upgrade_path: { builds: rows.map(withFiles) } } : undefined;
    },
    async signature(user: number, id: number) {
      const [row] = await many('signature', SIGNATURE, [id, user]);
      return row && { location: presigned(String(row.file_key), `build-${id}.pws`) };
    },
  };
}
