import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { StoreLinks } from '../platform/config/store-links';
import { Database } from '../platform/database/database';
import type { Packed } from '../platform/database/packed-row';
import { bind, statement } from '../platform/database/statement';
import { invalidGame } from '../games/errors';
import { canView } from '../games/visibility';
import {
  type AddGameRequest,
  collectionGameResponse,
  type OneCollectionGameResponse,
  type OrderRequest,
  type RemovedResponse,
  type RemoveGameRequest,
  type UpdateCollectionGameRequest,
} from './collection-game.dto';
import { COLLECTION_GAME_ROW } from './collection-game.row';
import type { SuccessResponse } from '../platform/output/success-response';
import { COLLECTION, type CollectionAccess, notInCollection, writeCollection } from './collection-access';

/** A write that returns the entry. Without one, `packed` is null. */
type EntryWrite = CollectionAccess & Packed;

/** A part of a WITH clause: the game, if the user may view it. */
const GAME = `game AS (SELECT g.* FROM games g WHERE g.id = $game_id AND ${canView('g', '$user_id')})`;

/**
 * The entry that a write changed, or the stored one. It is read by the statement that writes, because a later one could
 * find that the game has become private, after the write. The position is computed from the entries after the game,
 * because games are added at the end.
 */
const writtenEntry = (changed: string, games_count: string) => `(
  SELECT ${COLLECTION_GAME_ROW.sql}
  FROM (
    SELECT e.*, ${games_count} - (
      SELECT count(*) FROM collection_games later
      WHERE later.collection_id = e.collection_id AND later.sort_key > e.sort_key) AS position
    FROM (
      SELECT * FROM ${changed}
      UNION ALL
      SELECT * FROM collection_games
      WHERE collection_id = $collection_id AND game_id = $game_id AND NOT EXISTS (SELECT FROM ${changed})) e
    JOIN collections c ON c.id = e.collection_id) e
  JOIN game g ON g.id = e.game_id) entry`;

export const ADD_GAME = statement<EntryWrite>(
  'collection_games_add',
  `WITH ${COLLECTION},
   ${GAME},
   added AS (
     INSERT INTO collection_games (collection_id, game_id, sort_key, blurb, user_id)
     SELECT collection.id, game.id,
       coalesce((SELECT max(e.sort_key) FROM collection_games e WHERE e.collection_id = $collection_id), 0) + 1, $blurb, $user_id
     FROM collection, game WHERE collection.editable
     ON CONFLICT (collection_id, game_id) DO NOTHING
     RETURNING *),
   counted AS (
     UPDATE collections c SET games_count = c.games_count + 1, updated_at = clock_timestamp()
     FROM added WHERE c.id = added.collection_id)
   SELECT collection.editable, entry.*
   FROM collection LEFT JOIN ${writtenEntry('added', 'c.games_count + (SELECT count(*) FROM added)')} ON true`,
);

const REMOVE_GAME = statement<CollectionAccess & { removed: boolean }>(
  'collection_games_remove',
  `WITH ${COLLECTION},
   removed AS (
     DELETE FROM collection_games e USING collection
     WHERE e.collection_id = collection.id AND e.game_id = $game_id AND collection.editable
     RETURNING e.collection_id),
   counted AS (
     UPDATE collections c SET games_count = c.games_count - 1, updated_at = clock_timestamp()
     FROM removed WHERE c.id = removed.collection_id)
   SELECT collection.editable, EXISTS (SELECT FROM removed) AS removed FROM collection`,
);

// NULL leaves a blurb unchanged. '' clears a blurb and is never stored.
const UPDATE_ENTRY = statement<EntryWrite>(
  'collection_games_update',
  `WITH ${COLLECTION},
   ${GAME},
   updated AS (
     UPDATE collection_games e SET blurb = nullif($blurb::text, ''),
       blurb_user_id = CASE WHEN $blurb::text <> '' THEN nullif($user_id, e.user_id) END
     FROM collection, game
     WHERE e.collection_id = collection.id AND e.game_id = game.id AND collection.editable AND $blurb::text <> coalesce(e.blurb, '')
     RETURNING e.*),
   touched AS (
     UPDATE collections c SET updated_at = clock_timestamp()
     FROM updated WHERE c.id = updated.collection_id)
   SELECT collection.editable, entry.*
   FROM collection LEFT JOIN ${writtenEntry('updated', 'c.games_count')} ON true`,
);

