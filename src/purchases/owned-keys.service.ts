import { Injectable } from '@nestjs/common';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { GAME_WITH_USER_COLUMNS, type GameWithUserRow } from '../games/embedded-game.dto';
import { keysOf } from '../games/key-owners';
import type { OwnedKeysRequest } from './owned-key.dto';

/** A key, and its game. */
export interface OwnedKeyRow extends GameWithUserRow {
  key_id: number;
  purchase_id: number | null;
  key_created_at: string;
  downloads: number;
}

const liveKeys = (condition: string) =>
  `SELECT dk.id, dk.created_at FROM download_keys dk WHERE ${condition} AND dk.revoked_at IS NULL`;

export const OWNED_KEYS = statement<OwnedKeyRow>(
  'owned_keys',
  `SELECT k.id AS key_id, k.purchase_id, k.created_at AS key_created_at, k.downloads, ${GAME_WITH_USER_COLUMNS}
   FROM (SELECT id FROM (${keysOf('$1', liveKeys)}) owned
         ORDER BY created_at DESC, id DESC LIMIT $2 OFFSET $3) page
   JOIN download_keys k ON k.id = page.id
   JOIN games g ON g.id = k.game_id
   JOIN users u ON u.id = g.user_id
   ORDER BY k.created_at DESC, k.id DESC`,
);

@Injectable()
export class OwnedKeysService {
  constructor(private readonly database: Database) {}

  /** The live keys that belong to the user, newest first. */
  page(user_id: number, { page, per_page }: OwnedKeysRequest): Promise<OwnedKeyRow[]> {
    return this.database.rows(OWNED_KEYS, [user_id, per_page, (page - 1) * per_page]);
  }
}
