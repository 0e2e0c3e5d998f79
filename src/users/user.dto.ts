import { ApiProperty } from '@nestjs/swagger';
import type { StoreLinks } from '../config/store-links';

/** The columns that a user's answer is made of. */
export interface UserRow {
  id: number;
  username: string;
  display_name: string | null;
  gamer: boolean;
  developer: boolean;
  press_user: boolean;
  cover_url: string | null;
}

export class UserAnswer {
  @ApiProperty({ type: 'integer', format: 'int64', example: 29789 })
  id: number;

  @ApiProperty({ example: 'leaf' })
  username: string;

  @ApiProperty({ example: 'Leaf', description: 'Without one the username' })
  display_name: string;

  @ApiProperty({ description: 'Plays games' })
  gamer: boolean;

  @ApiProperty({ description: 'Uploads games' })
  developer: boolean;

  @ApiProperty({ description: 'Writes about games' })
  press_user: boolean;

  @ApiProperty({ format: 'uri', example: 'https://leaf.gamewharf.example' })
  url: string;

  @ApiProperty({ type: String, format: 'uri', nullable: true })
  cover_url: string | null;
}

export const userAnswer = (row: UserRow, links: StoreLinks): UserAnswer => ({
  id: row.id,
  username: row.username,
  display_name: row.display_name || row.username,
  gamer: row.gamer,
  developer: row.developer,
  press_user: row.press_user,
  url: links.user(row.username),
  cover_url: row.cover_url,
});
