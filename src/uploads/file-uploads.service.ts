import { Injectable } from '@nestjs/common';
import { invalidGame } from '../games/errors';
import { canEdit } from '../games/visibility';
import { Clock } from '../platform/config/clock';
import { Database } from '../platform/database/database';
import { longRead, statement } from '../platform/database/statement';
import { apiError } from '../platform/errors/api-error';
import { FileQuota } from './file-quota.service';
import { FileUpload, FILE_UPLOAD_LIFETIME } from './file-upload.entity';
import { type Editor, FileUploadJobs } from './file-upload-jobs.service';
import { isComplete, UploadSessions } from './sessions/upload-sessions.service';
import { LOCK_EDITED_GAME, UploadEditsService } from './upload-edits.service';

export type NewFileUpload = Pick<
  FileUpload,
  | 'game_id'
  | 'filename'
  | 'size'
  | 'display_name'
  | 'traits'
  | 'hidden'
  | 'replaces'
  | 'channel_name'
  | 'user_version'
>;

export interface PendingUpload extends Pick<
  FileUpload,
  'id' | 'filename' | 'size' | 'state' | 'error' | 'upload_id'
> {
  replaces: number | null;
  received: number;
}

const PENDING_COLUMNS = `p.id, p.filename, p.size, p.state, p.error, p.upload_id, p.replaces,
  CASE WHEN p.state = 'receiving' THEN coalesce(s.received, 0) ELSE p.size END AS received`;

/** The pending uploads of the game, or only one of them, if the user can edit the game. */
const PENDING_UPLOADS = longRead<PendingUpload>(
  'pending_file_uploads',
  `SELECT ${PENDING_COLUMNS} FROM games g JOIN file_uploads p ON p.game_id = g.id
   LEFT JOIN upload_sessions s ON s.id = p.id
   WHERE g.id = $game_id AND ${canEdit('g', '$user_id')} AND ($file_upload_id::uuid IS NULL OR p.id = $file_upload_id)
     AND ($file_upload_id::uuid IS NOT NULL OR p.state <> 'stored')
     AND p.created_at > $now::timestamptz - ${FILE_UPLOAD_LIFETIME}
   ORDER BY p.created_at, p.id LIMIT 100`,
  'user $user_id',
);

const DISCARD = statement<{ id: string }>(
  'discard_file_upload',
  `DELETE FROM file_uploads p USING games g
   WHERE p.id = $file_upload_id AND p.game_id = $game_id AND g.id = p.game_id AND ${canEdit('g', '$user_id')}
     AND (p.state <> 'storing' OR (p.leased_until < now()) IS NOT FALSE) RETURNING p.id`,
);

/** Files that sellers upload on pages, in parts: from their first byte until they are listed as uploads. */
@Injectable()
export class FileUploadsService {
  constructor(
    private readonly database: Database,
    private readonly quota: FileQuota,
    private readonly sessions: UploadSessions,
    private readonly jobs: FileUploadJobs,
    private readonly uploads: UploadEditsService,
    private readonly clock: Clock,
  ) {}

  /** Files that aren't listed as uploads yet, oldest first. */
  pending(game_id: number, user_id: number): Promise<PendingUpload[]> {
    return this.database.rows(PENDING_UPLOADS, { game_id, user_id, file_upload_id: null, now: this.now });
  }

  /** The path to which the browser sends the parts. */
  sessionPath(id: string): string {
    return new URL(this.sessions.sessionUrl(id)).pathname;
  }

  async status(game_id: number, id: string, user_id: number): Promise<PendingUpload> {
    const values = { game_id, user_id, file_upload_id: id, now: this.now };
    const row = await this.database.row(PENDING_UPLOADS, values);
    if (!row) throw invalidUploadSession();
    return row;
  }

  /** Returns the path to which the browser sends the parts. */
  async start(file: NewFileUpload, { user_id }: Editor): Promise<{ id: string; path: string }> {
    const { game_id, replaces } = file;
    // Both calls check that the user can edit the game.
    if (replaces === null) await this.uploads.list(game_id, user_id);
    else await this.uploads.one(game_id, replaces, user_id);
    return this.database.transaction(
      async (db) => {
        if (!(await this.database.row(LOCK_EDITED_GAME, { game_id, user_id }, db))) throw invalidGame();
        const { id } = await this.sessions.create(game_id, file.size, db);
        await this.quota.requireSpace(game_id, file.size, db);
        const created_at = this.now as unknown as string;
        await db.insert(FileUpload, { ...file, id, created_at });
        return { id, path: this.sessionPath(id) };
      },
      { concurrencyKey: `user ${user_id}` },
    );
  }

  /** Stores the complete file in the background; `status` tells when it is listed. Can be repeated. */
  async complete(game_id: number, id: string, editor: Editor): Promise<PendingUpload> {
    const found = await this.status(game_id, id, editor.user_id);
    if (found.state === 'stored') return found;
    const session = await this.sessions.find(id);
    if (found.state !== 'storing' && !(session && isComplete(session)))
      throw apiError(409, 'the file isn’t complete');
    const isStarted = await this.jobs.start(game_id, id, editor);
    return isStarted ? { ...found, state: 'storing', error: null } : this.status(game_id, id, editor.user_id);
  }

  /** Deletes what was received. A file that is being stored stays. */
  async discard(game_id: number, id: string, { user_id }: Editor): Promise<void> {
    const values = { file_upload_id: id, game_id, user_id };
    if (!(await this.database.row(DISCARD, values))) throw invalidUploadSession();
    await this.sessions.discard(id);
  }

  private get now(): Date {
    return new Date(this.clock.now());
  }
}

export const invalidUploadSession = () => apiError(404, 'invalid upload session');
