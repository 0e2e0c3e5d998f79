import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { EnumField, IntegerField, NullableText, TimeField, UrlField } from '../platform/openapi/fields';
import { IsNotEmpty } from 'class-validator';
import type { StoreLinks } from '../platform/config/store-links';
import { InvalidValue } from '../platform/input/input-values';
import { Flag, Id, MaxCharacters, OneOf, parameter, Text, Title } from '../platform/input/parameters';
import { type Reader, readText } from '../platform/input/readers';
import { modernTimestamp } from '../platform/formats/timestamps';
import { COLLECTION_LAYOUTS } from './collection.entity';
import type { CollectionRow } from './collection.row';
import { fitsHtmlLimit, isLongHtml, isWorthSanitizing, MAX_HTML_CHARACTERS, sanitizeHtml } from './html';
import { htmlThread } from './html-thread';

export const MAX_COLLECTION_TITLE_CHARACTERS = 60;

const readHtml: Reader<string | null | Promise<string | null | InvalidValue>> = (value) => {
  const text = readText(value);
  if (typeof text !== 'string') return text;
  if (!isWorthSanitizing(text)) return tooLong();
  return isLongHtml(text) ? htmlThread.sanitize(text).then(requireFit) : requireFit(sanitizeHtml(text));
};

const requireFit = (html: string | null) => (fitsHtmlLimit(html) ? html : tooLong());
const tooLong = () => new InvalidValue(`must be at most ${MAX_HTML_CHARACTERS} characters`);

const CollectionTitle = (...options: Parameters<typeof Title>) =>
  applyDecorators(Title(...options), MaxCharacters(MAX_COLLECTION_TITLE_CHARACTERS));

const Layout = (...options: Parameters<typeof Text>) =>
  applyDecorators(Text(...options), OneOf(COLLECTION_LAYOUTS));

/** Sanitized HTML, or null if nothing remains. */
export const Html = parameter(readHtml, { type: 'string' }, { isNullable: true });

export class ListCollectionsRequest {
  @Id('ID of a game; each collection then has `has_game`', { required: false })
  game_id?: number;
}

export class CollectionRequest {
  @Id('ID of the collection')
  collection_id: number;
}

export class CreateCollectionRequest {
  @CollectionTitle("Title; defaults to the username and `'s Collection`", { required: false })
  title?: string;

  @Flag('Whether only users who can edit the collection can see it', { default: false })
  private?: boolean;

  @Html('Description, as HTML; elements that are not allowed are removed', { required: false })
  description?: string | null;

  @Layout('Layout of the games; defaults to `list` if a blurb is sent, otherwise to `grid`', {
    required: false,
  })
  layout?: (typeof COLLECTION_LAYOUTS)[number];

  @Id('ID of a game to add', { required: false })
  game_id?: number;

  @Html('Note about that game, as HTML; ignored without `game_id`', { required: false })
  blurb?: string | null;
}

export class UpdateCollectionRequest extends CollectionRequest {
  @CollectionTitle('Title; must not be blank', { required: false })
  @IsNotEmpty({ message: '$property must not be blank' })
  @ApiProperty({ minLength: 1 })
  title?: string;

  @Html('Description, as HTML; an empty value clears it', { required: false })
  description?: string | null;

  @Flag('Whether only users who can edit the collection can see it', { required: false })
  private?: boolean;

  @Layout('Layout of the games', { required: false })
  layout?: (typeof COLLECTION_LAYOUTS)[number];

  @Flag("Whether the collection is shown on the caller's profile; other users are not affected", {
    required: false,
  })
  on_profile?: boolean;
}

export class CollectionResponse {
  @IntegerField('ID of the collection', 7)
  id: number;

  @ApiProperty({
    example: 'Games for a train ride',
    maxLength: MAX_COLLECTION_TITLE_CHARACTERS,
    description: 'Title of the collection',
  })
  title: string;

  @UrlField('URL of the collection in the store', 'https://gamewharf.example/c/7/games-for-a-train-ride')
  url: string;

  @IntegerField('ID of the owner')
  user_id: number;

  @ApiProperty({ type: 'integer', description: 'Number of games, including those that the user cannot see' })
  games_count: number;

  @ApiProperty({ description: 'Whether only users who can edit the collection can see it' })
  private: boolean;

  @NullableText('Description, as sanitized HTML; null if there is none')
  description: string | null;

  @EnumField(COLLECTION_LAYOUTS, 'Layout of the games')
  layout: (typeof COLLECTION_LAYOUTS)[number];

  @TimeField('Time of creation')
  created_at: string;

  @TimeField('Time of the last change of the collection or its entries')
  updated_at: string;
}

export class ListedCollectionResponse extends CollectionResponse {
  @ApiPropertyOptional({
    description: 'Whether the collection contains the requested game; absent without `game_id`',
  })
  has_game?: boolean;
}

export const collectionResponse = (row: CollectionRow, links: StoreLinks): ListedCollectionResponse => ({
  id: row.id,
  title: row.title,
  url: links.collection(row.id, row.title),
  user_id: row.user_id,
  games_count: row.games_count,
  private: row.private,
  description: row.description,
  layout: row.layout,
  has_game: row.has_game ?? undefined,
  created_at: modernTimestamp(row.created_at),
  updated_at: modernTimestamp(row.updated_at),
});

export class OneCollectionResponse {
  @ApiProperty({ description: 'The collection' })
  collection: CollectionResponse;
}

export class CollectionsResponse {
  @ApiProperty({ type: [ListedCollectionResponse], description: 'Last updated first' })
  collections: ListedCollectionResponse[];
}
