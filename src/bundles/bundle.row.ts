import { GAME_WITH_USER } from '../games/game.row';
import { freeText, number, PackedRow, type RowOf, text } from '../platform/database/packed-row';

/** A purchase `p` of the bundle `b`. */
export const BUNDLE_KEY_ROW = new PackedRow({
  purchase_id: number('p.id'),
  bought_at: text('p.created_at'),
  id: number('b.id'),
  title: freeText<string>('b.title'),
  slug: text('b.slug'),
  cover_url: freeText<string | null>('b.cover_url'),
  games_count: number('b.games_count'),
  version: number('b.version'),
  created_at: text('b.created_at'),
  updated_at: text('b.updated_at'),
});

/** The entry `e` of the bundle `b`, with its game. */
export const BUNDLE_GAME_ROW = new PackedRow({
  ...GAME_WITH_USER,
  position: number('e.position'),
  added_at: text('e.created_at'),
  moved_at: text('e.updated_at'),
  bundle_min_price: number('b.min_price'),
});

export type BundleKeyRow = RowOf<typeof BUNDLE_KEY_ROW>;
export type BundleGameRow = RowOf<typeof BUNDLE_GAME_ROW>;
