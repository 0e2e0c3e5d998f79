import { ApiProperty } from '@nestjs/swagger';
import { IntegerField, UrlField } from '../platform/openapi/fields';
import { Id } from '../platform/input/parameters';
import type { StoreLinks } from '../platform/config/store-links';
import type { UserRow } from './users.service';

export class UserResponse {
  @IntegerField('ID of the user', 2)
  id: number;

  @ApiProperty({ example: 'azure-bison', description: 'Unique username, as used in URLs' })
  username: string;

  @ApiProperty({ example: 'Azure Bison', description: 'Display name; defaults to the username' })
  display_name: string;

  @ApiProperty({ description: 'Whether the user plays games' })
  gamer: boolean;

  @ApiProperty({ description: 'Whether the user uploads games' })
  developer: boolean;

  @ApiProperty({ description: 'Whether the user writes about games' })
  press_user: boolean;

  @UrlField('URL of the user in the store', 'https://azure-bison.gamewharf.example')
  url: string;

  @UrlField('URL of the picture; null if there is none', undefined, { nullable: true })
  cover_url: string | null;
}

export class UserRequest {
  @Id('ID of the user')
  user_id: number;
}

export class OneUserResponse {
  @ApiProperty({ description: 'The user' })
  user: UserResponse;
}

export const userResponse = (row: UserRow, links: StoreLinks): UserResponse => ({
  id: row.id,
  username: row.username,
  display_name: row.display_name || row.username,
  gamer: row.gamer,
  developer: row.developer,
  press_user: row.press_user,
  url: links.user(row.username),
  cover_url: row.cover_url,
});
