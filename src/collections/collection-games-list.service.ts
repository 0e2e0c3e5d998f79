import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database';
import type { Packed } from '../platform/database/packed-row';
import { longRead } from '../platform/database/statement';
import { type RowsOrSlices, SHORT_LIST } from '../platform/output/list-streams';
import { canViewOfMany, isPublic } from '../games/visibility';
import type { CollectionGamesRequest } from './collection-game.dto';
import { COLLECTION_GAME_ROW } from './collection-game.row';
import { canViewCollection, invalidCollection } from './collection-access';
import { type CollectedGame, PER_PAGE } from './profile-collections.service';

const EVERYTHING = '9223372036854775807';

// Placeholder for a blurb that is too long to be read with many others: '' is never stored.
const SHORT_BLURB = `CASE WHEN octet_length(e.blurb) > ${SHORT_LIST.text_bytes} THEN '' ELSE e.blurb END AS blurb`;

/**
 * A page of the entries that the user can view, with positions that count all entries. The subqueries and
 * sums keep the planner on the index of sort keys; otherwise it would sort all entries of a large collection:
 * docs/contributing/decisions/performance.md.
 */
const selectPage = (from: { before: string; condition: string }) => `
  SELECT page.* FROM collections c
  LEFT JOIN (
    SELECT ${COLLECTION_GAME_ROW.sql}
    FROM (
      SELECT e.user_id, e.created_at, e.sort_key, ${SHORT_BLURB},
        e.game_id + 0 AS key_of_game, ${from.before} + row_number() OVER (ORDER BY e.sort_key) AS position
      FROM collection_games e
      WHERE e.collection_id = (SELECT $collection_id::bigint) ${from.condition}
      ORDER BY e.sort_key LIMIT (SELECT ${EVERYTHING})) e
    JOIN games g ON g.id + 0 = e.key_of_game
    WHERE ${canViewOfMany('g', '$user_id')}
    ORDER BY e.sort_key LIMIT $limit
  ) page ON true
  WHERE c.id = $collection_id AND ${canViewCollection('c', '$user_id')}`;

// A separate statement, because most requests are for the first page, which needs no search for its start.
export const FIRST_PAGE = longRead<Packed>(
  'collection_games_first_page',
  selectPage({ before: '0', condition: '' }),
  'user $user_id',
);

// Scans the index two more times: for the page's first visible entry, and to count all entries before it.
export const LATER_PAGE = longRead<Packed>(
  'collection_games_later_page',
  `WITH first AS (
     SELECT e.sort_key FROM collection_games e
     WHERE e.collection_id = (SELECT $collection_id::bigint) AND coalesce((
       SELECT false FROM games g WHERE g.id = e.game_id AND NOT ${isPublic('g')} AND NOT ${canViewOfMany('g', '$user_id')}), true)
     ORDER BY e.sort_key OFFSET $offset LIMIT 1),
   before AS (
     SELECT count(*) AS entries FROM collection_games e
     WHERE e.collection_id = (SELECT $collection_id::bigint) AND e.sort_key < (SELECT sort_key FROM first))
   ${selectPage({
     before: '(SELECT entries FROM before)',
     condition: 'AND e.sort_key >= (SELECT sort_key FROM first)',
   })}`,
  'user $user_id',
);

// Slice length for the longest entries.
const LONG_BLURBS_AT_ONCE = 4;
const LONG_BLURBS = longRead<{ game_id: number; blurb: string | null }>(
  'collection_games_long_blurbs',
  'SELECT game_id, blurb FROM collection_games WHERE collection_id = $collection_id AND game_id = ANY ($game_ids::bigint[])',
);

/** Pages of the games in a collection. */
@Injectable()
export class CollectionGamesListService {
  constructor(private readonly database: Database) {}

  async page(
    user_id: number,
    { collection_id, page, per_page }: CollectionGamesRequest,
  ): Promise<RowsOrSlices<Packed>> {
    const rows = await this.entries(user_id, collection_id, (page - 1) * per_page, per_page);
    if (rows.length === 0) throw invalidCollection();
    // An empty page is one row without an entry.
    if (rows[0]!.packed === null) return [];
    return rows.some(({ blurb }) => blurb === '') ? this.entrySlices(collection_id, rows) : rows;
  }

  /** A page of PER_PAGE games for a list without notes: one more if there is a next page. */
  async titles(user_id: number, collection_id: number, page: number): Promise<CollectedGame[]> {
    const rows = await this.entries(user_id, collection_id, (page - 1) * PER_PAGE, PER_PAGE + 1);
    return rows
      .filter(({ packed }) => packed !== null)
      .map((row) => {
        const { id, title, owner_name, slug, cover_url, position } = COLLECTION_GAME_ROW.read(row);
        return { game_id: id, title, owner_name, slug, cover_url, position };
      });
  }

  /** Returns no row if the user can't view the collection, and one without an entry if the page is empty. */
  private entries(user_id: number, collection_id: number, offset: number, limit: number): Promise<Packed[]> {
    const values = { collection_id, user_id, limit };
    return offset === 0
      ? this.database.rows(FIRST_PAGE, values)
      : this.database.rows(LATER_PAGE, { ...values, offset });
  }

  private async *entrySlices(collection_id: number, rows: Packed[]): AsyncGenerator<Packed[]> {
    for (let start = 0, end = 0; start < rows.length; start = end) {
      const long: number[] = [];
      while (end < rows.length && long.length < LONG_BLURBS_AT_ONCE) {
        const row = rows[end++]!;
        if (row.blurb === '') long.push(COLLECTION_GAME_ROW.read(row).id);
      }
      const read = await this.database.rows(LONG_BLURBS, { collection_id, game_ids: long });
      const blurbs = new Map(read.map(({ game_id, blurb }) => [game_id, blurb]));
      yield rows
        .slice(start, end)
        .map((row) =>
          row.blurb === '' ? { ...row, blurb: blurbs.get(COLLECTION_GAME_ROW.read(row).id) } : row,
        );
    }
  }
}
