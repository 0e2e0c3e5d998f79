import { Injectable } from '@nestjs/common';
import { StoreLinks } from '../config/store-links';
import { Database } from '../database/database';
import { statement } from '../database/statement';
import type { Statements } from '../database/pool/transactions';
import { invalidGame } from '../games/refusals';
import { canView } from '../games/visibility';
import {
  type CollectionAnswer,
  collectionAnswer,
  type CollectionRow,
  type CreateCollectionRequest,
  type UpdateCollectionRequest,
} from './collection.dto';
import { cannotEdit, invalidCollection } from './refusals';
import { CollectionLock } from './collection-lock';
import { canEditCollection, canViewCollection } from './visibility';

const COLUMNS = (c: string) =>
  ['id', 'user_id', 'title', 'private', 'description', 'layout', 'games_count', 'created_at', 'updated_at']
    .map((column) => `${c}.${column}`)
    .join(', ');

const ONE = statement<CollectionRow>(
  'collection',
  `SELECT ${COLUMNS('c')} FROM collections c WHERE c.id = $1 AND ${canViewCollection('c', '$2')}`,
);

const editableBy = (user: string, more: string) => `
  SELECT ${COLUMNS('c')} ${more} FROM (
    SELECT * FROM collections WHERE user_id = ${user}
    UNION ALL
    SELECT c.* FROM collection_admins ca JOIN collections c ON c.id = ca.collection_id
    WHERE ca.user_id = ${user} AND c.user_id <> ${user}
  ) c ORDER BY c.updated_at DESC, c.id DESC`;

const LIST = statement<CollectionRow>('collections_editable', editableBy('$1', ''));

const LIST_WITH_GAME = statement<CollectionRow>(
  'collections_editable_with_game',
  editableBy(
    '$1',
    `, EXISTS (SELECT FROM collection_games e WHERE e.collection_id = c.id AND e.game_id = $2) AS has_game`,
  ),
);

// A username may be longer than a title: the part of it that leaves room for the rest.
export const CREATE = statement<CollectionRow>(
  'collection_create',
  `WITH game AS (SELECT g.id FROM games g WHERE g.id = $6 AND ${canView('g', '$1')}),
   collection AS (
     INSERT INTO collections (user_id, title, private, description, layout, games_count)
     SELECT u.id, coalesce($2, left(u.username, 47) || '''s Collection'), $3, $4, $5, (SELECT count(*) FROM game)
     FROM users u WHERE u.id = $1 AND ($6::bigint IS NULL OR EXISTS (SELECT FROM game))
     RETURNING *),
   entry AS (
     INSERT INTO collection_games (collection_id, game_id, sort_key, blurb, user_id)
     SELECT collection.id, game.id, 1, $7, $1 FROM collection, game)
   SELECT ${COLUMNS('collection')} FROM collection`,
);

// $3 to $6 NULL: as it stands. A description is cleared by '', which is never stored.
const UPDATE = statement<CollectionRow & { editable: boolean }>(
  'collection_update',
  `WITH seen AS (
     SELECT c.id, ${canEditCollection('c', '$2')} AS editable FROM collections c
     WHERE c.id = $1 AND ${canViewCollection('c', '$2')}),
   shown AS (
     INSERT INTO profile_collections (collection_id, user_id)
     SELECT id, $2 FROM seen WHERE editable AND $7::boolean ON CONFLICT DO NOTHING),
   hidden AS (
     DELETE FROM profile_collections p USING seen
     WHERE p.collection_id = seen.id AND p.user_id = $2 AND editable AND NOT $7::boolean),
   updated AS (
     UPDATE collections c SET
       title = coalesce($3, c.title),
       description = nullif(coalesce($4, c.description), ''),
       private = coalesce($5, c.private),
       layout = coalesce($6, c.layout),
       updated_at = CASE WHEN coalesce($3 = c.title, true) AND coalesce($4 = coalesce(c.description, ''), true)
         AND coalesce($5 = c.private, true) AND coalesce($6 = c.layout, true)
         THEN c.updated_at ELSE clock_timestamp() END
     FROM seen WHERE c.id = seen.id AND editable
     RETURNING ${COLUMNS('c')})
   SELECT seen.editable, ${COLUMNS('updated')} FROM seen LEFT JOIN updated ON true`,
);

