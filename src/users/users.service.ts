import { Injectable } from '@nestjs/common';
import type { Credential } from '../auth/credential';
import { noLongerValid } from '../auth/refusals';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import type { UserRow } from './user.dto';

export const USER = statement<UserRow>(
  'user',
  'SELECT id, username, display_name, gamer, developer, press_user, cover_url FROM users WHERE id = $1',
);

@Injectable()
export class UsersService {
  constructor(private readonly database: Database) {}

  /** The user that a credential acts for. */
  async ownerOf(credential: Credential): Promise<UserRow> {
    const user = await this.database.row(USER, [credential.user_id]);
    // Deleted in the second for which a verified credential is remembered.
    if (!user) throw noLongerValid(credential);
    return user;
  }
}
