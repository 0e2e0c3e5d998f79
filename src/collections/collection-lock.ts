import {
  bind,
  type BoundStatement,
  type RowLock,
  type RowsOf,
  statement,
  type Write,
  write,
} from '../platform/database/statement';
import { cannotEdit } from './errors';
import { canEditCollection, type CollectionAccess } from './visibility';

// The first statement of a write, so that the others see everything that was committed while it waited.
export const LOCK = statement(
  'collection_lock',
  `SELECT c.id FROM collections c WHERE c.id = $1 AND ${canEditCollection('c', '$2')} FOR NO KEY UPDATE`,
);

/** In the order of the ids, and before their entries, as every writer locks collections. */
export const LOCK_COLLECTIONS = statement(
  'collections_lock',
  'SELECT FROM collections WHERE id = ANY ($1::bigint[]) ORDER BY id FOR NO KEY UPDATE',
);

/** What a write of a user locks: the collection, or for a new one a negative number of the user. */
export const lockOf = (user_id: number, collection_id = -user_id): RowLock => ({
  of: 'collections',
  id: collection_id,
});

/** A write of a user to a collection, which is refused where the first statement says that the user may not edit it. */
export const writeCollection = <Row extends CollectionAccess, Others extends BoundStatement[], Result>(
  user_id: number,
  collection_id: number,
  statements: [BoundStatement<Row>, ...Others],
  result: (row: Row, others: RowsOf<Others>) => Result,
): Write<Result> =>
  write<BoundStatement[], Result>(
    [bind(LOCK, [collection_id, user_id]), ...statements],
    ([, rows, ...others]) => {
      const [row] = rows as Row[];
      if (!row?.editable) throw cannotEdit(row);
      return result(row, others as RowsOf<Others>);
    },
    lockOf(user_id, collection_id),
  );
