import { Injectable } from '@nestjs/common';
import { Database } from '../platform/database/database';
import { bind, longRead } from '../platform/database/statement';
import { IS_PRUNABLE, LOCK_BUILD, PRUNE_BUILD } from '../wharf/build-files';
import { UnusedFiles } from './unused-files.service';

/** A build whose files are deleted. */
export interface PrunedBuild {
  id: number;
  game: string;
  channel_name: string;
  version: number;
  user_version: string | null;
  /** The size of its archive, patch and signature. */
  bytes: number;
}

const BUILDS_PER_SLICE = 100;

/** Builds after `$after` that have files and are older than the newest `$keep` of their channel. */
const PRUNABLE = longRead<PrunedBuild>(
  'prunable_builds',
  `SELECT b.id, u.username || '/' || g.slug AS game, b.channel_name, b.version, b.user_version,
          coalesce(b.size, 0) + files.bytes AS bytes
   FROM builds b JOIN games g ON g.id = b.game_id JOIN users u ON u.id = g.user_id
   CROSS JOIN LATERAL (
     SELECT coalesce(sum(f.size), 0)::bigint AS bytes, count(*) AS number FROM build_files f
     WHERE f.build_id = b.id AND f.file_key IS NOT NULL) files
   WHERE b.id > $after AND (b.size IS NOT NULL OR files.number > 0) AND ${IS_PRUNABLE}
     AND (SELECT count(*) FROM (
            SELECT FROM builds n WHERE n.game_id = b.game_id AND n.channel_name = b.channel_name
              AND n.state = 'completed' AND n.id > b.id LIMIT $keep) newer) >= $keep
   ORDER BY b.id LIMIT ${BUILDS_PER_SLICE}`,
);

/** Deletes the files of old builds. Their records stay, and so do the version numbers. */
@Injectable()
export class BuildPruning {
  constructor(
    private readonly database: Database,
    private readonly unused: UnusedFiles,
  ) {}

  /** Builds older than the newest `keep` completed ones of each channel, except those in use. */
  async *prunable(keep: number): AsyncGenerator<PrunedBuild> {
    let after = 0;
    for (;;) {
      const slice = await this.database.rows(PRUNABLE, { keep, after });
      yield* slice;
      if (slice.length < BUILDS_PER_SLICE) return;
      after = slice.at(-1)!.id;
    }
  }

  /** Returns false if the build is in use. */
  async prune({ id }: PrunedBuild): Promise<boolean> {
    const keys = await this.database.transaction(async (db) => {
      const rows = await this.database.execute([bind(LOCK_BUILD, { id }), bind(PRUNE_BUILD, { id })], db);
      const pruned = rows(PRUNE_BUILD).flatMap(({ file_key }) => file_key ?? []);
      await this.unused.record(pruned, db);
      return pruned;
    });
    await this.unused.deleteDue(keys);
    return keys.length > 0;
  }
}
