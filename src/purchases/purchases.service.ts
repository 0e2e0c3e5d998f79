import { Injectable } from '@nestjs/common';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import { invalidGame } from '../games/refusals';
import { canEdit } from '../games/visibility';
import type { PURCHASE_TYPES } from './purchase.entity';

/** Exactly one of them is given. */
export interface PurchaseSelector {
  email?: string;
  user_id?: number;
}

/** created_at as PostgreSQL writes it; game_ids: all games of a bundle, null for anything else. */
export interface PurchaseRow {
  id: number;
  donation: boolean;
  email: string;
  created_at: string;
  source: string;
  currency: string;
  amount: number;
  sale_rate: number;
  quantity: number;
  status: 'complete';
  purchase_type: (typeof PURCHASE_TYPES)[number];
  game_ids: number[] | null;
}

/**
 * At least one row whenever the caller may edit the game, with an empty purchase if there is none: so that "no such game"
 * and "no purchases" come out of one statement. `bought` selects what was bought of the game by $3.
 */
const lookup = (name: string, bought: string) =>
  statement<PurchaseRow>(
    name,
    `SELECT p.*
     FROM games g
     LEFT JOIN LATERAL (
       SELECT p.id, p.donation, p.email, p.created_at, p.source, p.currency, p.amount, p.sale_rate, p.quantity,
              p.status, p.purchase_type,
              CASE p.purchase_type WHEN 'bundle' THEN
                ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = p.id ORDER BY game_id) END AS game_ids
       FROM (SELECT DISTINCT purchase_id FROM (${bought}) bought) bought
       JOIN purchases p ON p.id = bought.purchase_id AND p.status = 'complete') p ON true
     WHERE g.id = $1 AND ${canEdit('g', '$2')}
     ORDER BY p.created_at DESC, p.id DESC`,
  );

const boughtFrom = (address: string) =>
  `SELECT purchase_id FROM purchase_games WHERE game_id = g.id AND email = ${address}`;

/** What a user bought of the game `g`. OFFSET 0: else all purchases of the game may be read, docs/decisions/one-probe.md. */
export const boughtBy = (user: string, butFrom = '') => `
  SELECT purchase_id FROM purchase_games WHERE game_id = g.id AND user_id = ${user}
  UNION ALL SELECT purchase_id
  FROM user_emails ue CROSS JOIN LATERAL (${boughtFrom('ue.email')} OFFSET 0) from_address
  WHERE ue.user_id = ${user} AND ue.verified ${butFrom && `AND ue.email <> ${butFrom}`}`;

export const PURCHASES_BY_USER = lookup('purchases_by_user', boughtBy('$3'));
export const PURCHASES_BY_EMAIL = lookup(
  'purchases_by_email',
  `${boughtFrom('lower($3)')}
   UNION ALL SELECT by_owner.purchase_id
   FROM (SELECT user_id FROM user_emails WHERE email = lower($3) AND verified OFFSET 0) owner
   CROSS JOIN LATERAL (${boughtBy('owner.user_id', 'lower($3)')} OFFSET 0) by_owner`,
);

@Injectable()
export class PurchasesService {
  constructor(private readonly database: Database) {}

  /** Completed purchases of the game by whom the selector names, newest first; for those who may edit the game. */
  async find(
    game_id: number,
    { email, user_id }: PurchaseSelector,
    editor_id: number,
  ): Promise<PurchaseRow[]> {
    const rows =
      user_id !== undefined
        ? await this.database.rowsFor(editor_id, PURCHASES_BY_USER, [game_id, editor_id, user_id])
        : await this.database.rowsFor(editor_id, PURCHASES_BY_EMAIL, [game_id, editor_id, email]);
    if (rows.length === 0) throw invalidGame();
    return rows[0]!.id === null ? [] : rows;
  }
}
