import { ApiProperty, PickType } from '@nestjs/swagger';
import {
  EnumField,
  EnumList,
  IntegerField,
  NullableText,
  TimeField,
  UrlField,
} from '../platform/openapi/fields';
import type { StoreLinks } from '../platform/config/store-links';
import { modernTimestamp } from '../platform/formats/timestamps';
import { Id } from '../platform/input/parameters';
import { UserResponse } from '../users/user.dto';
import { GAME_CLASSIFICATIONS, GAME_TRAITS, GAME_TYPES } from './game.entity';
import type { EmbeddedGameRow, GameWithUserRow } from './game.row';

export class GameRequest {
  @Id('ID of the game')
  game_id: number;
}

export class EmbeddedGameResponse {
  @IntegerField('ID of the game', 1)
  id: number;

  @ApiProperty({ example: 'Brave Arcade', description: 'Title of the game' })
  title: string;

  @NullableText('Short description; null if there is none', 'A brave rhythm game about an arcade')
  short_text: string | null;

  @UrlField('URL of the game in the store', 'https://ash-beetle.gamewharf.example/brave-arcade')
  url: string;

  @UrlField('URL of the cover image; null if there is none', 'https://images.example.com/games/1.png', {
    nullable: true,
  })
  cover_url: string | null;

  @EnumField(GAME_TYPES, 'How the game is played: after a download (`default`), or in a browser')
  type: (typeof GAME_TYPES)[number];

  @EnumField(GAME_CLASSIFICATIONS, 'Category of the product')
  classification: (typeof GAME_CLASSIFICATIONS)[number];

  @EnumList(GAME_TRAITS, 'Platforms (`p_...`) and how the game is offered', [
    'p_windows',
    'p_linux',
    'can_be_bought',
    'has_demo',
  ])
  traits: (typeof GAME_TRAITS)[number][];

  @IntegerField('Minimum price in minor units, such as cents', 0)
  min_price: number;

  @TimeField('Time of publication; null if the game is not published', '2019-08-13T00:00:00Z', {
    nullable: true,
  })
  published_at: string | null;

  @TimeField('Time of creation', '2019-05-31T00:00:00Z')
  created_at: string;
}

export class GameUserResponse extends PickType(UserResponse, [
  'id',
  'username',
  'display_name',
  'url',
  'cover_url',
]) {}

export class GameWithUserResponse extends EmbeddedGameResponse {
  @IntegerField("ID of the game's owner, as in `user`", 1)
  user_id: number;

  @ApiProperty({ description: 'Owner of the game' })
  user: GameUserResponse;
}

export class OneGameResponse {
  @ApiProperty({ description: 'The game' })
  game: GameWithUserResponse;
}

export const embeddedGameResponse = (row: EmbeddedGameRow, links: StoreLinks): EmbeddedGameResponse => ({
  id: row.id,
  title: row.title,
  short_text: row.short_text,
  url: links.game(row.owner_name, row.slug),
  cover_url: row.cover_url,
  type: row.type,
  classification: row.classification,
  traits: row.traits,
  min_price: row.min_price,
  published_at: row.published_at && modernTimestamp(row.published_at),
  created_at: modernTimestamp(row.created_at),
});

export type GameUserRow = Pick<GameWithUserRow, 'owner_id' | 'username' | 'display_name' | 'owner_cover_url'>;

export const gameUserResponse = (row: GameUserRow, links: StoreLinks): GameUserResponse => ({
  id: row.owner_id,
  username: row.username,
  display_name: row.display_name || row.username,
  url: links.user(row.username),
  cover_url: row.owner_cover_url,
});

export function gameWithUserResponse(row: GameWithUserRow, links: StoreLinks): GameWithUserResponse {
  const response = embeddedGameResponse(row, links) as GameWithUserResponse;
  response.user_id = row.owner_id;
  response.user = gameUserResponse(row, links);
  return response;
}
