import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Database } from '../../platform/database/database';
import {
  nullableNumber,
  number,
  type Packed,
  PackedRow,
  type RowOf,
  text,
} from '../../platform/database/packed-row';
import { longRead, read, statement } from '../../platform/database/statement';
import { isStorable } from '../../platform/input/readers';
import { GAME_WITH_USER } from '../../games/game.row';
import { DownloadKey } from '../keys/download-key.entity';
import { selectBundlePurchases, ownsBundle } from '../ownership/bundle-purchases';
import { holdsKey, selectOwnedKeys, selectKeyOwner } from '../ownership/key-owners';
import { hasBought } from './ownership.service';

/** A game that a player owns, through a download key or a purchase without one; or a bundle that they own. */
export interface LibraryRow {
  /** Null: a bundle. */
  game_id: number | null;
  bundle: { id: number; games: number } | null;
  title: string;
  slug: string;
  owner_name: string;
  developer: string;
  traits: string[];
  cover_url: string | null;
  /** Time at which the player got it. */
  created_at: string;
  key: string | null;
  /** The receipt; null: the key was given away. */
  purchase: {
    id: number;
    created_at: string;
    source: string;
    currency: string;
    amount: number;
    status: string;
  } | null;
}

export const OWNED_GAMES_ON_A_PAGE = 24;

export interface LibraryQuery {
  page: number;
  /** A part of the title, or ''. */
  search: string;
  sort: 'recent' | 'title';
}

/** Maximum number of other games of a bundle that the page of a key lists. */
export const MAX_SOLD_TOGETHER = 100;

const liveKeys = (condition: string) =>
  `SELECT dk.id FROM download_keys dk WHERE ${condition} AND dk.revoked_at IS NULL`;

/**
 * One row more than fits on the page if there is a next page. `found`: conditions for the game `g` or the
 * bundle `b`, and the order, which need both before the page is selected.
 */
const selectLibrary = (order: string, found?: string) => `
  SELECT g.id AS game_id, coalesce(g.title, b.title) AS title, coalesce(g.slug, b.slug) AS slug, u.username AS owner_name,
     coalesce(u.display_name, u.username) AS developer, coalesce(g.traits, '{}') AS traits,
     CASE WHEN g.id IS NULL THEN b.cover_url ELSE g.cover_url END AS cover_url,
     owned.created_at, owned.key,
     CASE WHEN b.id IS NOT NULL THEN json_build_object('id', b.id, 'games', (
       SELECT count(DISTINCT pg.game_id) FROM (${selectBundlePurchases('$user_id', 'p.bundle_id = b.id')}) bought
       JOIN purchase_games pg ON pg.purchase_id = bought.id)) END AS bundle,
     CASE WHEN p.id IS NOT NULL THEN json_build_object('id', p.id, 'created_at', p.created_at::text,
       'source', p.source, 'currency', p.currency, 'amount', p.amount, 'status', p.status) END AS purchase
   FROM (
     SELECT owned.* FROM (
       SELECT k.game_id, NULL::bigint AS bundle_id, k.purchase_id, k.key, k.created_at
       FROM (${selectOwnedKeys('$user_id', liveKeys)}) own CROSS JOIN LATERAL (SELECT * FROM download_keys WHERE id = own.id OFFSET 0) k
       WHERE k.purchase_id IS NULL OR k.purchase_id NOT IN (SELECT id FROM (${selectBundlePurchases('$user_id')}) bundles)
       UNION ALL
       SELECT pg.game_id, NULL, pg.purchase_id, NULL, pg.sold_at
       FROM purchases p JOIN purchase_games pg ON pg.purchase_id = p.id
       WHERE p.user_id = $user_id AND p.status = 'complete' AND p.bundle_id IS NULL AND NOT EXISTS (
         SELECT FROM download_keys k WHERE k.purchase_id = pg.purchase_id AND k.game_id = pg.game_id)
       UNION ALL
       (SELECT DISTINCT ON (bundle_id) NULL, bundle_id, id, NULL, created_at FROM (${selectBundlePurchases('$user_id')}) bundles
        ORDER BY bundle_id, created_at DESC, id DESC)) owned
     ${
       found === undefined
         ? ''
         : `LEFT JOIN games g ON g.id = owned.game_id LEFT JOIN bundles b ON b.id = owned.bundle_id WHERE ${found}`
     }
     ORDER BY ${order} LIMIT ${OWNED_GAMES_ON_A_PAGE + 1} OFFSET $offset) owned
   LEFT JOIN games g ON g.id = owned.game_id
   LEFT JOIN bundles b ON b.id = owned.bundle_id
   JOIN users u ON u.id = coalesce(g.user_id, b.user_id)
   LEFT JOIN purchases p ON p.id = owned.purchase_id
   ORDER BY ${order}`;

