import { ApiProperty, IntersectionType, OmitType } from '@nestjs/swagger';
import type { Credential } from '../auth/access/credential';
import type { StoreLinks } from '../platform/config/store-links';
import { CredentialsInfoResponse } from '../credentials/credentials.dto';
import { GameResponse, sharedGameFields } from '../games/game.dto';
import { gameUserResponse, GameWithUserResponse } from '../games/embedded-game.dto';
import type { GameRow, GameWithUserRow } from '../games/game.row';
import { formatMoney } from '../platform/formats/money';
import { legacyTimestamp, formatTimestamp } from '../platform/formats/timestamps';
import { NullableObject } from '../platform/openapi/fields';
import { PageResponse } from '../platform/input/paging';
import { downloadKeyResponse, DownloadKeyObject } from '../purchases/keys/download-key.dto';
import type { DownloadKeyRow } from '../purchases/keys/download-key.row';
import { OwnedKeyObject } from '../purchases/library/owned-key.dto';
import type { OwnedKeyRow } from '../purchases/library/owned-key.row';
import { BuildResponse, buildResponse } from '../uploads/build.dto';
import { uploadSource, UploadResponse } from '../uploads/upload.dto';
import type { BuildRow, UploadRow } from '../uploads/upload.row';
import { PurchaseObject } from '../purchases/purchase.dto';
import type { PurchaseRow } from '../purchases/purchase.row';

const LegacyTime = (description: string, presence: { nullable?: true; required?: false } = {}) =>
  ApiProperty({
    type: String,
    pattern: '^\\d{4}-\\d\\d-\\d\\d \\d\\d:\\d\\d:\\d\\d$',
    example: '2013-03-03 23:02:14',
    description,
    ...presence,
  });

class LegacyCreation {
  @LegacyTime('Time of creation, in UTC')
  created_at: string;
}

class LegacyTimes extends LegacyCreation {
  @LegacyTime('Time of the last change, in UTC')
  updated_at: string;
}

export class LegacyCredentialsInfoResponse extends OmitType(CredentialsInfoResponse, [
  'type',
  'oauth_application_id',
  'expires_at',
]) {
  @LegacyTime('Expiry of a JWT, in UTC; absent for an API key', { required: false })
  expires_at?: string;
}

const TIMES = ['created_at', 'updated_at'] as const;
const MODERN_FIELDS = ['classification', 'traits', 'published_at', 'created_at'] as const;

class LegacyPlatforms {
  @ApiProperty({ description: 'Whether the game runs on Android' })
  p_android: boolean;

  @ApiProperty({ description: 'Whether the game runs on Linux' })
  p_linux: boolean;

  @ApiProperty({ description: 'Whether the game runs on macOS' })
  p_osx: boolean;

  @ApiProperty({ description: 'Whether the game runs on Windows' })
  p_windows: boolean;
}

class LegacyFields extends IntersectionType(LegacyPlatforms, LegacyCreation) {
  @LegacyTime('Time of publication, in UTC; null if the game is not published', { nullable: true })
  published_at: string | null;
}

export class LegacyGame extends IntersectionType(OmitType(GameResponse, MODERN_FIELDS), LegacyFields) {}

export class LegacyGameWithUser extends IntersectionType(
  OmitType(GameWithUserResponse, MODERN_FIELDS),
  LegacyFields,
) {}

export class LegacyOneGameResponse {
  @ApiProperty({ description: 'The game' })
  game: LegacyGameWithUser;
}

export class LegacyOwnedKey extends IntersectionType(
  OmitType(OwnedKeyObject, [...TIMES, 'game']),
  LegacyTimes,
) {
  @ApiProperty({ description: 'The game' })
  game: LegacyGameWithUser;
}

export class LegacyOwnedKeysResponse extends PageResponse {
  @ApiProperty({ type: [LegacyOwnedKey], description: 'Newest first' })
  owned_keys: LegacyOwnedKey[];
}

export class LegacyGamesResponse {
  @ApiProperty({ type: [LegacyGame], description: 'Newest first' })
  games: LegacyGame[];
}

export class LegacyDownloadKey extends IntersectionType(
  OmitType(DownloadKeyObject, ['created_at']),
  LegacyCreation,
) {}

export class LegacyDownloadKeyResponse {
  @ApiProperty({ type: LegacyDownloadKey, description: 'The key' })
  download_key: LegacyDownloadKey;
}

