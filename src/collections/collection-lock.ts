import { bind, type RowLock, statement } from '../database/statement';
import { canEditCollection } from './visibility';

export const LOCK = statement(
  'collection_lock',
  `SELECT c.id FROM collections c WHERE c.id = $1 AND ${canEditCollection('c', '$2')} FOR NO KEY UPDATE`,
);

/** In the order of the ids, and before their entries, as every writer locks collections. */
export const LOCK_COLLECTIONS = statement(
  'collections_lock',
  'SELECT FROM collections WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE',
);

/**
 * Locks a collection that the user may edit. The first statement of a write, so that the others see everything that was
 * committed while it waited.
 */
export const lockCollection = (collection_id: number, user_id: number) =>
  bind(LOCK, [collection_id, user_id]);

/** What a write of a user locks: the collection, or for a new one a negative number of the user. */
export const lockOf = (user_id: number, collection_id = -user_id): RowLock => ({
  of: 'collections',
  id: collection_id,
  user_ids: [user_id],
});