const NEWEST_OWNED_FIRST = 'owned.created_at DESC, owned.game_id DESC, owned.bundle_id DESC';

const LIBRARY = longRead<LibraryRow>('library', selectLibrary(NEWEST_OWNED_FIRST), 'user $user_id');

const LIBRARY_FOUND = longRead<LibraryRow>(
  'library_found',
  selectLibrary(
    `CASE WHEN $by_title::boolean THEN lower(coalesce(g.title, b.title)) END, ${NEWEST_OWNED_FIRST}`,
    'strpos(lower(coalesce(g.title, b.title)), lower($search)) > 0',
  ),
  'user $user_id',
);

export type BundledGame = Pick<
  LibraryRow,
  'title' | 'slug' | 'owner_name' | 'developer' | 'traits' | 'cover_url'
> & { game_id: number };

// Games that were removed from the bundle are last.
const LIBRARY_BUNDLE = longRead<{ bundle: string } & (BundledGame | { game_id: null })>(
  'library_bundle',
  `SELECT b.title AS bundle, games.* FROM bundles b LEFT JOIN LATERAL (
     SELECT g.id AS game_id, g.title, g.slug, g.owner_name, coalesce(u.display_name, u.username) AS developer, g.traits, g.cover_url,
       e.position
     FROM (SELECT DISTINCT pg.game_id FROM (${selectBundlePurchases('$user_id', 'p.bundle_id = b.id')}) bought
           JOIN purchase_games pg ON pg.purchase_id = bought.id) owned
     JOIN games g ON g.id = owned.game_id AND strpos(lower(g.title), lower($search)) > 0
     JOIN users u ON u.id = g.user_id
     LEFT JOIN bundle_games e ON e.bundle_id = b.id AND e.game_id = g.id
     ORDER BY e.position, g.id LIMIT ${OWNED_GAMES_ON_A_PAGE + 1} OFFSET $offset) games ON true
   WHERE b.id = $bundle_id AND ${ownsBundle('b.id', '$user_id')}
   ORDER BY games.position, games.game_id`,
  'user $user_id',
);

/** No row: the key doesn't exist or is revoked. */
const KEY_PAGE_ROW = new PackedRow({
  ...GAME_WITH_USER,
  key_id: number('dk.id'),
  key_created_at: text('dk.created_at'),
  key_owner_id: nullableNumber(selectKeyOwner('dk')),
});

export type KeyPageRow = RowOf<typeof KEY_PAGE_ROW>;

export const KEY_PAGE = read<Packed>(
  'key_page',
  `SELECT ${KEY_PAGE_ROW.sql}
   FROM download_keys dk JOIN games g ON g.id = dk.game_id JOIN users u ON u.id = g.user_id
   WHERE dk.key = $key AND dk.revoked_at IS NULL`,
);

/** Titles of games that were sold together with the key. */
const SOLD_WITH_KEY = longRead<{ title: string }>(
  'games_sold_with_key',
  `SELECT g.title FROM download_keys dk JOIN purchase_games pg ON pg.purchase_id = dk.purchase_id AND pg.game_id <> dk.game_id
   JOIN games g ON g.id = pg.game_id
   WHERE dk.key = $key AND dk.revoked_at IS NULL ORDER BY g.id LIMIT ${MAX_SOLD_TOGETHER + 1}`,
);

/** Whether the user owns the game. */
const OWNS_GAME = read<{ owns: boolean }>(
  'owns_game',
  `SELECT ${holdsKey('g', '$user_id')} OR ${hasBought('$user_id')} AS owns FROM games g WHERE g.id = $game_id`,
);

