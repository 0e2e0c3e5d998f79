import type { EntityManager } from 'typeorm';
import { apiError } from '../../platform/errors/api-error';
import { isPseudonym } from './erased-users';
import { User } from './user.entity';

/**
 * Locks the user's row before a limit is checked: without the lock, two transactions would both count too few
 * rows. An erasure takes the same lock. After it, the user is rejected, because new rows would never be
 * erased.
 */
export async function lockUser(db: EntityManager, id: number): Promise<void> {
  const select = { id: true, username: true } as const;
  const user = await db.findOne(User, { where: { id }, select, lock: { mode: 'for_no_key_update' } });
  if (user && isPseudonym(user.username, id)) throw accountErased();
}

export const accountErased = () => apiError(403, 'this account was erased');
