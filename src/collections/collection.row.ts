import { prefixColumns } from '../platform/database/statement';
import type { Collection } from './collection.entity';

const COLLECTION_COLUMNS = [
  'id',
  'user_id',
  'title',
  'private',
  'layout',
  'games_count',
  'created_at',
  'updated_at',
] as const satisfies (keyof Collection)[];

export interface CollectionRow extends Pick<Collection, (typeof COLLECTION_COLUMNS)[number] | 'description'> {
  has_game?: boolean | null;
}

/** The columns of a collection `c` in a statement. */
export const collectionColumns = (c: string, description = `${c}.description`) =>
  `${prefixColumns(c, COLLECTION_COLUMNS)}, ${description}`;
