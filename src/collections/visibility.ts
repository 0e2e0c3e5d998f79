/**
 * Conditions for a WHERE clause: `collection` is the alias of a collection, `user` an expression such as `$1`. Admins
 * have all permissions of the owner. OFFSET 0: docs/contributing/decisions/single-probe-lookups.md.
 */
export const canEditCollection = (collection: string, user: string) => `(${collection}.user_id = ${user}
  OR EXISTS (SELECT FROM collection_admins ca WHERE ca.collection_id = ${collection}.id AND ca.user_id = ${user} OFFSET 0))`;

export const canViewCollection = (collection: string, user: string) =>
  `(NOT ${collection}.private OR ${canEditCollection(collection, user)})`;

/** For a WITH clause: the collection $1, if the user $2 may view it. */
export const COLLECTION = `collection AS (
  SELECT c.id, ${canEditCollection('c', '$2')} AS editable FROM collections c
  WHERE c.id = $1 AND ${canViewCollection('c', '$2')})`;

/** Selects from it; no row means that the user can't view the collection. */
export interface CollectionAccess {
  editable: boolean;
}
