import { Injectable } from '@nestjs/common';
import { canEdit, editedBy } from '../../games/visibility';
import { Database } from '../../platform/database/database';
import { prefixColumns, longRead } from '../../platform/database/statement';
import type { Purchase } from '../purchase.entity';
import { BUYER_ACCOUNT_ID } from '../purchase.row';

const LISTED_SALE_COLUMNS = [
  'id',
  'created_at',
  'email',
  'source',
  'currency',
  'amount',
  'sale_rate',
  'quantity',
  'donation',
  'purchase_type',
] as const satisfies (keyof Purchase)[];

/** A sale of one or several games of a seller. */
export interface ListedSale extends Pick<Purchase, (typeof LISTED_SALE_COLUMNS)[number]> {
  status: 'complete' | 'refunded';
  reference: string | null;
  /** The username of the account that bought it, otherwise of the one that verified the email address. */
  username: string | null;
  /** The title of the bundle that was sold. */
  bundle: string | null;
  /** The seller's own games in it; one more than MAX_OF_SALE if there are more. */
  games: { id: number; title: string }[];
  /**
   * The live keys of these games, those of them that are claimed, and the downloads with them. One more than
   * MAX_OF_SALE are counted if there are more.
   */
  keys: number;
  claimed: number;
  downloads: number;
}

/** A position in the list. */
export interface Place {
  sold_at: string;
  purchase_id: number;
}

export interface SalesFilter {
  game_id?: number;
  /** The start of the period. `until` is the first instant after it. */
  since?: string;
  until?: string;
  currency?: string;
  status?: 'complete' | 'refunded';
  /** Compared without regard to case. A space also matches an underscore. */
  source?: string;
}

interface Slice {
  /** Sales in the order in which they were read. */
  sales: ListedSale[];
  /** Where a later read continues; undefined: there are no more sales. */
  next: Place | undefined;
}

export type Direction = 'older' | 'newer';

/** Maximum number of games, and of keys, that are read for each sale. */
export const MAX_OF_SALE = 100;
const SALES_PER_SLICE = 500;

// Maximum number of games whose sales are read for one slice. A page has 50 sales, so these games are enough
// unless most of the sales are bundles of the same games.
export const GAMES_READ = 200;
// A filter reads all games, up to these numbers of games and sales in total.
export const FILTERED_GAMES_READ = 10_000;
const FILTERED_SALES_READ = 20_000;

export const FIRST_PLACE: Record<Direction, Place> = {
  older: { sold_at: 'infinity', purchase_id: Number.MAX_SAFE_INTEGER },
  newer: { sold_at: '-infinity', purchase_id: 0 },
};

export const ORDERS = {
  older: { order: 'DESC', beyond: '<', within: '>=' },
  newer: { order: 'ASC', beyond: '>', within: '<=' },
} as const;

const sourceText = (text: string) => `replace(lower_ascii(${text}), '_', ' ')`;

interface ReadSale extends ListedSale {
  sold_at: string;
}
type Row = (ReadSale | { id: null }) & { ends_at: string | null; ends_with: number | null };

/**
 * The next sales of all games that the user can edit, or only of one, from the place `$sold_at`,
 * `$purchase_id` on: `found`, with some of them repeated. It reads the next sale of each game, then
 * `$sales_per_game` of those `$games_read` that have the next ones of all. They are complete up to the place
 * where the first of the other games, or of the sales that were not read, would follow: `complete_to`. No
 * row: all were read.
 */
export const nextSales = ({ order, beyond }: (typeof ORDERS)[Direction]) => {
  const place = (sales: string) => `${sales}.sold_at ${order}, ${sales}.purchase_id ${order}`;
  const sales = (columns: string, count: string) => `
    SELECT sold_at, purchase_id${columns} FROM purchase_games
    WHERE game_id = g.id AND sold_at >= $since::timestamptz AND sold_at < $until::timestamptz
      AND (sold_at, purchase_id) ${beyond} ($sold_at::timestamptz, $purchase_id)
    ORDER BY sold_at ${order}, purchase_id ${order} LIMIT ${count}`;
  return `edited AS MATERIALIZED (
       SELECT own.id FROM (${editedBy('$user_id')}) own WHERE $game_id::bigint IS NULL OR own.id = $game_id),
     next_of_games AS MATERIALIZED (
       SELECT g.id, s.sold_at, s.purchase_id FROM edited g CROSS JOIN LATERAL (${sales('', '1')}) s
       ORDER BY ${place('s')} LIMIT $games_read::int + 1),
     limits AS MATERIALIZED (
       SELECT coalesce($sales_per_game::int, greatest(4, ${FILTERED_SALES_READ} / greatest(count(*), 1)))::int AS sales FROM next_of_games),
     found AS MATERIALIZED (
       SELECT g.id AS game_id, s.*
       FROM (SELECT * FROM next_of_games n ORDER BY ${place('n')} LIMIT $games_read::int) g
       CROSS JOIN LATERAL (${sales(`, row_number() OVER (ORDER BY sold_at ${order}, purchase_id ${order}) AS rank`, '(SELECT sales FROM limits)')}) s),
     complete_to AS MATERIALIZED (
       SELECT sold_at, purchase_id FROM (
         (SELECT sold_at, purchase_id FROM next_of_games n ORDER BY ${place('n')} OFFSET $games_read::int LIMIT 1)
         UNION ALL SELECT sold_at, purchase_id FROM found WHERE rank = (SELECT sales FROM limits)) e
       ORDER BY ${place('e')} LIMIT 1)`;
};

