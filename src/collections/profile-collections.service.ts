import { Injectable } from '@nestjs/common';
import { InjectRepository } from '@nestjs/typeorm';
import type { Repository } from 'typeorm';
import { Collection } from './collection.entity';
import { ProfileCollection } from './profile-collection.entity';
import { canEditCollection } from './collection-access';
import { Database } from '../platform/database/database';
import { longRead, statement } from '../platform/database/statement';

const COLUMNS = ['id', 'title', 'private', 'games_count'] as const satisfies (keyof Collection)[];

export type ShownCollection = Pick<Collection, (typeof COLUMNS)[number]> & {
  own: boolean;
  on_profile: boolean;
};

export const PER_PAGE = 50;

// Raw SQL for the UNION, which uses the indexes of both tables.
const COLLECTIONS_OF = longRead<ShownCollection>(
  'collections_to_show',
  `SELECT ${COLUMNS.map((column) => `c.${column}`).join(', ')}, c.user_id = $1 AS own,
          EXISTS (SELECT FROM profile_collections p WHERE p.collection_id = c.id AND p.user_id = $1) AS on_profile
   FROM (SELECT id FROM collections WHERE user_id = $1
         UNION SELECT collection_id FROM collection_admins WHERE user_id = $1) mine
   JOIN collections c USING (id) ORDER BY c.updated_at DESC, c.id DESC LIMIT $2 OFFSET $3`,
  'user $1',
);
const SHOW = statement(
  'show_collection',
  `INSERT INTO profile_collections (collection_id, user_id)
   SELECT c.id, $1 FROM collections c WHERE c.id = $2 AND ${canEditCollection('c', '$1')} ON CONFLICT DO NOTHING`,
);

/** Whether the profile of a user shows the collections that the user can edit. */
@Injectable()
export class ProfileCollectionsService {
  constructor(
    private readonly database: Database,
    @InjectRepository(Collection) private readonly collections: Repository<Collection>,
    @InjectRepository(ProfileCollection) private readonly shown: Repository<ProfileCollection>,
  ) {}

  /** One more than fits on the page, if there is a next page. */
  listCollections(user_id: number, page: number): Promise<ShownCollection[]> {
    return this.database.rows(COLLECTIONS_OF, [user_id, PER_PAGE + 1, (page - 1) * PER_PAGE]);
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
    if (on) await this.database.rows(SHOW, [user_id, id]);
    else await this.shown.delete({ user_id, collection_id: id });
    return collection.title;
  }
}
