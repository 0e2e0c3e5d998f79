import type { EntityManager } from 'typeorm';
import { User } from './user.entity';

/** Locks the user's row before a limit is checked: without the lock, two transactions would both count too few rows. */
export const lockUser = (db: EntityManager, id: number) =>
  db.findOne(User, { where: { id }, select: { id: true }, lock: { mode: 'for_no_key_update' } });