const list = (name: string, direction: Direction) => {
  const { order, within } = ORDERS[direction];
  return longRead<Row>(
    name,
    `WITH ${nextSales(ORDERS[direction])}
     SELECT e.sold_at AS ends_at, e.purchase_id AS ends_with, l.*
     FROM (SELECT) one LEFT JOIN complete_to e ON true
     LEFT JOIN LATERAL (
       SELECT p.sold_at, ${prefixColumns('p', LISTED_SALE_COLUMNS)}, p.status,
         (SELECT reference FROM purchase_references WHERE purchase_id = p.id) AS reference,
         (SELECT username FROM users WHERE id = ${BUYER_ACCOUNT_ID}) AS username,
         (SELECT title FROM bundles WHERE id = p.bundle_id) AS bundle,
         own.*, k.*
       FROM (
         SELECT c.sold_at, p.* FROM (
           SELECT DISTINCT sold_at, purchase_id FROM (
             SELECT sold_at, purchase_id FROM found UNION ALL SELECT sold_at, purchase_id FROM complete_to) both_parts
           WHERE e.purchase_id IS NULL OR (sold_at, purchase_id) ${within} (e.sold_at, e.purchase_id)
           ORDER BY sold_at ${order}, purchase_id ${order}) c
         CROSS JOIN LATERAL (SELECT * FROM purchases WHERE id = c.purchase_id OFFSET 0) p
         WHERE p.currency = coalesce($currency, p.currency) AND p.status = coalesce($status, p.status)
           AND ($source::text IS NULL OR ${sourceText('p.source')} = ${sourceText('$source')})
         ORDER BY c.sold_at ${order}, c.purchase_id ${order} LIMIT $limit) p
       CROSS JOIN LATERAL (
         SELECT coalesce(json_agg(json_build_object('id', g.id, 'title', g.title) ORDER BY g.id), '[]') AS games
         FROM (SELECT g.id, g.title FROM purchase_games pg JOIN games g ON g.id = pg.game_id
               WHERE pg.purchase_id = p.id AND ${canEdit('g', '$user_id')} ORDER BY g.id LIMIT ${MAX_OF_SALE + 1}) g) own
       CROSS JOIN LATERAL (
         SELECT count(*) AS keys, count(dk.user_id) AS claimed, coalesce(sum(dk.downloads), 0)::float8 AS downloads
         FROM (SELECT k.user_id, k.downloads, k.game_id FROM download_keys k
               WHERE k.purchase_id = p.id AND k.revoked_at IS NULL LIMIT ${MAX_OF_SALE + 1}) dk
         JOIN games g ON g.id = dk.game_id AND ${canEdit('g', '$user_id')}) k) l ON true
     ORDER BY l.sold_at ${order}, l.id ${order}`,
    'user $user_id',
  );
};

export const SALES_LISTS = {
  older: list('seller_sales', 'older'),
  newer: list('seller_sales_before', 'newer'),
};

const SELLER_GAMES = longRead<{ id: number; title: string }>(
  'seller_game_titles',
  `SELECT g.id, g.title FROM (SELECT id FROM (${editedBy('$seller_id')}) own ORDER BY id DESC LIMIT $limit) newest
   JOIN games g ON g.id = newest.id ORDER BY g.title, g.id`,
  'user $seller_id',
);

/** All sales of the games that a user can edit. */
@Injectable()
export class SalesListService {
  constructor(private readonly database: Database) {}

  /**
   * The next sales in a direction, in its order. If few sales match, there are fewer of them, but still a
   * next place.
   */
  async slice(
    seller_id: number,
    { game_id, since = '-infinity', until = 'infinity', currency, status, source }: SalesFilter,
    limit: number,
    direction: Direction = 'older',
    from: Place = FIRST_PLACE[direction],
  ): Promise<Slice> {
    const isFiltered = (currency ?? status ?? source) !== undefined;
    const rows = await this.database.rows(SALES_LISTS[direction], {
      user_id: seller_id,
      game_id: game_id ?? null,
      since,
      until,
      ...from,
      games_read: isFiltered ? FILTERED_GAMES_READ : GAMES_READ,
      sales_per_game: isFiltered ? null : limit + 1,
      currency: currency ?? null,
      status: status ?? null,
      source: source ?? null,
      limit: limit + 1,
    });
    const found = rows.filter((row): row is typeof row & ReadSale => row.id !== null);
    const sales = found.slice(0, limit);
    const last = sales.at(-1);
    if (found.length > limit) return { sales, next: { sold_at: last!.sold_at, purchase_id: last!.id } };
    const { ends_at, ends_with } = rows[0]!;
    return { sales, next: ends_at === null ? undefined : { sold_at: ends_at, purchase_id: ends_with! } };
  }

  /** All matching sales, newest first. */
  async *all(seller_id: number, filter: SalesFilter): AsyncGenerator<ListedSale[]> {
    for (let from: Place | undefined = FIRST_PLACE.older; from;) {
      const slice: Slice = await this.slice(seller_id, filter, SALES_PER_SLICE, 'older', from);
      yield slice.sales;
      from = slice.next;
    }
  }

  /** The games that a user can edit, by title; of many, the newest ones. */
  gameTitles(seller_id: number, limit: number): Promise<{ id: number; title: string }[]> {
    return this.database.rows(SELLER_GAMES, { seller_id, limit });
  }
}
