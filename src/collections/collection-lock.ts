import { Injectable } from '@nestjs/common';
import { statement } from '../database/statement';
import type { Statements } from '../database/pool/transactions';
import { canEditCollection } from './visibility';

export const LOCK = statement(
  'collection_lock',
  `SELECT c.id FROM collections c WHERE c.id = $1 AND ${canEditCollection('c', '$2')} FOR NO KEY UPDATE`,
);

/**
 * Makes the writes of one collection wait for one another. Asked for first in the transaction and in a statement of its
 * own, so that the statements behind it see all that was written before the lock was had. Those who may not edit the
 * collection hold up nobody.
 */
@Injectable()
export class CollectionLock {
  take(db: Statements, collection_id: number, user_id: number): void {
    // Not waited for: what follows leaves at once, and fails with it if it fails.
    void db.row(LOCK, [collection_id, user_id]);
  }
}
