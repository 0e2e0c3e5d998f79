import { Injectable } from '@nestjs/common';
import { Database } from '../../database/database';
import { statement } from '../../database/statement';

export interface ShownCollection {
  id: number;
  title: string;
  private: boolean;
  games_count: number;
  own: boolean;
  on_profile: boolean;
}

export const PER_PAGE = 50;

const MINE = `c.user_id = $1 OR EXISTS (SELECT FROM collection_admins a WHERE a.collection_id = c.id AND a.user_id = $1)`;

const COLLECTIONS_OF = statement<ShownCollection>(
  'collections_to_show',
  `SELECT c.id, c.title, c.private, c.games_count, c.user_id = $1 AS own,
          EXISTS (SELECT FROM profile_collections p WHERE p.collection_id = c.id AND p.user_id = $1) AS on_profile
   FROM (SELECT id FROM collections WHERE user_id = $1
         UNION SELECT collection_id FROM collection_admins WHERE user_id = $1) mine
   JOIN collections c USING (id) ORDER BY c.updated_at DESC, c.id DESC LIMIT $2 OFFSET $3`,
);
const SHOW = statement(
  'show_collection',
  `INSERT INTO profile_collections (collection_id, user_id) SELECT c.id, $1 FROM collections c WHERE c.id = $2 AND (${MINE})
   ON CONFLICT DO NOTHING`,
);
const HIDE = statement(
  'hide_collection',
  'DELETE FROM profile_collections WHERE user_id = $1 AND collection_id = $2',
);
const CAN_EDIT = statement<{ title: string }>(
  'may_show_collection',
  `SELECT c.title FROM collections c WHERE c.id = $2 AND (${MINE})`,
);

/** Which of the collections that somebody can edit stand on that person's profile. */
@Injectable()
export class ProfileCollectionsService {
  constructor(private readonly database: Database) {}

  /** One more than a page has tells that there is another. */
  collectionsOf(user_id: number, page: number): Promise<ShownCollection[]> {
    return this.database.rows(COLLECTIONS_OF, [user_id, PER_PAGE + 1, (page - 1) * PER_PAGE]);
  }

  /** The title; undefined: there is no such collection for this user. */
  async setOnProfile(user_id: number, id: number, on: boolean): Promise<string | undefined> {
    const collection = await this.database.row(CAN_EDIT, [user_id, id]);
    if (collection) await this.database.rows(on ? SHOW : HIDE, [user_id, id]);
    return collection?.title;
  }
}
