import { GAME_WITH_USER } from '../../games/game.row';
import {
  nullableNumber,
  nullableText,
  number,
  PackedRow,
  type RowOf,
  text,
} from '../../platform/database/packed-row';

export const OWNED_KEY_ROW = new PackedRow({
  ...GAME_WITH_USER,
  key_id: number('k.id'),
  purchase_id: nullableNumber('k.purchase_id'),
  key_created_at: text('k.created_at'),
  /** Null until the key is changed. */
  key_updated_at: nullableText('k.updated_at'),
  downloads: number('k.downloads'),
});

export type OwnedKeyRow = RowOf<typeof OWNED_KEY_ROW>;
