import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Collection } from './collection.entity';
import { ProfileCollection } from './profile-collection.entity';
import { canEditCollection } from './collection-access';
import { canView, canViewOfMany } from '../games/visibility';
import { Database } from '../platform/database/database';
import { type Cursor, NEWEST_CURSOR } from '../platform/input/cursor';
import { longRead, read, statement } from '../platform/database/statement';

const SHOWN_COLUMNS = ['id', 'title', 'private', 'games_count'] as const satisfies (keyof Collection)[];

export type ShownCollection = Pick<Collection, (typeof SHOWN_COLUMNS)[number] | 'updated_at'> & {
  own: boolean;
  on_profile: boolean;
  /** Whether the collection contains the requested game. */
  has_game: boolean;
};

export type EditableCollection = Omit<ShownCollection, 'updated_at' | 'own' | 'has_game'>;

export interface CollectedGame {
  game_id: number;
  title: string;
  owner_name: string;
  slug: string;
  cover_url: string | null;
  /** The position from 1; counts games that the player can't see. */
  position: number;
}

export const PER_PAGE = 50;
/** Games up to this position can be moved by one place, which sends all IDs before them. */
export const LAST_MOVABLE = 1000;

const ON_PROFILE = `EXISTS (SELECT FROM profile_collections p WHERE p.collection_id = c.id AND p.user_id = $user_id) AS on_profile`;

/** The last updated collections, beginning after a cursor. */
const lastUpdated = (collections: string) => `
  (SELECT c.id FROM ${collections} AND (c.updated_at, c.id) < ($after_time::timestamptz, $after_id)
   ORDER BY c.updated_at DESC, c.id DESC LIMIT $limit)`;

// Raw SQL for the UNION, which uses the indexes of both tables.
const COLLECTIONS_OF = longRead<ShownCollection>(
  'collections_to_show',
  `SELECT ${SHOWN_COLUMNS.map((column) => `c.${column}`).join(', ')}, c.updated_at, c.user_id = $user_id AS own, ${ON_PROFILE},
          EXISTS (SELECT FROM collection_games e WHERE e.collection_id = c.id AND e.game_id = $game_id) AS has_game
   FROM (${lastUpdated('collections c WHERE c.user_id = $user_id')} UNION
         ${lastUpdated('collection_admins ca JOIN collections c ON c.id = ca.collection_id WHERE ca.user_id = $user_id')}) mine
   JOIN collections c USING (id) ORDER BY c.updated_at DESC, c.id DESC LIMIT $limit`,
  'user $user_id',
);
const COLLECTION_TO_EDIT = read<EditableCollection>(
  'collection_to_edit',
  `SELECT ${SHOWN_COLUMNS.map((column) => `c.${column}`).join(', ')}, ${ON_PROFILE}
   FROM collections c WHERE c.id = $id AND ${canEditCollection('c', '$user_id')}`,
);

const TITLE_OF_GAME = read<{ title: string }>(
  'game_to_collect',
  `SELECT g.title FROM games g WHERE g.id = $game_id AND ${canView('g', '$user_id')}`,
);

/** The first games of a collection that the user can edit. */
const FIRST_GAMES = longRead<{ game_id: number; visible: boolean }>(
  'collection_games_to_move',
  `SELECT e.game_id, EXISTS (SELECT FROM games g WHERE g.id = e.game_id AND ${canViewOfMany('g', '$user_id')}) AS visible
   FROM collection_games e
   WHERE e.collection_id = (SELECT c.id FROM collections c WHERE c.id = $collection_id AND ${canEditCollection('c', '$user_id')})
   ORDER BY e.sort_key LIMIT ${LAST_MOVABLE + 1}`,
  'user $user_id',
);

const SHOW_ON_PROFILE = statement(
  'show_collection',
  `INSERT INTO profile_collections (collection_id, user_id)
   SELECT c.id, $user_id FROM collections c WHERE c.id = $id AND ${canEditCollection('c', '$user_id')} ON CONFLICT DO NOTHING`,
);

/** Reads collections that the user can edit for the pages, and sets whether the user's profile shows them. */
@Injectable()
export class ProfileCollectionsService {
  constructor(
    private readonly database: Database,
    @InjectRepository(Collection) private readonly collections: Repository<Collection>,
    @InjectRepository(ProfileCollection) private readonly shown: Repository<ProfileCollection>,
  ) {}

  /** Lists collections, last updated first: one more than fits on the page if there is a next page. */
  listCollections(
    user_id: number,
    { after = NEWEST_CURSOR, game_id }: { after?: Cursor; game_id?: number } = {},
  ): Promise<ShownCollection[]> {
    return this.database.rows(COLLECTIONS_OF, {
      user_id,
      limit: PER_PAGE + 1,
      after_time: after.at,
      after_id: after.id,
      game_id,
    });
  }

  /** Returns undefined if the user can't edit such a collection. */
  one(user_id: number, id: number): Promise<EditableCollection | undefined> {
    return this.database.row(COLLECTION_TO_EDIT, { user_id, id });
  }

  /** Returns undefined if the user can't see such a game. */
  async titleOfGame(user_id: number, game_id: number): Promise<string | undefined> {
    return (await this.database.row(TITLE_OF_GAME, { game_id, user_id }))?.title;
  }

  /**
   * The games that come first after a game was moved: by one place among those that the user can see, or to
   * the top. Empty if it can't be moved.
   */
  async orderAfter(
    user_id: number,
    { collection_id, game_id, to }: { collection_id: number; game_id: number; to: 'up' | 'down' | 'top' },
  ): Promise<number[]> {
    if (to === 'top') return [game_id];
    const games = await this.database.rows(FIRST_GAMES, { user_id, collection_id });
    const ids = games.map((game) => game.game_id);
    const from = ids.indexOf(game_id);
    const isPlace = (at: number) => games[at]!.visible && (to === 'up' ? at < from : at > from);
    const places = [...games.keys()].filter(isPlace);
    const place = to === 'up' ? places.at(-1) : places[0];
    if (from < 0 || place === undefined) return [];
    const moved = ids.toSpliced(from, 1).toSpliced(place, 0, game_id);
    return moved.slice(0, Math.max(from, place) + 1);
  }

  /** Returns the title, or undefined if the user can't edit such a collection. */
  async setOnProfile(user_id: number, id: number, on: boolean): Promise<string | undefined> {
    const collection = await this.collections
      .createQueryBuilder('c')
      .select('c.title')
      .where({ id })
      .andWhere(canEditCollection('c', ':user_id'), { user_id })
      .getOne();
    if (!collection) return undefined;
    if (on) await this.database.rows(SHOW_ON_PROFILE, { user_id, id });
    else await this.shown.delete({ user_id, collection_id: id });
    return collection.title;
  }
}
