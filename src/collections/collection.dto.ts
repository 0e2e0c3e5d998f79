import { ApiProperty, ApiPropertyOptional } from '@nestjs/swagger';
import { registerDecorator } from 'class-validator';
import type { StoreLinks } from '../config/store-links';
import {
  BooleanParameter,
  IntegerParameter,
  MaxCharacters,
  OneOf,
  parameter,
  TextParameter,
} from '../http/parameters';
import { type Reader, readText, Unreadable } from '../http/readers';
import { modernTimestamp } from '../formats/timestamps';
import { COLLECTION_LAYOUTS } from './collection.entity';
import { fitsHtmlLimit, MAX_HTML_CHARACTERS, sanitiseHtml } from './html';

const MAX_TITLE = 60;

const readTitle: Reader<string> = (given) => {
  const text = readText(given);
  return typeof text === 'string' ? text.trim() : text;
};

const readHtml: Reader<string | null> = (given) => {
  const text = readText(given);
  if (typeof text !== 'string') return text;
  const html = sanitiseHtml(text);
  return fitsHtmlLimit(html) ? html : new Unreadable(`must be at most ${MAX_HTML_CHARACTERS} characters`);
};

const TitleParameter = parameter(readTitle, { type: 'string' });
/** Read as what is left after sanitising; null: nothing. */
export const HtmlParameter = parameter(readHtml, { type: 'string' });

const NotBlank = (): PropertyDecorator => (prototype, name) =>
  registerDecorator({
    name: 'notBlank',
    target: prototype.constructor,
    propertyName: String(name),
    options: { message: `${String(name)} must not be blank` },
    validator: { validate: (value) => value !== '' },
  });

export class ListCollectionsRequest {
  @IntegerParameter('Each collection then says in `has_game` whether it holds this game')
  game_id?: number;
}

export class CollectionRequest {
  @IntegerParameter('The collection', { in: 'path' })
  collection_id: number;
}

export class CreateCollectionRequest {
  @MaxCharacters(MAX_TITLE)
  @TitleParameter("Blank or absent: the username and `'s Collection`")
  title?: string;

  @BooleanParameter('Only those who can edit it see it', { default: false })
  private?: boolean;

  @HtmlParameter('HTML; what the allow-list does not name is taken out')
  description?: string | null;

  @OneOf(...COLLECTION_LAYOUTS)
  @TextParameter('Absent: `list` where a game is added with a blurb, else `grid`')
  layout?: (typeof COLLECTION_LAYOUTS)[number];

  @IntegerParameter('A game to add at once')
  game_id?: number;

  @HtmlParameter('HTML; a note on that game, ignored without one')
  blurb?: string | null;
}

export class UpdateCollectionRequest extends CollectionRequest {
  @MaxCharacters(MAX_TITLE)
  @NotBlank()
  @TitleParameter('Not blank')
  title?: string;

  @HtmlParameter('HTML; empty clears it')
  description?: string | null;

  @BooleanParameter('Only those who can edit it see it')
  private?: boolean;

  @OneOf(...COLLECTION_LAYOUTS)
  @TextParameter('How the games are laid out')
  layout?: (typeof COLLECTION_LAYOUTS)[number];

  @BooleanParameter('Whether the collection shows on the profile of the caller; nobody else is affected')
  on_profile?: boolean;
}

/** The columns that a collection's answer is made of. */
export interface CollectionRow {
  id: number;
  user_id: number;
  title: string;
  private: boolean;
  description: string | null;
  layout: (typeof COLLECTION_LAYOUTS)[number];
  games_count: number;
  created_at: string;
  updated_at: string;
  has_game?: boolean;
}

export class CollectionAnswer {
  @ApiProperty({ type: 'integer', format: 'int64', example: 7 })
  id: number;

  @ApiProperty({ example: 'Games for a train ride', maxLength: MAX_TITLE })
  title: string;

  @ApiProperty({ format: 'uri', example: 'https://gamewharf.example/c/7/games-for-a-train-ride' })
  url: string;

  @ApiProperty({ type: 'integer', format: 'int64', description: 'The owner' })
  user_id: number;

  @ApiProperty({ type: 'integer', description: 'All entries, those that the caller may not see included' })
  games_count: number;

  @ApiProperty({ description: 'Only those who can edit it see it' })
  private: boolean;

  @ApiProperty({ type: String, nullable: true, description: 'Sanitised HTML' })
  description: string | null;

  @ApiProperty({ enum: COLLECTION_LAYOUTS })
  layout: (typeof COLLECTION_LAYOUTS)[number];

  @ApiPropertyOptional({ description: 'Present only where the list was asked with `game_id`' })
  has_game?: boolean;

  @ApiProperty({ format: 'date-time' })
  created_at: string;

  @ApiProperty({ format: 'date-time', description: 'When the collection or anything in it last changed' })
  updated_at: string;
}

export const collectionAnswer = (row: CollectionRow, links: StoreLinks): CollectionAnswer => ({
  id: row.id,
  title: row.title,
  url: links.collection(row.id, row.title),
  user_id: row.user_id,
  games_count: row.games_count,
  private: row.private,
  description: row.description,
  layout: row.layout,
  // Left out of the answer where it is undefined.
  has_game: row.has_game,
  created_at: modernTimestamp(row.created_at),
  updated_at: modernTimestamp(row.updated_at),
});

export class OneCollectionAnswer {
  @ApiProperty()
  collection: CollectionAnswer;
}

export class CollectionsAnswer {
  @ApiProperty({ type: [CollectionAnswer], description: 'Last updated first' })
  collections: CollectionAnswer[];
}

export class SuccessAnswer {
  @ApiProperty({ enum: [true] })
  success: true;
}
