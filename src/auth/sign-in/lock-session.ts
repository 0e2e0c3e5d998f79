import type { EntityManager } from 'typeorm';
import { forbidden } from '../access/errors';
import { sha256 } from '../accounts/encryption';
import { lockUser } from '../accounts/lock-user';
import { Session } from './session.entity';

/**
 * Locks the user of a session. A new password ends the session, possibly after the user confirmed a change with the old
 * one: the change is then rejected.
 */
export async function lockSession(db: EntityManager, user_id: number, token: string): Promise<void> {
  await lockUser(db, user_id);
  if (!(await db.existsBy(Session, { user_id, token_hash: sha256(token) })))
    throw forbidden('Your session ended a moment ago. Sign in again.');
}