export class LegacyPurchase extends IntersectionType(
  OmitType(PurchaseObject, ['created_at', 'quantity', 'status', 'purchase_type']),
  LegacyCreation,
) {}

export class LegacyPurchasesResponse {
  @ApiProperty({ type: [LegacyPurchase], description: 'Completed purchases, newest first' })
  purchases: LegacyPurchase[];
}

export class LegacyBuild extends IntersectionType(OmitType(BuildResponse, TIMES), LegacyTimes) {}

export class LegacyUpload extends IntersectionType(
  OmitType(UploadResponse, ['traits', 'build', ...TIMES]),
  IntersectionType(LegacyPlatforms, LegacyTimes),
) {
  @NullableObject(LegacyBuild, 'The newest build; only for `build`', { required: false })
  build?: LegacyBuild | null;
}

export class LegacyUploadsResponse {
  @ApiProperty({ type: [LegacyUpload], description: 'Uploads by position, then by ID' })
  uploads: LegacyUpload[];
}

export class LegacyDownloadResponse {
  @ApiProperty({ format: 'uri', description: 'Signed URL that expires' })
  url: string;
}

export const legacyCredentialsInfo = ({ scopes, expires_at }: Credential): LegacyCredentialsInfoResponse => ({
  scopes: [...scopes],
  ...(expires_at === undefined ? {} : { expires_at: legacyTimestamp(formatTimestamp(expires_at)) }),
});

const platformFields = ({ traits }: { traits: readonly string[] }) => ({
  p_android: traits.includes('p_android'),
  p_linux: traits.includes('p_linux'),
  p_osx: traits.includes('p_osx'),
  p_windows: traits.includes('p_windows'),
});

// The next function doesn't use this one, because V8 is slow to create an object that begins with a spread.
export const legacyGame = (row: GameRow, links: StoreLinks): LegacyGame => ({
  id: row.id,
  title: row.title,
  short_text: row.short_text,
  url: links.game(row.owner_name, row.slug),
  cover_url: row.cover_url,
  type: row.type,
  ...platformFields(row),
  published: row.published_at !== null,
  published_at: row.published_at && legacyTimestamp(row.published_at),
  created_at: legacyTimestamp(row.created_at),
  ...sharedGameFields(row),
});

export const legacyGameWithUser = (row: GameWithUserRow, links: StoreLinks): LegacyGameWithUser => ({
  id: row.id,
  title: row.title,
  short_text: row.short_text,
  url: links.game(row.owner_name, row.slug),
  cover_url: row.cover_url,
  type: row.type,
  ...platformFields(row),
  min_price: row.min_price,
  published_at: row.published_at && legacyTimestamp(row.published_at),
  created_at: legacyTimestamp(row.created_at),
  user_id: row.owner_id,
  user: gameUserResponse(row, links),
});

export const legacyOwnedKey = (row: OwnedKeyRow, links: StoreLinks): LegacyOwnedKey => ({
  id: row.key_id,
  game_id: row.id,
  purchase_id: row.purchase_id,
  created_at: legacyTimestamp(row.key_created_at),
  updated_at: legacyTimestamp(row.key_updated_at ?? row.key_created_at),
  downloads: row.downloads,
  game: legacyGameWithUser(row, links),
});

export const legacyDownloadKey = (row: DownloadKeyRow, links: StoreLinks): LegacyDownloadKey => ({
  ...downloadKeyResponse(row, links),
  created_at: legacyTimestamp(row.created_at),
});

export const legacyPurchase = (row: PurchaseRow, game_id: number): LegacyPurchase => ({
  id: row.id,
  donation: row.donation,
  email: row.email,
  created_at: legacyTimestamp(row.created_at),
  source: row.source,
  currency: row.currency,
  price: formatMoney(row.amount, row.currency),
  sale_rate: row.sale_rate,
  game_id: row.game_ids ?? game_id,
});

const legacyBuild = (row: BuildRow): LegacyBuild => ({
  ...buildResponse(row),
  created_at: legacyTimestamp(row.created_at),
  updated_at: legacyTimestamp(row.updated_at),
});

export const legacyUpload = (row: UploadRow): LegacyUpload => ({
  id: row.id,
  game_id: row.game_id,
  position: row.position,
  type: row.type,
  ...platformFields(row),
  filename: row.filename,
  display_name: row.display_name,
  created_at: legacyTimestamp(row.created_at),
  updated_at: legacyTimestamp(row.updated_at),
  ...uploadSource(row, legacyBuild),
});
