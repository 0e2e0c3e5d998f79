import { bind, statement } from '../database/statement';
import { canEditCollection } from './visibility';

export const LOCK = statement(
  'collection_lock',
  `SELECT c.id FROM collections c WHERE c.id = $1 AND ${canEditCollection('c', '$2')} FOR NO KEY UPDATE`,
);

/**
 * Makes the writes of one collection wait for one another. It is the first statement of a write and does nothing else, so
 * that the statements behind it see all that was committed while it waited. It locks nothing for those who may not edit.
 */
export const lockCollection = (collection_id: number, user_id: number) =>
  bind(LOCK, [collection_id, user_id]);