const DELETE = statement<{ editable: boolean }>(
  'collection_delete',
  `WITH seen AS (
     SELECT c.id, ${canEditCollection('c', '$2')} AS editable FROM collections c
     WHERE c.id = $1 AND ${canViewCollection('c', '$2')}),
   deleted AS (DELETE FROM collections c USING seen WHERE c.id = seen.id AND editable)
   SELECT seen.editable FROM seen`,
);

const ANY = statement<CollectionRow>(
  'collection_any',
  `SELECT ${COLUMNS('c')} FROM collections c WHERE c.id = $1`,
);

const EDITORS = statement<Editor>(
  'collection_editors',
  `SELECT u.username, e.role, EXISTS (
     SELECT FROM profile_collections p WHERE p.collection_id = $1 AND p.user_id = e.user_id) AS on_profile
   FROM (
     SELECT c.user_id, 'owner' AS role FROM collections c WHERE c.id = $1
     UNION ALL
     SELECT ca.user_id, 'admin' FROM collection_admins ca JOIN collections c ON c.id = ca.collection_id
     WHERE ca.collection_id = $1 AND ca.user_id <> c.user_id) e
   JOIN users u ON u.id = e.user_id
   ORDER BY e.role = 'admin', lower(u.username)`,
);

/** Somebody who may edit a collection. */
export interface Editor {
  username: string;
  role: 'owner' | 'admin';
  /** Whether it shows on this user's profile. */
  on_profile: boolean;
}

@Injectable()
export class CollectionsService {
  constructor(
    private readonly database: Database,
    private readonly links: StoreLinks,
    private readonly lock: CollectionLock,
  ) {}

  /** Those that the user owns or administers, last updated first. */
  async editableBy(user_id: number, game_id?: number): Promise<CollectionAnswer[]> {
    const rows =
      game_id === undefined
        ? await this.database.rowsFor(user_id, LIST, [user_id])
        : await this.database.rowsFor(user_id, LIST_WITH_GAME, [user_id, game_id]);
    return rows.map((row) => collectionAnswer(row, this.links));
  }

  async one(id: number, user_id: number): Promise<CollectionAnswer> {
    const row = await this.database.row(ONE, [id, user_id]);
    if (!row) throw invalidCollection();
    return collectionAnswer(row, this.links);
  }

  /** Any collection with those who may edit it: for operators, who see all. */
  async withEditors(id: number): Promise<{ collection: CollectionAnswer; editors: Editor[] } | undefined> {
    const row = await this.database.row(ANY, [id]);
    if (!row) return undefined;
    const editors = await this.database.rows(EDITORS, [id]);
    return { collection: collectionAnswer(row, this.links), editors };
  }

  async create(db: Statements, user_id: number, request: CreateCollectionRequest): Promise<CollectionAnswer> {
    const { title, private: hidden = false, description, game_id } = request;
    const blurb = game_id === undefined ? undefined : request.blurb;
    const layout = request.layout ?? (blurb ? 'list' : 'grid');
    const row = await db.row(CREATE, [user_id, title || null, hidden, description, layout, game_id, blurb]);
    if (!row) throw invalidGame();
    return collectionAnswer(row, this.links);
  }

  async update(db: Statements, user_id: number, request: UpdateCollectionRequest): Promise<CollectionAnswer> {
    const { collection_id, title, description, private: hidden, layout, on_profile } = request;
    this.lock.take(db, collection_id, user_id);
    const row = await db.row(UPDATE, [
      collection_id,
      user_id,
      title,
      description === null ? '' : description,
      hidden,
      layout,
      on_profile,
    ]);
    if (!row?.editable) throw cannotEdit(row);
    return collectionAnswer(row, this.links);
  }

  async delete(db: Statements, user_id: number, collection_id: number): Promise<void> {
    this.lock.take(db, collection_id, user_id);
    const row = await db.row(DELETE, [collection_id, user_id]);
    if (!row?.editable) throw cannotEdit(row);
  }
}
