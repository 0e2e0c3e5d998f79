import { Injectable } from '@nestjs/common';
import type { Credential } from '../../auth/access/credential';
import { selectApplicationOwner } from '../../auth/oauth/applications.service';
import { Database } from '../../platform/database/database';
import type { Packed } from '../../platform/database/packed-row';
import { longRead, read } from '../../platform/database/statement';
import { holdsKey, selectOwnedKeys } from '../ownership/key-owners';
import type { OwnedKeysRequest } from './owned-key.dto';
import { OWNED_KEY_ROW, type OwnedKeyRow } from './owned-key.row';
import { invalidGame } from '../../games/errors';
import { canEdit, isPublic } from '../../games/visibility';
import { boughtBy } from '../purchases.service';

/** Whether the user has a completed purchase of the game `g`. */
export const hasBought = (user: string) => `EXISTS (
    SELECT FROM (${boughtBy(user)}) bought
    JOIN purchases p ON p.id = bought.purchase_id AND p.status = 'complete')`;

/** Why the user owns the game `g`; null: the user doesn't own it. */
const via = (
  user: string,
) => `CASE WHEN ${hasBought(user)} THEN 'purchase' WHEN ${holdsKey('g', user)} THEN 'key'
    WHEN ${canEdit('g', user)} THEN 'editor' END`;

interface Ownership {
  via: 'purchase' | 'key' | 'editor' | null;
}

/** Queried with a JWT issued for the game. */
const OWNERSHIP_IN_GAME = read<Ownership>(
  'ownership_in_game',
  `SELECT ${via('$user_id')} AS via FROM games g WHERE g.id = $game_id`,
);

/**
 * Queried with an API key. The user's own key finds games that are public or that the user owns, which are all
 * that the user can view. An app's key finds games that the owner of the app can edit.
 */
export const OWNERSHIP = read<Ownership>(
  'ownership',
  `SELECT g.via
   FROM (
     SELECT g.id, g.user_id, g.visibility, g.published_at, ${via('$user_id')} AS via, ${selectApplicationOwner('$api_key_id')} AS application_owner
     FROM games g WHERE g.id = $game_id OFFSET 0) g
   WHERE CASE WHEN g.application_owner IS NULL THEN g.via IS NOT NULL OR ${isPublic('g')}
              ELSE ${canEdit('g', 'g.application_owner')} END`,
);

/** Everyone can start public games, and owners their games, even private ones: they can also download them. */
const STARTABLE_GAME = read(
  'startable_game',
  `SELECT g.id FROM games g WHERE g.id = $game_id AND (${isPublic('g')} OR ${via('$user_id')} IS NOT NULL)`,
);

// Each part has a LIMIT, so that a page of an account with thousands of keys reads only the newest index
// entries.
const newestKeys = (condition: string) => `
  (SELECT dk.id, dk.created_at FROM download_keys dk WHERE ${condition} AND dk.revoked_at IS NULL
   ORDER BY dk.created_at DESC, dk.id DESC LIMIT $limit::bigint + $offset::bigint)`;

export const OWNED_KEYS = longRead<Packed>(
  'owned_keys',
  `SELECT ${OWNED_KEY_ROW.sql}
   FROM (SELECT id FROM (${selectOwnedKeys('$user_id', newestKeys)}) owned
         ORDER BY created_at DESC, id DESC LIMIT $limit OFFSET $offset) page
   JOIN download_keys k ON k.id = page.id
   JOIN games g ON g.id = k.game_id
   JOIN users u ON u.id = g.user_id
   ORDER BY k.created_at DESC, k.id DESC`,
  'user $user_id',
);

@Injectable()
export class OwnershipService {
  constructor(private readonly database: Database) {}

  async ownership(
    game_id: number,
    { type, user_id, api_key_id, game_id: own_game }: Credential,
  ): Promise<Ownership> {
    if (type === 'jwt' && game_id !== own_game) throw invalidGame();
    const row =
      type === 'jwt'
        ? await this.database.row(OWNERSHIP_IN_GAME, { game_id, user_id })
        : await this.database.row(OWNERSHIP, { game_id, user_id, api_key_id });
    if (!row) throw invalidGame();
    return row;
  }

  async mayStart(game_id: number, user_id: number): Promise<boolean> {
    return (await this.database.row(STARTABLE_GAME, { game_id, user_id })) !== undefined;
  }

  /** The live keys that belong to the user, newest first. */
  async ownedKeys(user_id: number, { page, per_page }: OwnedKeysRequest): Promise<OwnedKeyRow[]> {
    const keys = await this.database.rows(OWNED_KEYS, {
      user_id,
      limit: per_page,
      offset: (page - 1) * per_page,
    });
    return keys.map(OWNED_KEY_ROW.read);
  }
}