/** `owned`: not claimed, because the user owns the game already. */
type Redemption = 'claimed' | 'already yours' | 'owned';

const LOCK_PURCHASE_OF_KEY = statement(
  'lock_purchase_of_key',
  'SELECT FROM purchases WHERE id = (SELECT purchase_id FROM download_keys WHERE key = $key) FOR SHARE',
);
const KEY_OWNER = statement<{ owner: number | null; title: string }>(
  'owner_of_key',
  `SELECT ${selectKeyOwner('k')} AS owner, g.title FROM download_keys k JOIN games g ON g.id = k.game_id WHERE k.id = $id`,
);

/** Lists what a player owns, and claims keys without an owner. */
@Injectable()
export class LibraryService {
  constructor(private readonly database: Database) {}

  /** One row more than fits on the page if there is a next page. */
  page(user_id: number, { page, search, sort }: LibraryQuery): Promise<LibraryRow[]> {
    const offset = (page - 1) * OWNED_GAMES_ON_A_PAGE;
    return search === '' && sort === 'recent'
      ? this.database.rows(LIBRARY, { user_id, offset })
      : this.database.rows(LIBRARY_FOUND, { user_id, offset, search, by_title: sort === 'title' });
  }

  /** What the page of a live key shows. */
  async keyPage(key: string): Promise<KeyPageRow | undefined> {
    // A text that can't be stored belongs to no key.
    const row = isStorable(key) ? await this.database.row(KEY_PAGE, { key }) : undefined;
    return row && KEY_PAGE_ROW.read(row);
  }

  /** The titles of at most MAX_SOLD_TOGETHER games, and one more if there are more. */
  async soldWithKey(key: string): Promise<string[]> {
    return (await this.database.rows(SOLD_WITH_KEY, { key })).map(({ title }) => title);
  }

  async owns(user_id: number, game_id: number): Promise<boolean> {
    return (await this.database.row(OWNS_GAME, { game_id, user_id }))?.owns ?? false;
  }

  /**
   * One page of a bundle's games in its order, with one more game if there is a next page. Undefined if the
   * user doesn't own the bundle.
   */
  async bundle(
    user_id: number,
    bundle_id: number,
    { page, search }: { page: number; search: string },
  ): Promise<{ title: string; games: BundledGame[] } | undefined> {
    const rows = await this.database.rows(LIBRARY_BUNDLE, {
      user_id,
      bundle_id,
      offset: (page - 1) * OWNED_GAMES_ON_A_PAGE,
      search,
    });
    if (rows.length === 0) return undefined;
    const isGame = (row: (typeof rows)[0]): row is { bundle: string } & BundledGame => row.game_id !== null;
    return { title: rows[0]!.bundle, games: rows.filter(isGame) };
  }

  /**
   * Gives the user a live key without an owner; unless `allowOwned`, only of a game that the user doesn't own. Undefined if
   * the key doesn't exist, or another account has it.
   */
  async redeem(db: EntityManager, user_id: number, key: string, { allowOwned }: { allowOwned: boolean }) {
    // A refund locks the purchase before the key, and the trigger that copies the buyer to the key locks it, too.
    await this.database.rows(LOCK_PURCHASE_OF_KEY, { key }, db);
    // The key's row is locked before it is read, so that only one of two players who enter it concurrently gets it.
    const found = await db
      .createQueryBuilder(DownloadKey, 'k')
      .select(['k.id', 'k.game_id'])
      .where('k.key = :key AND k.revoked_at IS NULL', { key })
      .setLock('pessimistic_write')
      .getOne();
    if (!found) return undefined;
    const { owner, title } = (await this.database.row(KEY_OWNER, { id: found.id }, db))!;
    if (owner !== null && owner !== user_id) return undefined;
    const isNew = owner === null;
    const isOwned = async () =>
      (await this.database.row(OWNS_GAME, { game_id: found.game_id, user_id }, db))!.owns;
    const result: Redemption = !isNew
      ? 'already yours'
      : !allowOwned && (await isOwned())
        ? 'owned'
        : 'claimed';
    if (result === 'claimed')
      await db.update(DownloadKey, { id: found.id }, { user_id, claimed_at: () => 'now()' });
    return { result, title, download_key_id: found.id };
  }
}
