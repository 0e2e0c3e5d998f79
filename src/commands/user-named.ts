import type { INestApplicationContext } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { OperatorError } from '../platform/config/operator-error';
import { ignoringCase } from '../platform/database/ignoring-case';

/** The user with the username that an operator specified. */
export async function userNamed(app: INestApplicationContext, username: string): Promise<User> {
  const user = await app.get(EntityManager).findOneBy(User, { username: ignoringCase(username) });
  if (!user) throw new OperatorError(`User ${username} doesn't exist.`);
  return user;
}
