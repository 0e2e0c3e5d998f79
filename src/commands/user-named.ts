import type { INestApplicationContext } from '@nestjs/common';
import { EntityManager } from 'typeorm';
import { User } from '../auth/accounts/user.entity';
import { OperatorError } from '../platform/errors/operator-error';
import { lowerAscii } from '../platform/formats/lower-ascii';
import { ignoringCase } from '../platform/database/ignoring-case';
import { ERASED_ADDRESS } from '../users/erased-users';

/** The user with the username that an operator specified. */
export async function userNamed(app: INestApplicationContext, username: string): Promise<User> {
  const user = await app.get(EntityManager).findOneBy(User, { username: ignoringCase(username) });
  if (!user) throw new OperatorError(`User ${username} doesn't exist.`);
  return user;
}

/** A new email address, which isn't the one of erased users. */
export function requireAddress(text: string): string {
  const isValid = /^[^\s@]+@[^\s@]+$/.test(text) && text.length <= 254;
  if (!isValid || lowerAscii(text) === ERASED_ADDRESS)
    throw new OperatorError(`${text} isn't a valid email address.`);
  return text;
}
