import type { EntityManager } from 'typeorm';
import { forbidden } from '../auth/access/errors';
import type { Database } from '../platform/database/database';
import { bind, type BoundStatement, statement } from '../platform/database/statement';
import { apiError } from '../platform/errors/api-error';

/**
 * Conditions for a WHERE clause: `collection` is the alias of a collection, `user` an expression such as
 * `$user_id`. Admins have all permissions of the owner. OFFSET 0: docs/contributing/decisions/performance.md.
 */
export const canEditCollection = (collection: string, user: string) => `(${collection}.user_id = ${user}
  OR EXISTS (SELECT FROM collection_admins ca WHERE ca.collection_id = ${collection}.id AND ca.user_id = ${user} OFFSET 0))`;

export const canViewCollection = (collection: string, user: string) =>
  `(NOT ${collection}.private OR ${canEditCollection(collection, user)})`;

/** A part of a WITH clause: the collection, if the user may view it. */
export const COLLECTION = `collection AS (
  SELECT c.id, ${canEditCollection('c', '$user_id')} AS editable FROM collections c
  WHERE c.id = $collection_id AND ${canViewCollection('c', '$user_id')})`;

/** A row of a statement that selects from COLLECTION. Without a row, the user can't view the collection. */
export interface CollectionAccess {
  editable: boolean;
}

export const invalidCollection = () => apiError(404, 'invalid collection');
export const notInCollection = () => apiError(404, 'game is not in the collection');

// The first statement of a write, so that the others see everything committed while it waited.
export const LOCK_COLLECTION = statement(
  'collection_lock',
  `SELECT c.id FROM collections c WHERE c.id = $collection_id AND ${canEditCollection('c', '$user_id')} FOR NO KEY UPDATE`,
  'collection $collection_id',
);

/** Locks collections by ID and before their entries, like every other writer. */
export const LOCK_COLLECTIONS = statement(
  'collections_lock',
  'SELECT FROM collections WHERE id = ANY ($collection_ids::bigint[]) ORDER BY id FOR NO KEY UPDATE',
);

/**
 * Sends a user's write to a collection. `change` returns a row that says whether the user may edit it; if
 * not, nothing changes.
 */
export async function writeCollection<Row extends CollectionAccess>(
  database: Database,
  user_id: number,
  collection_id: number,
  change: BoundStatement<Row>,
  manager?: EntityManager,
): Promise<Row> {
  const lock = bind(LOCK_COLLECTION, { collection_id, user_id });
  const getRows = await database.execute([lock, change], manager);
  const [row] = getRows(change.statement);
  if (!row) throw invalidCollection();
  if (!row.editable) throw forbidden("you can't edit this collection");
  return row;
}
