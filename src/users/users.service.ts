import { Injectable } from '@nestjs/common';
import type { Credential } from '../auth/access/credential';
import { noLongerValid } from '../auth/access/errors';
import { Database } from '../platform/database/database';
import { apiError } from '../platform/errors/api-error';
import { prefixColumns, read } from '../platform/database/statement';
import type { User } from '../auth/accounts/user.entity';

export const USER_COLUMNS = [
  'id',
  'username',
  'display_name',
  'gamer',
  'developer',
  'press_user',
  'cover_url',
] as const satisfies (keyof User)[];

export type UserRow = Pick<User, (typeof USER_COLUMNS)[number]>;

export const USER = read<UserRow>(
  'user',
  `SELECT ${prefixColumns('u', USER_COLUMNS)} FROM users u WHERE u.id = $user_id`,
);

@Injectable()
export class UsersService {
  constructor(private readonly database: Database) {}

  async findOwner(credential: Credential): Promise<UserRow> {
    const user = await this.database.row(USER, { user_id: credential.user_id });
    // The user was deleted while the verified credential was cached, which is for a second at most.
    if (!user) throw noLongerValid(credential);
    return user;
  }

  async find(id: number): Promise<UserRow> {
    const user = await this.database.row(USER, { user_id: id });
    if (!user) throw apiError(404, 'invalid user');
    return user;
  }
}
