import type { EntityManager } from 'typeorm';
import { Injectable } from '@nestjs/common';
import { Events } from '../events/events';
import { Database } from '../platform/database/database';
import { bind, statement } from '../platform/database/statement';
import { UploadSessions } from '../uploads/sessions/upload-sessions.service';
import { FileStorage } from '../uploads/storage/file-storage';
import { UnusedFiles } from '../uploads/unused-files.service';
import { ADD_EVENT, MAX_FAILED_WITH_EVENTS } from './build-events.service';
import { storedKeys } from './build-keys';
import { ANNOUNCE_FAILED } from './build-messages';

/** A longer reason is truncated. */
const MAX_ERROR_CHARACTERS = 1000;

// A completed build stays completed. Nothing reads the texts of the upload tool after a failure.
const FAIL = statement<{ game_id: number; attempts: number }>(
  'fail_build',
  `WITH job AS (DELETE FROM build_jobs WHERE build_id = $build_id RETURNING attempts),
   build AS (
     UPDATE builds SET state = 'failed', error = $error, expires_at = NULL, updated_at = now(), metadata = NULL,
       launch_analysis = NULL
     WHERE id = $build_id AND state IN ('started', 'processing') RETURNING game_id)
   SELECT build.game_id, coalesce((SELECT attempts FROM job), 0) AS attempts FROM build`,
);

// Deletes the events of the build that is no longer among the newest failed ones, except the reason of its failure, or
// those of this build, if newer ones failed before.
const DELETE_OLD_EVENTS = statement(
  'delete_events_of_failed_builds',
  `WITH newest_old AS (
     SELECT o.id, o.error FROM builds b JOIN builds o ON o.game_id = b.game_id
     WHERE b.id = $build_id AND o.state = 'failed' ORDER BY o.id DESC OFFSET ${MAX_FAILED_WITH_EVENTS} LIMIT 1)
   DELETE FROM build_events e USING newest_old
   WHERE e.build_id = ANY (ARRAY[newest_old.id, $build_id::bigint]) AND e.build_id <= newest_old.id
     AND e.id IS DISTINCT FROM (
       SELECT max(r.id) FROM build_events r
       WHERE r.build_id = newest_old.id AND r.type = 'failed' AND r.message = newest_old.error AND r.data IS NULL)`,
);

/** Locks the game, so that this and a push that creates the build's channel wait for each other. */
const LOCK_CHANNELS = statement(
  'lock_channels_of_build',
  'SELECT FROM games g JOIN builds b ON b.game_id = g.id WHERE b.id = $build_id FOR NO KEY UPDATE OF g',
);

// Deletes an upload only if a push created it, no user has edited it, and its channel has no builds that
// could still be downloaded.
const DELETE_EMPTY_CHANNEL = statement(
  'delete_empty_channel',
  `DELETE FROM uploads u USING builds b
   WHERE b.id = $build_id AND u.game_id = b.game_id AND u.channel_name = b.channel_name AND u.updated_at = u.created_at
     AND EXISTS (
       SELECT FROM builds o
       WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name AND o.created_at = u.created_at)
     AND NOT EXISTS (
       SELECT FROM builds o
       WHERE o.game_id = b.game_id AND o.channel_name = b.channel_name AND o.state <> 'failed')`,
);

const SESSIONS_TO_DISCARD = statement<{ session_id: string }>(
  'build_sessions_to_discard',
  `WITH found AS (SELECT id, session_id FROM build_files WHERE build_id = $build_id AND session_id IS NOT NULL)
   UPDATE build_files f SET session_id = NULL FROM found WHERE f.id = found.id RETURNING found.session_id`,
);

interface FailureOptions {
  /** Whether the build may fail, once its game is locked. */
  isAllowed?: (db: EntityManager) => Promise<boolean>;
  /** The key of the transaction. */
  concurrencyKey?: string;
}

/** Ends builds that can't be completed. */
@Injectable()
export class BuildFailures {
  constructor(
    private readonly database: Database,
    private readonly sessions: UploadSessions,
    private readonly storage: FileStorage,
    private readonly unused: UnusedFiles,
    private readonly events: Events,
  ) {}

  /** Returns false if the build is completed or has failed already. */
  async fail(
    build_id: number,
    error: string,
    { isAllowed, concurrencyKey }: FailureOptions = {},
  ): Promise<boolean> {
    const text = error.slice(0, MAX_ERROR_CHARACTERS);
    const failed = await this.database.transaction(
      async (db) => {
        await this.database.rows(LOCK_CHANNELS, { build_id }, db);
        if (isAllowed && !(await isAllowed(db))) return undefined;
        const build = await this.database.row(FAIL, { build_id, error: text }, db);
        if (!build) return undefined;
        const rows = await this.database.execute(
          [
            bind(SESSIONS_TO_DISCARD, { build_id }),
            bind(DELETE_OLD_EVENTS, { build_id }),
            bind(ADD_EVENT, { build_id, type: 'failed', message: text, data: null }),
            bind(ANNOUNCE_FAILED, { build_id }),
            bind(DELETE_EMPTY_CHANNEL, { build_id }),
          ],
          db,
        );
        const sessions = rows(SESSIONS_TO_DISCARD).map(({ session_id }) => session_id);
        await this.sessions.expire(sessions, db);
        const keys = keysOfAttempts(build.game_id, build_id, build.attempts);
        await this.unused.record(keys, db);
        return { keys, sessions };
      },
      { concurrencyKey },
    );
    if (!failed) return false;
    this.events.announced();
    for (const id of failed.sessions) await this.sessions.deleteExpired(id);
    await this.unused.deleteDue(failed.keys);
    return true;
  }

  /** Deletes the files that this many attempts to process a build have stored. */
  async deleteStored(game_id: number, build_id: number, attempts: number): Promise<void> {
    for (const key of keysOfAttempts(game_id, build_id, attempts)) await this.storage.delete(key);
  }
}

const keysOfAttempts = (game_id: number, build_id: number, attempts: number) =>
  Array.from({ length: attempts }, (_, i) => Object.values(storedKeys(game_id, build_id, i + 1))).flat();
