import { Injectable } from '@nestjs/common';
import { Database } from '../../platform/database/database';
import { longRead } from '../../platform/database/statement';
import { invalidGame } from '../../games/errors';
import { canEdit } from '../../games/visibility';
import type { RowsOrSlices } from '../../platform/output/list-streams';
import { USER_COLUMNS, type UserRow } from '../../users/users.service';
import { PURCHASE_ROW, type PurchaseRow } from '../purchase.row';
import { PURCHASES_PER_SLICE } from '../purchases.service';

export interface GameSaleRow extends Omit<PurchaseRow, 'status'> {
  status: 'complete' | 'refunded';
  reference: string | null;
  /** The account that bought it, otherwise the one that verified the email address. */
  buyer: UserRow | null;
  /** The newest key of the game from this purchase. */
  key: {
    id: number;
    created_at: string;
    downloads: number;
    revoked: boolean;
    claimed_by: UserRow | null;
  } | null;
}

/** Continues a list after this sale. */
export type Place = Pick<GameSaleRow, 'created_at' | 'id'>;

const NEWEST_PLACE: Place = { created_at: 'infinity', id: Number.MAX_SAFE_INTEGER };

const selectUser = (id: string) =>
  `(SELECT json_build_object(${USER_COLUMNS.map((column) => `'${column}', u.${column}`).join(', ')})
    FROM users u WHERE u.id = ${id})`;

/** The sales from a place on. No row: the user can't edit the game. A row of nulls: no sales. */
const GAME_SALES = longRead<GameSaleRow>(
  'game_sales',
  `SELECT s.* FROM games g LEFT JOIN LATERAL (
     SELECT ${PURCHASE_ROW},
       (SELECT reference FROM purchase_references WHERE purchase_id = p.id) AS reference,
       ${selectUser('coalesce(p.user_id, (SELECT user_id FROM user_emails WHERE email = found.email AND verified))')} AS buyer,
       (SELECT json_build_object('id', k.id, 'created_at', k.created_at::text, 'downloads', k.downloads,
          'revoked', k.revoked_at IS NOT NULL, 'claimed_by', ${selectUser('k.user_id')})
        FROM download_keys k WHERE k.purchase_id = p.id AND k.game_id = g.id
        ORDER BY k.created_at DESC, k.id DESC LIMIT 1) AS key
     FROM (SELECT pg.purchase_id, pg.email FROM purchase_games pg
           WHERE pg.game_id = g.id AND pg.sold_at IS NOT NULL AND pg.sold_at >= $since::timestamptz
             AND (pg.sold_at, pg.purchase_id) < ($sold_at::timestamptz, $purchase_id)
           ORDER BY pg.sold_at DESC, pg.purchase_id DESC LIMIT $limit OFFSET $offset) found
     JOIN purchases p ON p.id = found.purchase_id) s ON true
   WHERE g.id = $game_id AND ${canEdit('g', '$user_id')} ORDER BY s.created_at DESC, s.id DESC`,
  'user $user_id',
);

interface SalesRange {
  since?: string;
  after?: Place;
  offset?: number;
  limit: number;
}

/** The sales of a game, newest first: completed and refunded purchases. */
@Injectable()
export class GameSalesService {
  constructor(private readonly database: Database) {}

  /** The user must be able to edit the game. A long list, such as all sales, is sent in slices. */
  async find(
    game_id: number,
    editor_id: number,
    range: Partial<SalesRange>,
  ): Promise<RowsOrSlices<GameSaleRow>> {
    const { limit = Infinity } = range;
    const first = await this.slice(game_id, editor_id, {
      ...range,
      limit: Math.min(limit, PURCHASES_PER_SLICE),
    });
    return first.length < PURCHASES_PER_SLICE || limit <= PURCHASES_PER_SLICE
      ? first
      : this.slices(game_id, editor_id, { ...range, limit }, first);
  }

  private async *slices(
    game_id: number,
    editor_id: number,
    { since, limit }: SalesRange,
    first: GameSaleRow[],
  ): AsyncGenerator<GameSaleRow[]> {
    let left = limit;
    for (let rows = first; ;) {
      yield rows;
      left -= rows.length;
      if (rows.length < PURCHASES_PER_SLICE || left <= 0) return;
      const range = { since, after: rows.at(-1)!, limit: Math.min(left, PURCHASES_PER_SLICE) };
      rows = await this.slice(game_id, editor_id, range);
    }
  }

  /** Returns at most PURCHASES_PER_SLICE sales. */
  async slice(
    game_id: number,
    editor_id: number,
    { since = '-infinity', after = NEWEST_PLACE, limit, offset = 0 }: SalesRange,
  ): Promise<GameSaleRow[]> {
    const rows = await this.database.rows(GAME_SALES, {
      game_id,
      user_id: editor_id,
      since,
      sold_at: after.created_at,
      purchase_id: after.id,
      limit,
      offset,
    });
    if (rows.length === 0) throw invalidGame();
    return rows[0]!.id === null ? [] : rows;
  }
}
