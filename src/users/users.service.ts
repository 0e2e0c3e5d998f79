import { Injectable } from '@nestjs/common';
import type { Credential } from '../auth/credential';
import { noLongerValid } from '../auth/refusals';
import { Database } from '../database/database';
import { columnsOf, read } from '../database/statement';
import { USER_COLUMNS, type UserRow } from './user.dto';

export const USER = read<UserRow>(
  'user',
  `SELECT ${columnsOf('u', USER_COLUMNS)} FROM users u WHERE u.id = $1`,
);

@Injectable()
export class UsersService {
  constructor(private readonly database: Database) {}

  /** The user that a credential acts for. */
  async ownerOf(credential: Credential): Promise<UserRow> {
    const user = await this.database.row(USER, [credential.user_id]);
    // Deleted while the verified credential was cached, which is for a second at most.
    if (!user) throw noLongerValid(credential);
    return user;
  }
}
