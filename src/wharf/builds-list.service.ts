import { Injectable } from '@nestjs/common';
import { canEdit } from '../games/visibility';
import { Database } from '../platform/database/database';
import { longRead } from '../platform/database/statement';
import { NEWEST_CURSOR } from '../platform/input/cursor';
import { type Build, isPublished } from './build.entity';

export const BUILDS_ON_A_PAGE = 50;

export interface ListedBuild extends Pick<
  Build,
  'id' | 'channel_name' | 'version' | 'user_version' | 'state' | 'hidden' | 'error' | 'size' | 'created_at'
> {
  /** Whether it is the build that players of the channel download. */
  is_head: boolean;
  patch_size: number | null;
  signed: boolean;
}

const selectFileSize = (type: string) =>
  `(SELECT f.size FROM build_files f WHERE f.build_id = b.id AND f.type = '${type}' AND f.file_key IS NOT NULL)`;

/** Builds of a game, for a user who can edit it: of all channels or of one, and older than `$before_id`. */
const BUILDS_PAGE = longRead<ListedBuild>(
  'builds_page',
  `SELECT b.id, b.channel_name, b.version, b.user_version, b.state, b.hidden, b.error, b.size, b.created_at,
     b.id IS NOT DISTINCT FROM (
       SELECT o.id FROM builds o WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name AND ${isPublished('o')}
         AND o.size IS NOT NULL ORDER BY o.id DESC LIMIT 1) AS is_head,
     ${selectFileSize('patch')} AS patch_size, ${selectFileSize('signature')} IS NOT NULL AS signed
   FROM games g JOIN builds b ON b.game_id = g.id
   WHERE g.id = $game_id AND ${canEdit('g', '$user_id')}
     AND ($channel_name::text IS NULL OR b.channel_name = $channel_name) AND b.id < $before_id
   ORDER BY b.id DESC LIMIT ${BUILDS_ON_A_PAGE + 1}`,
  'user $user_id',
);

/** The builds of a game, for users who can edit it. */
@Injectable()
export class BuildsListService {
  constructor(private readonly database: Database) {}

  /** The builds of a page, newest first, and one more if there is a next page. */
  page(
    game_id: number,
    user_id: number,
    { channel, after = NEWEST_CURSOR.id }: { channel?: string; after?: number },
  ): Promise<ListedBuild[]> {
    return this.database.rows(BUILDS_PAGE, {
      game_id,
      user_id,
      channel_name: channel ?? null,
      before_id: after,
    });
  }
}
