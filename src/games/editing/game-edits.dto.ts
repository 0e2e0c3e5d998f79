import { applyDecorators } from '@nestjs/common';
import { ApiProperty } from '@nestjs/swagger';
import { IsNotEmpty } from 'class-validator';
import {
  Amount,
  ClearableText,
  Flag,
  Id,
  MaxCharacters,
  OneOf,
  Pattern,
  Text,
  Title,
} from '../../platform/input/parameters';
import { GameResponse } from '../game.dto';
import { GAME_TYPES, GAME_VISIBILITIES, type Game } from '../game.entity';
import { MAX_SLUG_CHARACTERS, SLUG } from '../slug';

export const MAX_GAME_TITLE_CHARACTERS = 500;
export const MAX_SHORT_TEXT_CHARACTERS = 1000;
export const MAX_COVER_URL_CHARACTERS = 2000;

interface Options {
  required?: boolean;
  default?: string;
}

const GameTitle = (description: string, options: Options = {}) =>
  applyDecorators(
    Title(description, options),
    IsNotEmpty({ message: '$property must not be blank' }),
    ApiProperty({ minLength: 1 }),
    MaxCharacters(MAX_GAME_TITLE_CHARACTERS),
  );

const Slug = (description: string) =>
  applyDecorators(
    Text(description, { required: false, example: 'brave-arcade' }),
    MaxCharacters(MAX_SLUG_CHARACTERS),
    Pattern(SLUG, '$property must consist of letters, digits, _, . and -'),
  );

const ShortText = () =>
  applyDecorators(
    ClearableText('Short description; an empty value clears it', { required: false }),
    MaxCharacters(MAX_SHORT_TEXT_CHARACTERS),
  );

const CoverUrl = () =>
  applyDecorators(
    ClearableText('URL of the cover image; an empty value clears it', {
      required: false,
      example: 'https://images.example.com/games/1.png',
    }),
    MaxCharacters(MAX_COVER_URL_CHARACTERS),
    Pattern(/^([Hh][Tt][Tt][Pp][Ss]?:\/\/[^\s/]\S*)?$/, '$property must be an http or https URL'),
  );

const Type = (options: Options) =>
  applyDecorators(
    Text('How the game is played: after a download (`default`), or in a browser', options),
    OneOf(GAME_TYPES),
  );

const Visibility = (options: Options) =>
  applyDecorators(
    Text(
      'Who can see the published game: everyone, owners of its keys (`restricted`), or its editors',
      options,
    ),
    OneOf(GAME_VISIBILITIES),
  );

export class CreateGameRequest {
  @GameTitle('Title of the game')
  title: string;

  @Slug('Last part of the URL; derived from the title by default')
  slug?: string;

  @ShortText()
  short_text?: string | null;

  @CoverUrl()
  cover_url?: string | null;

  @Type({ default: 'default' })
  type?: Game['type'];

  @Amount('Minimum price in US cents', { default: 0 })
  min_price?: number;

  @Visibility({ default: 'private' })
  visibility?: Game['visibility'];

  @Flag('Whether to publish the game', { default: false })
  published?: boolean;
}

export class EditedGameRequest {
  @Id('ID of the game')
  game_id: number;
}

export class UpdateGameRequest extends EditedGameRequest {
  @GameTitle('Title of the game; must not be blank', { required: false })
  title?: string;

  @Slug('Last part of the URL. The previous URL stops working')
  slug?: string;

  @ShortText()
  short_text?: string | null;

  @CoverUrl()
  cover_url?: string | null;

  @Type({ required: false })
  type?: Game['type'];

  @Amount('Minimum price in US cents', { required: false })
  min_price?: number;

  @Visibility({ required: false })
  visibility?: Game['visibility'];

  @Flag('Whether the game is published. The time of publication is that of the change', { required: false })
  published?: boolean;
}

export class EditedGameResponse {
  @ApiProperty({ description: 'The game' })
  game: GameResponse;
}
