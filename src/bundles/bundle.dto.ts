import { ApiProperty } from '@nestjs/swagger';
import { GameWithUserResponse, gameWithUserResponse } from '../games/embedded-game.dto';
import type { StoreLinks } from '../platform/config/store-links';
import { modernTimestamp } from '../platform/formats/timestamps';
import { PageResponse, Page, PerPage } from '../platform/input/paging';
import { Id } from '../platform/input/parameters';
import { IntegerField, TimeField, UrlField } from '../platform/openapi/fields';
import { OwnedKeyObject } from '../purchases/library/owned-key.dto';
import type { BundleGameRow, BundleKeyRow } from './bundle.row';

export class BundleGamesRequest {
  @Id('ID of a bundle that the user owns')
  bundle_id: number;

  @Page()
  page: number = 1;

  @PerPage('Number of games per page', 100)
  per_page: number = 100;
}

export class ClaimGameRequest {
  @Id('ID of a bundle that the user owns')
  bundle_id: number;

  @Id('ID of the game')
  game_id: number;
}

export class BundleResponse {
  @IntegerField('ID of the bundle', 1)
  id: number;

  @ApiProperty({ example: 'Games for a rainy week', description: 'Title of the bundle' })
  title: string;

  @UrlField('URL of the bundle in the store', 'https://gamewharf.example/b/1/games-for-a-rainy-week')
  url: string;

  @UrlField('URL of the cover image; null if there is none', 'https://images.example.com/bundles/1.png', {
    nullable: true,
  })
  cover_url: string | null;

  @ApiProperty({ type: 'integer', example: 8, description: 'Number of games in the bundle' })
  games_count: number;

  @ApiProperty({
    type: 'integer',
    example: 1,
    description:
      'Increases whenever the list of games or its order changes, so that clients know when to read it again',
  })
  version: number;

  @TimeField('Time of creation', '2024-06-01T00:00:00Z')
  created_at: string;

  @TimeField('Time of the last change', '2024-06-01T00:00:00Z')
  updated_at: string;
}

export class BundleKeyResponse {
  @IntegerField('ID of the entry, which is that of the purchase', 4)
  id: number;

  @IntegerField('ID of the bundle', 1)
  bundle_id: number;

  @IntegerField('ID of the newest purchase of the bundle', 4)
  purchase_id: number;

  @TimeField('Time of the purchase', '2024-06-24T13:23:51Z')
  created_at: string;

  @ApiProperty({ description: 'The bundle' })
  bundle: BundleResponse;
}

export class OwnedBundlesResponse {
  @ApiProperty({
    type: [BundleKeyResponse],
    maxItems: 100,
    description: 'One entry for each bundle, newest purchase first',
  })
  bundle_keys: BundleKeyResponse[];
}

export class BundleGameResponse {
  @IntegerField('ID of the bundle', 1)
  bundle_id: number;

  @IntegerField('ID of the game', 1)
  game_id: number;

  @ApiProperty({ type: 'integer', minimum: 1, description: 'Position in the bundle, from 1' })
  position: number;

  @IntegerField('Minimum price of the bundle in minor units, such as cents', 0)
  min_price: number;

  @TimeField('Time when the game was added', '2024-06-01T00:00:00Z')
  created_at: string;

  @TimeField('Time of the last change of the position', '2024-06-01T00:00:00Z')
  updated_at: string;

  @ApiProperty({ description: 'The game, even if it is not public' })
  game: GameWithUserResponse;
}

export class BundleGamesResponse extends PageResponse {
  @ApiProperty({ type: [BundleGameResponse], description: 'Games in the order of the bundle' })
  bundle_games: BundleGameResponse[];
}

export class ClaimedKeyResponse {
  @ApiProperty({ description: "The user's download key for the game" })
  download_key: OwnedKeyObject;
}

export const bundleKeyResponse = (row: BundleKeyRow, links: StoreLinks): BundleKeyResponse => ({
  id: row.purchase_id,
  bundle_id: row.id,
  purchase_id: row.purchase_id,
  created_at: modernTimestamp(row.bought_at),
  bundle: {
    id: row.id,
    title: row.title,
    url: links.bundle(row.id, row.slug),
    cover_url: row.cover_url,
    games_count: row.games_count,
    version: row.version,
    created_at: modernTimestamp(row.created_at),
    updated_at: modernTimestamp(row.updated_at),
  },
});

export const bundleGameResponse = (
  bundle_id: number,
  row: BundleGameRow,
  links: StoreLinks,
): BundleGameResponse => ({
  bundle_id,
  game_id: row.id,
  position: row.position,
  min_price: row.bundle_min_price,
  created_at: modernTimestamp(row.added_at),
  updated_at: modernTimestamp(row.moved_at),
  game: gameWithUserResponse(row, links),
});
