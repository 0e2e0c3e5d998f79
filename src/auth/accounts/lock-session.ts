import type { EntityManager } from 'typeorm';
import { apiError } from '../../platform/errors/api-error';
import { sha256 } from './encryption';
import { lockUser } from './lock-user';
import { Session } from './session.entity';

/**
 * Locks the user of a session. A new password ends the session, possibly after the user confirmed a change with the old
 * one: the change is then rejected.
 */
export async function lockSession(db: EntityManager, user_id: number, token: string): Promise<void> {
  await lockUser(db, user_id);
  if (!(await db.existsBy(Session, { user_id, token_hash: sha256(token) })))
    throw apiError(403, 'Your session ended a moment ago. Sign in again.');
}
