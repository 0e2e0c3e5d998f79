import { ApiProperty, OmitType } from '@nestjs/swagger';
import { IntegerField, NullableText, TimeField, UrlField } from '../../platform/openapi/fields';
import type { StoreLinks } from '../../platform/config/store-links';
import type { KeyPages } from '../../platform/server/key-pages';
import {
  Between,
  ExactlyOneOf,
  Id,
  LookupEmail,
  MaxCharacters,
  NonEmptyText,
  Pattern,
  TrimmedText,
} from '../../platform/input/parameters';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { UserResponse, userResponse } from '../../users/user.dto';
import type { CreatedKeyRow, DownloadKeyRow } from './download-key.row';

@ExactlyOneOf('download_key', 'user_id', 'email')
export class DownloadKeyRequest {
  @Id('ID of a game that the user can edit')
  game_id: number;

  @NonEmptyText("Download key: the last part of a buyer's download URL", {
    required: false,
  })
  download_key?: string;

  @Id('ID of the owner', { required: false })
  user_id?: number;

  @LookupEmail('Email address of the owner or buyer. Verify first that it belongs to your user', {
    required: false,
  })
  email?: string;
}

export class DownloadKeyObject {
  @IntegerField('ID of the key')
  id: number;

  @TimeField('Time of creation')
  created_at: string;

  @IntegerField('Number of downloads with the key')
  downloads: number;

  @ApiProperty({ description: 'The key itself' })
  key: string;

  @IntegerField('ID of the game')
  game_id: number;

  @ApiProperty({
    type: UserResponse,
    required: false,
    description: 'Account that the key belongs to; absent if there is none',
  })
  owner?: UserResponse;
}

export class DownloadKeyResponse {
  @ApiProperty({ type: DownloadKeyObject, description: 'The download key' })
  download_key: DownloadKeyObject;
}

export const downloadKeyResponse = (row: DownloadKeyRow, links: StoreLinks): DownloadKeyObject => ({
  id: row.id,
  created_at: modernTimestamp(row.created_at),
  downloads: row.downloads,
  key: row.key,
  game_id: row.game_id,
  ...(row.owner ? { owner: userResponse(row.owner, links) } : {}),
});

export const MAX_NEW_KEYS = 1000;
export const MAX_LABEL_CHARACTERS = 100;

export class CreateDownloadKeysRequest {
  @Id('ID of a game that the user can edit')
  game_id: number;

  @Id('Number of keys', { example: 3 })
  @Between(1, MAX_NEW_KEYS)
  count: number;

  @TrimmedText('Note for the seller, such as who gets the keys. Players never see it.', {
    required: false,
    example: 'Press kit',
  })
  @MaxCharacters(MAX_LABEL_CHARACTERS)
  @Pattern(/^\P{Cc}*$/u, '$property must not contain control characters')
  label?: string;
}

export class RevokeDownloadKeyRequest {
  @Id('ID of a game that the user can edit')
  game_id: number;

  @Id('ID of the key')
  download_key_id: number;
}

/** Decorates the field with the page of a download key. */
export const KeyUrl = () =>
  UrlField(
    'Page of the key, where its owner downloads the game; null if the store has no such pages',
    'https://api.example.com/download/gwdl_sTw4nRkZbq1XoVu8sTw4nRkZ',
    { nullable: true },
  );

export class CreatedDownloadKeyObject extends OmitType(DownloadKeyObject, ['owner']) {
  @NullableText("The seller's note", 'Press kit')
  label: string | null;

  @KeyUrl()
  url: string | null;
}

export class CreatedDownloadKeysResponse {
  @ApiProperty({ type: [CreatedDownloadKeyObject], description: 'The new keys, in the order of their IDs' })
  download_keys: CreatedDownloadKeyObject[];
}

export const createdKeyResponse = (row: CreatedKeyRow, pages: KeyPages): CreatedDownloadKeyObject => ({
  ...row,
  created_at: modernTimestamp(row.created_at),
  url: pages.url(row.key),
});
