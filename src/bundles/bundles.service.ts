import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Database } from '../platform/database/database';
import type { Packed } from '../platform/database/packed-row';
import { bind, longRead, read } from '../platform/database/statement';
import { invalidBundle } from './records/errors';
import { invalidGame } from '../games/errors';
import { newDownloadKey } from '../purchases/keys/new-download-key';
import { claimKey, KEY_OF_GAME, LOCK_CLAIMER } from '../purchases/library/claim-key';
import { OWNED_KEY_ROW, type OwnedKeyRow } from '../purchases/library/owned-key.row';
import { selectBundlePurchases, ownsBundle } from '../purchases/ownership/bundle-purchases';
import type { BundleGamesRequest, ClaimGameRequest } from './bundle.dto';
import { BUNDLE_GAME_ROW, BUNDLE_KEY_ROW, type BundleGameRow, type BundleKeyRow } from './bundle.row';

const MAX_BUNDLES = 100;

// The bundles are found by an array of IDs: a join would read all bundles of the store, or a small table once
// per row.
export const OWNED_BUNDLES = longRead<Packed>(
  'owned_bundles',
  `WITH p AS MATERIALIZED (
     SELECT * FROM (
       SELECT DISTINCT ON (bundle_id) id, bundle_id, created_at FROM (${selectBundlePurchases('$user_id')}) owned
       ORDER BY bundle_id, created_at DESC, id DESC) newest
     ORDER BY created_at DESC, id DESC LIMIT ${MAX_BUNDLES})
   SELECT ${BUNDLE_KEY_ROW.sql}
   FROM p JOIN (SELECT * FROM bundles WHERE id = ANY (ARRAY(SELECT bundle_id FROM p)) OFFSET 0) b ON b.id = p.bundle_id
   ORDER BY p.created_at DESC, p.id DESC`,
  'user $user_id',
);

/** No row means that the user doesn't own the bundle, and a row of nulls that the page is empty. */
export const BUNDLE_GAMES = longRead<Packed>(
  'bundle_games',
  `SELECT page.* FROM bundles b LEFT JOIN LATERAL (
     SELECT ${BUNDLE_GAME_ROW.sql}, e.position AS place
     FROM bundle_games e JOIN games g ON g.id = e.game_id JOIN users u ON u.id = g.user_id
     WHERE e.bundle_id = b.id AND e.position > $offset::bigint AND e.position <= $offset::bigint + $limit::bigint
     ORDER BY e.position) page ON true
   WHERE b.id = $bundle_id AND ${ownsBundle('b.id', '$user_id')}
   ORDER BY page.place`,
  'user $user_id',
);

const isListed = (bundle: string, game: string) =>
  `EXISTS (SELECT FROM bundle_games WHERE bundle_id = ${bundle} AND game_id = ${game})`;

interface Claimable {
  /** Whether the user owns the bundle. */
  owned: boolean;
  /** Whether the game is in the bundle. */
  listed: boolean;
}

const CLAIMABLE = read<Claimable>(
  'claimable',
  `SELECT ${ownsBundle('$bundle_id::bigint', '$user_id')} AS owned, ${isListed('$bundle_id', '$game_id')} AS listed`,
);

/** Creates the key of a game that the player bought with the bundle. */
const CLAIM_KEY = claimKey(
  'claim',
  `${ownsBundle('$bundle_id::bigint', '$user_id')} AND ${isListed('$bundle_id', '$game_id')}`,
);

@Injectable()
export class BundlesService {
  constructor(private readonly database: Database) {}

  /** The bundles that the user owns, newest purchase first. */
  async owned(user_id: number): Promise<BundleKeyRow[]> {
    return (await this.database.rows(OWNED_BUNDLES, { user_id })).map(BUNDLE_KEY_ROW.read);
  }

  /** A page of a bundle's games in their order, for a user who owns the bundle. */
  async games(user_id: number, { bundle_id, page, per_page }: BundleGamesRequest): Promise<BundleGameRow[]> {
    const rows = await this.database.rows(BUNDLE_GAMES, {
      bundle_id,
      user_id,
      limit: per_page,
      offset: (page - 1) * per_page,
    });
    if (rows.length === 0) throw invalidBundle();
    return rows[0]!.packed === null ? [] : rows.map(BUNDLE_GAME_ROW.read);
  }

  /** The user's key for a game of a bundle that they own; creates one if they have none. */
  async claim(
    user_id: number,
    { bundle_id, game_id }: ClaimGameRequest,
    manager?: EntityManager,
  ): Promise<{ key: OwnedKeyRow; isNew: boolean }> {
    await this.requireClaimable(user_id, bundle_id, game_id, manager);
    const found = await this.database.row(KEY_OF_GAME, { user_id, game_id }, manager);
    if (found) return { key: OWNED_KEY_ROW.read(found), isNew: false };
    const getRows = await this.database.execute(
      [
        bind(LOCK_CLAIMER, { user_id }),
        bind(CLAIM_KEY, { user_id, game_id, key: newDownloadKey(), bundle_id }),
        bind(KEY_OF_GAME, { user_id, game_id }),
      ],
      manager,
    );
    const claimed = getRows(KEY_OF_GAME)[0];
    if (claimed) return { key: OWNED_KEY_ROW.read(claimed), isNew: getRows(CLAIM_KEY).length > 0 };
    await this.requireClaimable(user_id, bundle_id, game_id, manager);
    // The game was added to the bundle after the user's purchases.
    throw invalidGame();
  }

  private async requireClaimable(
    user_id: number,
    bundle_id: number,
    game_id: number,
    manager?: EntityManager,
  ): Promise<void> {
    const values = { user_id, bundle_id, game_id };
    const { owned, listed } = (await this.database.row(CLAIMABLE, values, manager))!;
    if (!owned) throw invalidBundle();
    if (!listed) throw invalidGame();
  }
}
