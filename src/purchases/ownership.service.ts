import { Injectable } from '@nestjs/common';
import type { Credential } from '../auth/credential';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { holdsKey } from '../games/key-owners';
import { invalidGame } from '../games/refusals';
import { canEdit, canView } from '../games/visibility';
import { boughtBy } from './purchases.service';

/** Whether the user has a key or a completed purchase of the game `g`, or can edit it. */
const owns = (user: string) => `(
  ${canEdit('g', user)} OR ${holdsKey('g', user)} OR EXISTS (
    SELECT FROM (${boughtBy(user)}) bought
    JOIN purchases p ON p.id = bought.purchase_id AND p.status = 'complete'))`;

/** With a JWT that was made for the game. */
export const OWNERSHIP_IN_GAME = statement<{ owns: boolean }>(
  'ownership_in_game',
  `SELECT ${owns('$2')} AS owns FROM games g WHERE g.id = $1`,
);

/** With a key ($3) of the user's own: games that the user may view or owns. With an application's: games that its owner can edit. */
export const OWNERSHIP = statement<{ owns: boolean }>(
  'ownership',
  `SELECT asked.owns
   FROM games g
   CROSS JOIN LATERAL (SELECT ${owns('$2')} AS owns OFFSET 0) asked
   LEFT JOIN (
     SELECT a.user_id FROM api_keys k
     JOIN oauth_grants gr ON gr.id = k.grant_id
     JOIN oauth_applications a ON a.client_id = gr.client_id
     WHERE k.id = $3) application ON true
   WHERE g.id = $1 AND CASE WHEN application.user_id IS NULL THEN asked.owns OR ${canView('g', '$2')}
                       ELSE ${canEdit('g', 'application.user_id')} END`,
);

@Injectable()
export class OwnershipService {
  constructor(private readonly database: Database) {}

  /** Whether the credential's user owns the game. */
  async owns(
    game_id: number,
    { type, user_id, api_key_id, game_id: own_game }: Credential,
  ): Promise<boolean> {
    if (type === 'jwt' && game_id !== own_game) throw invalidGame();
    const row =
      type === 'jwt'
        ? await this.database.row(OWNERSHIP_IN_GAME, [game_id, user_id])
        : await this.database.row(OWNERSHIP, [game_id, user_id, api_key_id]);
    if (!row) throw invalidGame();
    return row.owns;
  }
}
