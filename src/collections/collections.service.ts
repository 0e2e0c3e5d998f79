import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { EntityManager, Repository } from 'typeorm';
import { StoreLinks } from '../platform/config/store-links';
import { Database } from '../platform/database/database';
import { bind, longRead, read, statement } from '../platform/database/statement';
import { invalidGame } from '../games/errors';
import { canView } from '../games/visibility';
import { badRequest } from '../platform/errors/api-error';
import { type RowsOrSlices, SHORT_LIST, SLICE_BYTES } from '../platform/output/list-streams';
import type { SuccessResponse } from '../platform/output/success-response';
import {
  type CollectionResponse,
  collectionResponse,
  type CreateCollectionRequest,
  type OneCollectionResponse,
  type UpdateCollectionRequest,
} from './collection.dto';
import { Collection } from './collection.entity';
import { collectionColumns, type CollectionRow } from './collection.row';
import {
  canEditCollection,
  canViewCollection,
  COLLECTION,
  type CollectionAccess,
  invalidCollection,
  writeCollection,
} from './collection-access';

const VIEWED_COLLECTION = read<CollectionRow>(
  'collection',
  `SELECT ${collectionColumns('c')} FROM collections c WHERE c.id = $id AND ${canViewCollection('c', '$user_id')}`,
);

/** The collections that the user owns and those that the user administers, each with the `limit`. */
const editableBy = (user: string, limit: string) => `(
  (SELECT * FROM collections WHERE user_id = ${user} ${limit})
  UNION ALL
  (SELECT c.* FROM collection_admins ca JOIN collections c ON c.id = ca.collection_id
   WHERE ca.user_id = ${user} AND c.user_id <> ${user} ${limit})) c`;

const LAST_UPDATED_FIRST = 'c.updated_at DESC, c.id DESC';
const ONE_TOO_MANY = `LIMIT ${SHORT_LIST.rows + 1}`;
const HAS_GAME =
  'EXISTS (SELECT FROM collection_games e WHERE e.collection_id = c.id AND e.game_id = $game_id)';

// '' marks a description that is too long for a short list; it is never stored.
const SHORT_DESCRIPTION = `CASE WHEN octet_length(c.description) > ${SHORT_LIST.text_bytes} THEN '' ELSE c.description END AS description`;

/** Reads at most one row more than a short list has. */
const shortList = (more: string) => `
  SELECT ${collectionColumns('c', SHORT_DESCRIPTION)} ${more} FROM ${editableBy('$user_id', ONE_TOO_MANY)}
  ORDER BY ${LAST_UPDATED_FIRST} ${ONE_TOO_MANY}`;

const isShort = (rows: CollectionRow[]) =>
  rows.length <= SHORT_LIST.rows && rows.every(({ description }) => description !== '');

const EDITABLE_COLLECTIONS = read<CollectionRow>('collections_editable', shortList(''));
const EDITABLE_COLLECTIONS_WITH_GAME = read<CollectionRow>(
  'collections_editable_with_game',
  shortList(`, ${HAS_GAME} AS has_game`),
);

// The other columns take some 500 bytes in a response.
const COLLECTION_ID_SLICES = longRead<{ ids: string }>(
  'collections_editable_slices',
  `SELECT array_agg(id ORDER BY place)::text AS ids
   FROM (SELECT c.id, row_number() OVER listed AS place,
                sum(500 + coalesce(octet_length(c.description), 0)) OVER listed / ${SLICE_BYTES} AS slice
         FROM ${editableBy('$user_id', '')}
         WINDOW listed AS (ORDER BY ${LAST_UPDATED_FIRST} ROWS UNBOUNDED PRECEDING)) c
   GROUP BY slice ORDER BY slice`,
  'user $user_id',
);

