import type { EntityManager } from 'typeorm';
import { User } from '../users/user.entity';

/** Whoever counts what a user has, and then adds to it, holds the user's row: two at the same moment would both count too few. */
export const lockUser = (db: EntityManager, id: number) =>
  db.findOne(User, { where: { id }, select: { id: true }, lock: { mode: 'for_no_key_update' } });