// The listed games get keys below all others, so that no other row is written, unless they are already in
// this order.
export const REORDER_GAMES = statement<CollectionAccess>(
  'collection_games_order',
  `WITH ${COLLECTION},
   removed AS (
     DELETE FROM collection_games e USING collection
     WHERE e.collection_id = collection.id AND e.game_id = ANY($remove_game_ids::bigint[]) AND collection.editable
     RETURNING e.game_id),
   front AS (
     SELECT min(e.sort_key) - cardinality($game_ids::bigint[]) - 1 AS sort_key FROM collection_games e WHERE e.collection_id = $collection_id),
   listed AS (
     SELECT e.game_id, e.sort_key, place, e.sort_key < lag(e.sort_key) OVER (ORDER BY place) AS too_late
     FROM unnest($game_ids::bigint[]) WITH ORDINALITY AS listed (game_id, place) JOIN collection_games e USING (game_id)
     WHERE e.collection_id = $collection_id AND e.game_id <> ALL($remove_game_ids)),
   moved AS (
     UPDATE collection_games e SET sort_key = front.sort_key + listed.place
     FROM collection, front, listed
     WHERE e.collection_id = $collection_id AND e.game_id = listed.game_id AND collection.editable
       AND (EXISTS (SELECT FROM listed WHERE too_late)
         OR EXISTS (SELECT FROM collection_games before
                    WHERE before.collection_id = $collection_id AND before.sort_key < (SELECT max(sort_key) FROM listed)
                      AND before.game_id <> ALL($game_ids) AND before.game_id <> ALL($remove_game_ids)))
     RETURNING e.game_id),
   counted AS (
     UPDATE collections c
     SET games_count = c.games_count - (SELECT count(*) FROM removed), updated_at = clock_timestamp()
     FROM collection WHERE c.id = collection.id
       AND (EXISTS (SELECT FROM removed) OR EXISTS (SELECT FROM moved)))
   SELECT collection.editable FROM collection`,
);

@Injectable()
export class CollectionGamesService {
  constructor(
    private readonly database: Database,
    private readonly links: StoreLinks,
  ) {}

  /** Appends the game; if it is already in the collection, its entry stays unchanged. */
  async add(
    user_id: number,
    { collection_id, game_id, blurb }: AddGameRequest,
    manager?: EntityManager,
  ): Promise<OneCollectionGameResponse> {
    const added = bind(ADD_GAME, { collection_id, user_id, game_id, blurb });
    const entry = await writeCollection(this.database, user_id, collection_id, added, manager);
    if (entry.packed === null) throw invalidGame();
    return { collection_game: collectionGameResponse(collection_id, entry, this.links) };
  }

  async remove(
    user_id: number,
    { collection_id, game_id }: RemoveGameRequest,
    manager?: EntityManager,
  ): Promise<RemovedResponse> {
    const removed = bind(REMOVE_GAME, { collection_id, user_id, game_id });
    const row = await writeCollection(this.database, user_id, collection_id, removed, manager);
    return { success: true, removed: row.removed };
  }

  /** Doesn't update an entry whose game the user can't view, because the response would show the game. */
  async update(
    user_id: number,
    { collection_id, game_id, blurb }: UpdateCollectionGameRequest,
    manager?: EntityManager,
  ): Promise<OneCollectionGameResponse> {
    const updated = bind(UPDATE_ENTRY, {
      collection_id,
      user_id,
      game_id,
      blurb: blurb === null ? '' : blurb,
    });
    const entry = await writeCollection(this.database, user_id, collection_id, updated, manager);
    if (entry.packed === null) throw notInCollection();
    return { collection_game: collectionGameResponse(collection_id, entry, this.links) };
  }

  /**
   * Removes games first. The listed games then come first in that order, followed by the others in their
   * current order.
   */
  async order(
    user_id: number,
    { collection_id, game_ids, remove_game_ids }: OrderRequest,
    manager?: EntityManager,
  ): Promise<SuccessResponse> {
    const ordered = bind(REORDER_GAMES, { collection_id, user_id, game_ids, remove_game_ids });
    await writeCollection(this.database, user_id, collection_id, ordered, manager);
    return { success: true };
  }
}
