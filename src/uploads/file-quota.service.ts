import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { invalidGame } from '../games/errors';
import { Clock } from '../platform/config/clock';
import { Settings } from '../platform/config/settings';
import { Database } from '../platform/database/database';
import { statement } from '../platform/database/statement';
import { badRequest } from '../platform/errors/api-error';
import { FILE_UPLOAD_LIFETIME } from './file-upload.entity';
import { LOCK_FILE_OWNER } from './lock-owner';

/** Size of all files of the games of the user, stored or being uploaded. */
const USED_BYTES = statement<{ bytes: number }>(
  'file_quota_used',
  `SELECT coalesce(sum(f.bytes), 0)::float8 AS bytes FROM games g CROSS JOIN LATERAL (
     SELECT size AS bytes FROM uploads WHERE game_id = g.id AND file_key IS NOT NULL
     UNION ALL SELECT size FROM builds WHERE game_id = g.id AND file_key IS NOT NULL
     UNION ALL SELECT f.size FROM builds b JOIN build_files f ON f.build_id = b.id
       WHERE b.game_id = g.id AND f.file_key IS NOT NULL
     UNION ALL SELECT size FROM file_uploads
       WHERE game_id = g.id AND state IN ('receiving', 'storing') AND created_at > $now::timestamptz - ${FILE_UPLOAD_LIFETIME}) f
   WHERE g.user_id = $owner_id`,
);

/** The limit of all files of the games of one owner, FILES_QUOTA_BYTES. */
@Injectable()
export class FileQuota {
  constructor(
    private readonly database: Database,
    private readonly settings: Settings,
    private readonly clock: Clock,
  ) {}

  /**
   * Throws if the files of the owner of the game would exceed FILES_QUOTA_BYTES with these bytes. Must run in
   * the transaction that stores them, because it locks the owner.
   */
  async requireSpace(game_id: number, bytes: number, db: EntityManager): Promise<void> {
    const { FILES_QUOTA_BYTES: quota } = this.settings;
    if (quota === 0) return;
    const owner = await this.database.row(LOCK_FILE_OWNER, { game_id }, db);
    if (!owner) throw invalidGame();
    const now = new Date(this.clock.now());
    const used = await this.database.row(USED_BYTES, { owner_id: owner.owner_id, now }, db);
    if (used!.bytes + bytes > quota) throw badRequest('the files of the owner exceed the quota');
  }
}
