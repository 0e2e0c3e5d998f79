/**
 * Conditions for a WHERE clause: `collection` is the alias of a collection, `user` an expression such as `$1`. Admins may do
 * everything that the owner may. OFFSET 0: docs/explanation/decisions/one-probe.md.
 */
export const canEditCollection = (collection: string, user: string) => `(${collection}.user_id = ${user}
  OR EXISTS (SELECT FROM collection_admins ca WHERE ca.collection_id = ${collection}.id AND ca.user_id = ${user} OFFSET 0))`;

export const canViewCollection = (collection: string, user: string) =>
  `(NOT ${collection}.private OR ${canEditCollection(collection, user)})`;
