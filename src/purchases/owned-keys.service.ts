import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database';
import type { Packed } from '../platform/database/packed-row';
import { longRead } from '../platform/database/statement';
import { keysOf } from './key-owners';
import type { OwnedKeysRequest } from './owned-key.dto';
import { OWNED_KEY_ROW, type OwnedKeyRow } from './owned-key.row';

// LIMIT in each part: a page of thousands of keys of an account reads only the newest entries of an index.
const newestKeys = (condition: string) => `
  (SELECT dk.id, dk.created_at FROM download_keys dk WHERE ${condition} AND dk.revoked_at IS NULL
   ORDER BY dk.created_at DESC, dk.id DESC LIMIT $2::bigint + $3::bigint)`;

export const OWNED_KEYS = longRead<Packed>(
  'owned_keys',
  `SELECT ${OWNED_KEY_ROW.sql}
   FROM (SELECT id FROM (${keysOf('$1', newestKeys)}) owned
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
  async page(user_id: number, { page, per_page }: OwnedKeysRequest): Promise<OwnedKeyRow[]> {
    const keys = await this.database.rows(OWNED_KEYS, [user_id, per_page, (page - 1) * per_page]);
    return keys.map(OWNED_KEY_ROW.read);
  }
}
