import { freeText, number, PackedRow, text } from '../platform/database/packed-row';
import { EMBEDDED_GAME } from '../games/game.row';

/** The entry `e` with its game `g` and its position. */
export const COLLECTION_GAME_ROW = new PackedRow({
  ...EMBEDDED_GAME,
  position: number('e.position'),
  blurb: freeText<string | null>('e.blurb'),
  user_id: number('e.user_id'),
  added_at: text('e.created_at'),
});