const COLLECTIONS_OF_SLICE = longRead<CollectionRow>(
  'collections_editable_slice',
  `SELECT ${collectionColumns('c')}, CASE WHEN $game_id::bigint IS NOT NULL THEN ${HAS_GAME} END AS has_game
   FROM unnest($ids::bigint[]) WITH ORDINALITY AS listed (id, place) JOIN collections c ON c.id = listed.id
   WHERE ${canEditCollection('c', '$user_id')} ORDER BY listed.place`,
  'user $user_id',
);

export const MAX_COLLECTIONS = 1000;

// A separate statement, so that the next one counts what was committed while this one waited. It doesn't lock
// the user's row, which an import of the user's games locks until it ends. The first number identifies this
// type of lock.
export const LOCK_COLLECTION_OWNER = statement(
  'collection_owner_lock',
  'SELECT pg_advisory_xact_lock(7305809, hashint8($user_id::bigint))',
  'user $user_id',
);

// left(), because a username may be longer than a title.
export const CREATE_COLLECTION = statement<CollectionRow & { full: boolean; id: number | null }>(
  'collection_create',
  `WITH game AS (SELECT g.id FROM games g WHERE g.id = $game_id AND ${canView('g', '$user_id')}),
   own AS (
     SELECT count(*) >= ${MAX_COLLECTIONS} AS full
     FROM (SELECT FROM collections WHERE user_id = $user_id LIMIT ${MAX_COLLECTIONS}) counted),
   collection AS (
     INSERT INTO collections (user_id, title, private, description, layout, games_count)
     SELECT u.id, coalesce($title, left(u.username, 47) || '''s Collection'), $private, $description, $layout, (SELECT count(*) FROM game)
     FROM users u, own WHERE u.id = $user_id AND NOT own.full AND ($game_id::bigint IS NULL OR EXISTS (SELECT FROM game))
     RETURNING *),
   entry AS (
     INSERT INTO collection_games (collection_id, game_id, sort_key, blurb, user_id)
     SELECT collection.id, game.id, 1, $blurb, $user_id FROM collection, game)
   SELECT own.full, ${collectionColumns('collection')} FROM own LEFT JOIN collection ON true`,
);

// NULL leaves a value unchanged. '' clears the description.
const UPDATE_COLLECTION = statement<CollectionRow & CollectionAccess>(
  'collection_update',
  `WITH ${COLLECTION},
   shown AS (
     INSERT INTO profile_collections (collection_id, user_id)
     SELECT id, $user_id FROM collection WHERE editable AND $on_profile::boolean ON CONFLICT DO NOTHING),
   hidden AS (
     DELETE FROM profile_collections p USING collection
     WHERE p.collection_id = collection.id AND p.user_id = $user_id AND editable AND NOT $on_profile::boolean),
   updated AS (
     UPDATE collections c SET
       title = coalesce($title, c.title),
       description = nullif(coalesce($description, c.description), ''),
       private = coalesce($private, c.private),
       layout = coalesce($layout, c.layout),
       updated_at = CASE WHEN coalesce($title = c.title, true) AND coalesce($description = coalesce(c.description, ''), true)
         AND coalesce($private = c.private, true) AND coalesce($layout = c.layout, true)
         THEN c.updated_at ELSE clock_timestamp() END
     FROM collection WHERE c.id = collection.id AND editable
     RETURNING ${collectionColumns('c')})
   SELECT collection.editable, ${collectionColumns('updated')} FROM collection LEFT JOIN updated ON true`,
);

const DELETE_COLLECTION = statement<CollectionAccess>(
  'collection_delete',
  `WITH ${COLLECTION},
   deleted AS (DELETE FROM collections c USING collection WHERE c.id = collection.id AND editable)
   SELECT collection.editable FROM collection`,
);

// Raw SQL for the UNION.
const COLLECTION_EDITORS = read<Editor>(
  'collection_editors',
  `SELECT u.username, e.role, EXISTS (
     SELECT FROM profile_collections p WHERE p.collection_id = $collection_id AND p.user_id = e.user_id) AS on_profile
   FROM (
     SELECT c.user_id, 'owner' AS role FROM collections c WHERE c.id = $collection_id
     UNION ALL
     SELECT ca.user_id, 'admin' FROM collection_admins ca JOIN collections c ON c.id = ca.collection_id
     WHERE ca.collection_id = $collection_id AND ca.user_id <> c.user_id) e
   JOIN users u ON u.id = e.user_id
   ORDER BY e.role = 'admin', lower_ascii(u.username)`,
);

