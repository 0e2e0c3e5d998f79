import { applyDecorators } from '@nestjs/common';
import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { IsNotEmpty } from 'class-validator';
import type { StoreLinks } from '../platform/config/store-links';
import { Deferred, InvalidValue } from '../platform/http/given-values';
import { Flag, Id, MaxCharacters, OneOf, parameter, Pattern, Text } from '../platform/http/parameters';
import { type Reader, readText } from '../platform/http/readers';
import { modernTimestamp } from '../platform/formats/timestamps';
import { COLLECTION_LAYOUTS } from './collection.entity';
import type { CollectionRow } from './collection.row';
import { fitsHtmlLimit, isWorthSanitising, MAX_HTML_CHARACTERS, sanitiseHtml } from './html';
import { HtmlThread } from './html-thread';

export const MAX_TITLE = 60;

// White space, default-ignorable characters, interlinear annotations and the empty Braille pattern.
const INVISIBLE = /^[\p{Z}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb\u2800]*$/u;

const readTitle: Reader<string> = (given) => {
  const text = readText(given);
  if (typeof text !== 'string') return text;
  const title = text.trim();
  return INVISIBLE.test(title) ? '' : title;
};

// Longer texts may take twenty milliseconds, and are sanitised in another thread.
const SHORT_HTML = 2000;
const tooLong = () => new InvalidValue(`must be at most ${MAX_HTML_CHARACTERS} characters`);
const fitting = (html: string | null) => (fitsHtmlLimit(html) ? html : tooLong());

const readHtml: Reader<string | null | Deferred<string | null>> = (given) => {
  const text = readText(given);
  if (typeof text !== 'string') return text;
  if (!isWorthSanitising(text)) return tooLong();
  if (text.length <= SHORT_HTML) return fitting(sanitiseHtml(text));
  return new Deferred(async (modules) =>
    fitting(await modules.get(HtmlThread, { strict: false }).sanitise(text)),
  );
};

const TrimmedText = parameter(readTitle, { type: 'string' });
const Title = (...options: Parameters<typeof TrimmedText>) =>
  applyDecorators(
    TrimmedText(...options),
    MaxCharacters(MAX_TITLE),
    Pattern(/^\P{Cc}*$/u, '$property must not contain control characters'),
  );

const Layout = (...options: Parameters<typeof Text>) =>
  applyDecorators(Text(...options), OneOf(COLLECTION_LAYOUTS));

/** Sanitised HTML; null: nothing is left of it. */
export const Html = parameter(readHtml, { type: 'string' }, { isNullable: true });

export class ListCollectionsRequest {
  @Id('Each collection then says in `has_game` whether it holds this game', { required: false })
  game_id?: number;
}

export class CollectionRequest {
  @Id('The collection')
  collection_id: number;
}

export class CreateCollectionRequest {
  @Title("Blank or absent: the username and `'s Collection`", { required: false })
  title?: string;

  @Flag('Only those who can edit it see it', { default: false })
  private?: boolean;

  @Html('HTML; what the allow-list does not name is taken out', { required: false })
  description?: string | null;

  @Layout('Absent: `list` where a game is added with a blurb, else `grid`', { required: false })
  layout?: (typeof COLLECTION_LAYOUTS)[number];

  @Id('A game to add at once', { required: false })
  game_id?: number;

  @Html('HTML; a note on that game, ignored without one', { required: false })
  blurb?: string | null;
}

export class UpdateCollectionRequest extends CollectionRequest {
  @Title('Not blank', { required: false })
  @IsNotEmpty({ message: '$property must not be blank' })
  @ApiProperty({ minLength: 1 })
  title?: string;

  @Html('HTML; empty clears it', { required: false })
  description?: string | null;

  @Flag('Only those who can edit it see it', { required: false })
  private?: boolean;

  @Layout('How the games are laid out', { required: false })
  layout?: (typeof COLLECTION_LAYOUTS)[number];

  @Flag("Whether the collection is shown on the caller's profile; other users are not affected", {
    required: false,
  })
  on_profile?: boolean;
}

export class CollectionResponse {
  @ApiProperty({ type: 'integer', format: 'int64', example: 7, description: 'The collection' })
  id: number;

  @ApiProperty({
    example: 'Games for a train ride',
    maxLength: MAX_TITLE,
    description: 'The name of the collection',
  })
  title: string;

  @ApiProperty({
    format: 'uri',
    example: 'https://gamewharf.example/c/7/games-for-a-train-ride',
    description: 'Its page in the store',
  })
  url: string;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'The owner' })
  user_id: number;

  @ApiProperty({ type: 'integer', description: 'All entries, those that the caller may not see included' })
  games_count: number;

  @ApiProperty({ description: 'Only those who can edit it see it' })
  private: boolean;

  @ApiProperty({ type: String, nullable: true, description: 'Sanitised HTML' })
  description: string | null;

  @ApiProperty({ enum: COLLECTION_LAYOUTS, description: 'How the games are laid out' })
  layout: (typeof COLLECTION_LAYOUTS)[number];

  @ApiProperty({ format: 'date-time', description: 'When the collection was made' })
  created_at: string;

  @ApiProperty({ format: 'date-time', description: 'When the collection or anything in it last changed' })
  updated_at: string;
}

export class ListedCollectionResponse extends CollectionResponse {
  @ApiPropertyOptional({ description: 'Whether it holds the game that `game_id` named; absent without one' })
  has_game?: boolean;
}

export const collectionAnswer = (row: CollectionRow, links: StoreLinks): ListedCollectionResponse => ({
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
