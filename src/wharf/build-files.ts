import { statement } from '../platform/database/statement';
import { isPublished } from './build.entity';

/** The signature of the build, if its archive is still the same. */
export const RECORD_SIGNATURE = statement<{ id: number }>(
  'record_signature',
  `INSERT INTO build_files (id, build_id, type, state, size, file_key)
   SELECT nextval('builds_id_seq'), b.id, 'signature', 'uploaded', $size, $signature_key
   FROM builds b WHERE b.id = $build_id AND b.file_key = $archive_key
   ON CONFLICT (build_id, type, sub_type) DO NOTHING RETURNING id`,
);

const newest = (condition: string) =>
  `(SELECT o.id FROM builds o WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name AND ${condition}
    ORDER BY o.id DESC LIMIT 1)`;

const HAS_SIGNATURE = `EXISTS (
  SELECT FROM build_files f WHERE f.build_id = o.id AND f.type = 'signature' AND f.file_key IS NOT NULL)`;

/** The channel's head, the build that players download, and the parent of the next push. */
const IN_USE = [
  isPublished('o'),
  `${isPublished('o')} AND o.size IS NOT NULL`,
  `o.state = 'completed' AND ${HAS_SIGNATURE}`,
];

/** SQL condition: the files of the build `b` can be deleted. */
export const IS_PRUNABLE = `b.state = 'completed' AND NOT b.hidden AND b.file_url IS NULL
  AND NOT EXISTS (SELECT FROM builds c WHERE c.parent_build_id = b.id AND c.state IN ('started', 'processing'))
  AND ${IN_USE.map((condition) => `b.id IS DISTINCT FROM ${newest(condition)}`).join(' AND ')}`;

/**
 * Locks a build, so that this and a push whose parent is the build wait for each other. A later statement
 * then sees the push.
 */
export const LOCK_BUILD = statement('lock_build', 'SELECT FROM builds WHERE id = $id FOR UPDATE');

/** Removes the files of the locked build from the database, unless the build is in use. */
export const PRUNE_BUILD = statement<{ file_key: string }>(
  'prune_build',
  `WITH pruned AS (SELECT b.id, b.file_key FROM builds b WHERE b.id = $id AND ${IS_PRUNABLE}),
   files AS (DELETE FROM build_files f USING pruned WHERE f.build_id = pruned.id RETURNING f.file_key),
   changed AS (
     UPDATE builds b SET file_key = NULL, size = NULL, md5_hash = NULL, updated_at = now() FROM pruned WHERE b.id = pruned.id)
   SELECT file_key FROM pruned UNION ALL SELECT file_key FROM files`,
);