interface Editor {
  username: string;
  role: 'owner' | 'admin';
  on_profile: boolean;
}

@Injectable()
export class CollectionsService {
  constructor(
    private readonly database: Database,
    @InjectRepository(Collection) private readonly collections: Repository<Collection>,
    private readonly links: StoreLinks,
  ) {}

  /** The collections that the user owns or administers, most recently updated first. */
  async editableBy(user_id: number, game_id?: number): Promise<RowsOrSlices<CollectionRow>> {
    const rows =
      game_id === undefined
        ? await this.database.rows(EDITABLE_COLLECTIONS, { user_id })
        : await this.database.rows(EDITABLE_COLLECTIONS_WITH_GAME, { user_id, game_id });
    return isShort(rows) ? rows : this.collectionSlices(user_id, game_id);
  }

  /** The first statement selects and orders the collections; the others read them. */
  private async *collectionSlices(
    user_id: number,
    game_id: number | undefined,
  ): AsyncGenerator<CollectionRow[]> {
    for (const { ids } of await this.database.rows(COLLECTION_ID_SLICES, { user_id }))
      yield await this.database.rows(COLLECTIONS_OF_SLICE, { user_id, game_id, ids });
  }

  async one(id: number, user_id: number): Promise<CollectionResponse> {
    const row = await this.database.row(VIEWED_COLLECTION, { id, user_id });
    if (!row) throw invalidCollection();
    return collectionResponse(row, this.links);
  }

  /** Any collection with its editors, for operators, who can view all. */
  async withEditors(id: number): Promise<{ collection: CollectionResponse; editors: Editor[] } | undefined> {
    const row = await this.collections.findOneBy({ id });
    if (!row) return undefined;
    const editors = await this.database.rows(COLLECTION_EDITORS, { collection_id: id });
    return { collection: collectionResponse(row, this.links), editors };
  }

  async create(
    user_id: number,
    request: CreateCollectionRequest,
    manager?: EntityManager,
  ): Promise<OneCollectionResponse> {
    const { title, private: hidden = false, description, game_id } = request;
    const blurb = game_id === undefined ? undefined : request.blurb;
    const layout = request.layout ?? (blurb ? 'list' : 'grid');
    const values = {
      user_id,
      title: title || null,
      private: hidden,
      description,
      layout,
      game_id,
      blurb,
    };
    const getRows = await this.database.execute(
      [bind(LOCK_COLLECTION_OWNER, { user_id }), bind(CREATE_COLLECTION, values)],
      manager,
    );
    const [row] = getRows(CREATE_COLLECTION);
    if (row?.full) throw badRequest('too many collections');
    if (!row?.id) throw invalidGame();
    return { collection: collectionResponse(row, this.links) };
  }

  async update(
    user_id: number,
    request: UpdateCollectionRequest,
    manager?: EntityManager,
  ): Promise<OneCollectionResponse> {
    const { collection_id, title, private: hidden, layout, on_profile } = request;
    const description = request.description === null ? '' : request.description;
    const updated = bind(UPDATE_COLLECTION, {
      collection_id,
      user_id,
      title,
      description,
      private: hidden,
      layout,
      on_profile,
    });
    const row = await writeCollection(this.database, user_id, collection_id, updated, manager);
    return { collection: collectionResponse(row, this.links) };
  }

  async delete(user_id: number, collection_id: number, manager?: EntityManager): Promise<SuccessResponse> {
    const deleted = bind(DELETE_COLLECTION, { collection_id, user_id });
    await writeCollection(this.database, user_id, collection_id, deleted, manager);
    return { success: true };
  }
}
