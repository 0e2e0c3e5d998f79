import { connectTo } from '../../src/operator/import/import-records';

/** A bucket that does not exist: URLs are signed without a request to it. */
export const BUCKET = {
  FILES_S3_ENDPOINT: 'https://files.gamewharf.example',
  FILES_S3_BUCKET: 'games',
  FILES_S3_REGION: 'eu-central-1',
  FILES_S3_ACCESS_KEY_ID: 'AKIABENCH',
  FILES_S3_SECRET_ACCESS_KEY: 'secret-of-the-benchmark',
};

/** The games that the players own; their rows follow those of the demo. */
const OWNED = `SELECT DISTINCT game_id FROM download_keys WHERE id > $1`;

/** Adds two files to each game of a player, and one for a channel if the game has builds. */
export async function addUploads(url: string, download_keys: number, say: (line: string) => void) {
  const client = await connectTo({ DATABASE_URL: url });
  try {
    const { rows } = await client.query('SELECT FROM uploads LIMIT 1');
    if (rows.length > 0) return;
    say('adding uploads to the games of the players (once)');
    const file = (id: string) => `${id} || '/moon.zip', 48211093, md5(${id}::text)`;
    await client.query(
      `UPDATE builds b SET (file_key, size, md5_hash) = (SELECT ${file('b.id')})
       WHERE b.id IN (SELECT max(id) FROM builds WHERE state = 'completed' AND game_id IN (${OWNED}) GROUP BY game_id)`,
      [download_keys],
    );
    await client.query(
      `INSERT INTO uploads (game_id, filename, traits, position, file_key, size, md5_hash, created_at, updated_at)
       SELECT game_id, 'moon (' || platform || ').zip', ARRAY['p_' || platform], place, ${file('game_id')},
         '2020-01-01', '2020-01-02'
       FROM (${OWNED}) owned, (VALUES ('windows', 1), ('linux', 2)) AS platforms (platform, place)`,
      [download_keys],
    );
    await client.query(
      `INSERT INTO uploads (game_id, filename, traits, channel_name, created_at, updated_at)
       SELECT game_id, 'moon.zip', ARRAY['p_osx'], channel_name, '2020-01-01', '2020-01-02'
       FROM builds WHERE size IS NOT NULL`,
    );
    await client.query('VACUUM (ANALYZE)');
  } finally {
    await client.end();
  }
}

const CHANNELS = 2;
/** Builds of each channel. */
const BUILDS = 5;

/** Pushes builds to two channels of one game of each developer: every build has an archive, a patch and a signature. */
export async function addPushedBuilds(url: string, say: (line: string) => void) {
  const client = await connectTo({ DATABASE_URL: url });
  try {
    const { rows } = await client.query('SELECT FROM build_files LIMIT 1');
    if (rows.length > 0) return;
    say(`adding ${BUILDS} pushed builds to ${CHANNELS} channels of a game of each developer (once)`);
    const pushed = `channel_name LIKE 'pushed-%'`;
    await client.query(
      `INSERT INTO builds (game_id, channel_name, user_version, source, file_key, size, md5_hash, created_at, updated_at)
       SELECT game_id, 'pushed-' || channel, '2.' || build, 'upload tool', game_id || '/' || channel || '-' || build || '.zip',
         48211093, md5(game_id::text), '2020-01-01', '2020-01-02'
       FROM (SELECT min(id) AS game_id FROM games GROUP BY user_id) games, generate_series(1, ${CHANNELS}) channel,
         generate_series(1, ${BUILDS}) build
       ORDER BY build, game_id`,
    );
    await client.query(
      `UPDATE builds b SET parent_build_id = (
         SELECT max(o.id) FROM builds o
         WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name AND o.id < b.id)
       WHERE ${pushed}`,
    );
    await client.query(
      `INSERT INTO uploads (game_id, filename, traits, channel_name, created_at, updated_at)
       SELECT DISTINCT game_id, channel_name || '.zip', ARRAY['p_linux'], channel_name,
         '2020-01-01'::timestamptz, '2020-01-02'::timestamptz
       FROM builds WHERE ${pushed}`,
    );
    await client.query(
      `INSERT INTO build_files (id, build_id, type, state, size, file_key)
       SELECT nextval('builds_id_seq'), id, type, 'uploaded', 70001, id || '/' || type
       FROM builds, (VALUES ('patch'), ('signature')) AS types (type) WHERE ${pushed}`,
    );
    await client.query('VACUUM (ANALYZE)');
  } finally {
    await client.end();
  }
}
