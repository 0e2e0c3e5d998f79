import {
  bind,
  type BoundStatement,
  type RowLock,
  type RowsOf,
  statement,
  type Write,
} from '../platform/database/statement';
import { cannotEdit } from './errors';
import { canEditCollection, type CollectionAccess } from './visibility';

// The first statement of a write, so that the others see everything committed while it waited.
export const LOCK = statement(
  'collection_lock',
  `SELECT c.id FROM collections c WHERE c.id = $1 AND ${canEditCollection('c', '$2')} FOR NO KEY UPDATE`,
);

/** Locks collections by ID and before their entries, like every other writer. */
export const LOCK_COLLECTIONS = statement(
  'collections_lock',
  'SELECT FROM collections WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE',
);

/** What a user's write locks: the collection, or for a new one a negative number derived from the user. */
export const lockOf = (user_id: number, collection_id = -user_id): RowLock => ({
  of: 'collections',
  id: collection_id,
});

/**
 * A user's write to a collection. `change` returns a row that says whether the user may edit it; if not, nothing
 * changes.
 */
export const writeCollection = <Row extends CollectionAccess, Result>(
  user_id: number,
  collection_id: number,
  [change, ...others]: [BoundStatement<Row>, ...BoundStatement[]],
  result: (row: Row, rowsOf: RowsOf) => Result,
): Write<Result> => ({
  statements: [bind(LOCK, [collection_id, user_id]), change, ...others],
  result: (rowsOf) => {
    const [row] = rowsOf(change.statement);
    if (!row?.editable) throw cannotEdit(row);
    return result(row, rowsOf);
  },
  lock: lockOf(user_id, collection_id),
});
