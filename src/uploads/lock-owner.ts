import { statement } from '../platform/database/statement';

/**
 * Locks the owner of the game until the end of the transaction, which makes quotas exact: the next statement counts
 * what was committed while this one waited.
 */
export const LOCK_FILE_OWNER = statement<{ owner_id: number }>(
  'file_quota_lock',
  `SELECT g.user_id AS owner_id, pg_advisory_xact_lock(7305811, hashint8(g.user_id))::text AS locked
   FROM games g WHERE g.id = $game_id`,
  'game $game_id',
);
