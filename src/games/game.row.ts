import {
  type ColumnsOf,
  freeText,
  list,
  nullableText,
  number,
  PackedRow,
  type RowOf,
  text,
} from '../platform/database/packed-row';
import type { Game } from './game.entity';

/** The columns of every response with a game, for the game `g`. */
export const EMBEDDED_GAME = {
  id: number('g.id'),
  owner_name: text('g.owner_name'),
  slug: text('g.slug'),
  title: freeText('g.title'),
  short_text: freeText('g.short_text'),
  cover_url: freeText('g.cover_url'),
  type: text('g.type'),
  classification: text('g.classification'),
  traits: list('g.traits'),
  min_price: number('g.min_price'),
  published_at: nullableText('g.published_at'),
  created_at: text('g.created_at'),
} satisfies ColumnsOf<Game>;

const EDITABLE_GAME = {
  ...EMBEDDED_GAME,
  views_count: number('g.views_count'),
  downloads_count: number('g.downloads_count'),
  purchases_count: number('g.purchases_count'),
} satisfies ColumnsOf<Game>;

/** The columns of responses for users who can edit the game. */
export const GAME_ROW = new PackedRow({
  ...EDITABLE_GAME,
  // Currency code and minor units in one text each (`USD500`), by currency.
  earnings: list(
    'ARRAY(SELECT currency || amount FROM game_earnings ge WHERE ge.game_id = g.id ORDER BY currency)',
  ),
});

/** A game and the user `u` who uploaded it. */
export const GAME_WITH_USER = {
  ...EMBEDDED_GAME,
  owner_id: number('u.id'),
  username: text('u.username'),
  display_name: freeText<string | null>('u.display_name'),
  owner_cover_url: freeText<string | null>('u.cover_url'),
};
export const GAME_WITH_USER_ROW = new PackedRow(GAME_WITH_USER);

export type GameRow = RowOf<typeof GAME_ROW>;
export type GameWithUserRow = RowOf<typeof GAME_WITH_USER_ROW>;
export type EmbeddedGameRow = Pick<GameRow, keyof typeof EMBEDDED_GAME>;
