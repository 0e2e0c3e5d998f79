import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database';
import { longRead, read, type Values } from '../platform/database/statement';
import { invalidGame } from '../games/errors';
import { canEdit } from '../games/visibility';
import type { RowsOrSlices } from '../platform/output/list-streams';
import type { PurchasesRequest } from './purchase.dto';
import { PURCHASE_ROW, type PurchaseRow } from './purchase.row';

// Maximum number of rows of one statement. It is low because a bundle may have thousands of games.
export const PURCHASES_PER_SLICE = 100;

/** `bought` selects the purchases of the game by `$user_id` or `$email`. */
const completed = (bought: string) => `(SELECT DISTINCT purchase_id FROM (${bought}) bought) bought
  JOIN purchases p ON p.id = bought.purchase_id AND p.status = 'complete'`;

const NEWEST_PURCHASES_FIRST = 'p.created_at DESC, p.id DESC';

/**
 * Reads at most one row more than a short list has. No row: the user can't edit the game. A row of nulls:
 * no purchases.
 */
const lookup = (name: string, bought: string) =>
  read<PurchaseRow>(
    name,
    `SELECT p.* FROM games g LEFT JOIN LATERAL (SELECT ${PURCHASE_ROW} FROM ${completed(bought)}) p ON true
     WHERE g.id = $game_id AND ${canEdit('g', '$editor_id')} ORDER BY ${NEWEST_PURCHASES_FIRST} LIMIT ${PURCHASES_PER_SLICE + 1}`,
  );

const purchaseSlices = (name: string, bought: string) =>
  longRead<{ ids: string }>(
    name,
    `SELECT array_agg(p.id ORDER BY p.place)::text AS ids
     FROM games g CROSS JOIN LATERAL (
       SELECT p.id, row_number() OVER (ORDER BY ${NEWEST_PURCHASES_FIRST}) AS place FROM ${completed(bought)}) p
     WHERE g.id = $game_id AND ${canEdit('g', '$editor_id')}
     GROUP BY (p.place - 1) / ${PURCHASES_PER_SLICE} ORDER BY (p.place - 1) / ${PURCHASES_PER_SLICE}`,
    'user $editor_id',
  );

const PURCHASES_OF_SLICE = longRead<PurchaseRow>(
  'purchases_slice',
  `SELECT ${PURCHASE_ROW}
   FROM unnest($ids::bigint[]) WITH ORDINALITY AS listed (id, place)
   JOIN purchases p ON p.id = listed.id AND p.status = 'complete' ORDER BY listed.place`,
);

const boughtFrom = (address: string) =>
  `SELECT purchase_id FROM purchase_games WHERE game_id = g.id AND email = ${address}`;

/** A user's purchases of the game `g`. Without OFFSET 0, PostgreSQL may read all purchases of the game. */
export const boughtBy = (user: string, butFrom = '') => `
  SELECT purchase_id FROM purchase_games WHERE game_id = g.id AND user_id = ${user}
  UNION ALL SELECT purchase_id
  FROM user_emails ue CROSS JOIN LATERAL (${boughtFrom('ue.email')} OFFSET 0) from_address
  WHERE ue.user_id = ${user} AND ue.verified ${butFrom && `AND ue.email <> ${butFrom}`}`;

const BY_USER = boughtBy('$user_id');
/** Purchases of the game `g` with the email address, and by the account that verified it. */
const BY_EMAIL = `${boughtFrom('lower_ascii($email)')}
   UNION ALL SELECT by_owner.purchase_id
   FROM (SELECT user_id FROM user_emails WHERE email = lower_ascii($email) AND verified OFFSET 0) owner
   CROSS JOIN LATERAL (${boughtBy('owner.user_id', 'lower_ascii($email)')} OFFSET 0) by_owner`;

export const PURCHASES_BY_USER = lookup('purchases_by_user', BY_USER);
export const PURCHASES_BY_EMAIL = lookup('purchases_by_email', BY_EMAIL);
const SLICES_BY_USER = purchaseSlices('purchases_by_user_slices', BY_USER);
const SLICES_BY_EMAIL = purchaseSlices('purchases_by_email_slices', BY_EMAIL);

@Injectable()
export class PurchasesService {
  constructor(private readonly database: Database) {}

  /** The buyer's completed purchases of the game, newest first; only for users who can edit the game. */
  async find(
    { game_id, email, user_id }: PurchasesRequest,
    editor_id: number,
  ): Promise<RowsOrSlices<PurchaseRow>> {
    const values = { game_id, editor_id, user_id, email };
    const rows = await this.database.rows(
      user_id === undefined ? PURCHASES_BY_EMAIL : PURCHASES_BY_USER,
      values,
    );
    if (rows.length === 0) throw invalidGame();
    if (rows[0]!.id === null) return [];
    if (rows.length <= PURCHASES_PER_SLICE) return rows;
    return this.slices(user_id === undefined ? SLICES_BY_EMAIL : SLICES_BY_USER, values);
  }

  /** The first statement selects and orders the purchases; the others read them. */
  private async *slices(statement: typeof SLICES_BY_USER, values: Values): AsyncGenerator<PurchaseRow[]> {
    for (const { ids } of await this.database.rows(statement, values))
      yield await this.database.rows(PURCHASES_OF_SLICE, { ids });
  }
}
