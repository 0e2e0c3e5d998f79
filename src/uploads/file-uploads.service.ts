import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../audit/audit';
import { invalidGame } from '../games/errors';
import { canEdit } from '../games/visibility';
import { Clock } from '../platform/config/clock';
import { Database } from '../platform/database/database';
import { longRead, statement } from '../platform/database/statement';
import { ApiError, apiError } from '../platform/errors/api-error';
import { ConcurrencyLimit, type LimitedClient } from '../platform/limits/concurrency-limit';
import { BuildSignatures } from './build-signatures.service';
import { newFileKey } from './file-keys';
import { FileQuota } from './file-quota.service';
import { FileUpload, FILE_UPLOAD_LIFETIME } from './file-upload.entity';
import { recordFile } from './files.service';
import { UploadParts } from './sessions/upload-parts.service';
import { isComplete, UploadSessions } from './sessions/upload-sessions.service';
import { UnusedFiles } from './unused-files.service';
import { Upload } from './upload.entity';
import { LOCK_EDITED_GAME, UploadEditsService } from './upload-edits.service';

const STORING_LEASE_MS = 60_000;
/** Maximum number of files that a process stores at the same time, in total and for one seller. */
const STORING = { accepted: Infinity, running: 2, each: 1 };

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
export const PENDING_UPLOADS = longRead<PendingUpload>(
  'pending_file_uploads',
  `SELECT ${PENDING_COLUMNS} FROM games g JOIN file_uploads p ON p.game_id = g.id
   LEFT JOIN upload_sessions s ON s.id = p.id
   WHERE g.id = $game_id AND ${canEdit('g', '$user_id')} AND ($file_upload_id::uuid IS NULL OR p.id = $file_upload_id)
     AND ($file_upload_id::uuid IS NOT NULL OR p.state <> 'stored')
     AND p.created_at > $now::timestamptz - ${FILE_UPLOAD_LIFETIME}
   ORDER BY p.created_at, p.id LIMIT 100`,
  'user $user_id',
);

/** Only one of two requests gets the file to store. A process that was killed loses it when its lease ends. */
const CLAIM_UPLOAD = statement<FileUpload>(
  'claim_file_upload',
  `UPDATE file_uploads SET state = 'storing', error = NULL, leased_until = $now::timestamptz + interval '${STORING_LEASE_MS} ms'
   WHERE id = $id AND game_id = $game_id
     AND (state IN ('receiving', 'failed') OR (state = 'storing' AND (leased_until < $now) IS NOT FALSE))
   RETURNING *`,
);

const RENEW_UPLOAD = statement(
  'renew_file_upload',
  `UPDATE file_uploads SET leased_until = $now::timestamptz + interval '${STORING_LEASE_MS} ms' WHERE id = $id AND state = 'storing'`,
);

const RELEASE_UPLOAD = statement(
  'release_file_upload',
  `UPDATE file_uploads SET state = $state, error = $error, leased_until = NULL WHERE id = $id AND state = 'storing'`,
);

const DISCARD = statement<{ id: string }>(
  'discard_file_upload',
  `DELETE FROM file_uploads p USING games g
   WHERE p.id = $file_upload_id AND p.game_id = $game_id AND g.id = p.game_id AND ${canEdit('g', '$user_id')}
     AND (p.state <> 'storing' OR (p.leased_until < $now::timestamptz) IS NOT FALSE) RETURNING p.id`,
);

interface Editor {
  request_id: string;
  user_id: number;
}

interface Recorded {
  upload_id: number;
  /** The key of the replaced file. */
  previous_key: string | null;
  /** The channel of which the file is a build. */
  channel_name?: string;
}

/** The text of an error for the seller; the file can't be listed. */
class Rejected extends Error {}

/** Files that sellers upload on pages, in parts: from their first byte until they are listed as uploads. */
@Injectable()
export class FileUploadsService implements OnApplicationShutdown {
  private readonly log = new Logger('FileUploads');
  private readonly stopping = new AbortController();
  /** Resolved when their files are stored. */
  private readonly storing = new Set<Promise<void>>();
  private readonly limit = new ConcurrencyLimit(STORING);
  /** Sellers with files to store, and how many. */
  private readonly sellers = new Map<number, LimitedClient & { files: number }>();

  constructor(
    private readonly database: Database,
    private readonly quota: FileQuota,
    private readonly sessions: UploadSessions,
    private readonly parts: UploadParts,
    private readonly unused: UnusedFiles,
    private readonly uploads: UploadEditsService,
    private readonly signatures: BuildSignatures,
    private readonly audit: Audit,
    private readonly clock: Clock,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await Promise.allSettled(this.storing);
  }

  /** Waits until every file that this process stores is stored. */
  async waitForFiles(): Promise<void> {
    await Promise.allSettled(this.storing);
  }

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
    const { id } = await this.sessions.create(game_id, file.size);
    try {
      await this.database.transaction(async (db) => {
        if (!(await this.database.row(LOCK_EDITED_GAME, { game_id, user_id }, db))) throw invalidGame();
        await this.quota.requireSpace(game_id, file.size, db);
        const created_at = this.now as unknown as string;
        await db.insert(FileUpload, { ...file, id, created_at });
      });
    } catch (error) {
      await this.sessions.discard(id);
      throw error;
    }
    return { id, path: this.sessionPath(id) };
  }

  /** Stores the complete file in the background; `status` tells when it is listed. Can be repeated. */
  async complete(game_id: number, id: string, editor: Editor): Promise<PendingUpload> {
    const found = await this.status(game_id, id, editor.user_id);
    if (found.state === 'stored') return found;
    const session = await this.sessions.find(id);
    if (found.state !== 'storing' && !(session && isComplete(session)))
      throw apiError(409, 'the file isn’t complete');
    const claimed = await this.database.row(CLAIM_UPLOAD, { id, game_id, now: this.now });
    if (claimed) this.storeInBackground(claimed, editor);
    return claimed ? { ...found, state: 'storing', error: null } : this.status(game_id, id, editor.user_id);
  }

  /** Deletes what was received. A file that is being stored stays. */
  async discard(game_id: number, id: string, { user_id }: Editor): Promise<void> {
    const values = { file_upload_id: id, game_id, user_id, now: this.now };
    if (!(await this.database.row(DISCARD, values))) throw invalidUploadSession();
    await this.sessions.discard(id);
  }

  private get now(): Date {
    return new Date(this.clock.now());
  }

  private storeInBackground(file: FileUpload, editor: Editor): void {
    const stored: Promise<void> = this.store(file, editor).finally(() => void this.storing.delete(stored));
    this.storing.add(stored);
  }

  private async afterPrevious(user_id: number, work: () => Promise<void>): Promise<void> {
    const seller = this.sellers.get(user_id) ?? { queues: new Map(), files: 0 };
    this.sellers.set(user_id, seller);
    seller.files++;
    try {
      await this.limit.run(seller, undefined, work);
    } finally {
      if (--seller.files === 0) this.sellers.delete(user_id);
    }
  }

  private async store(file: FileUpload, editor: Editor): Promise<void> {
    const { id } = file;
    const renew = () => void this.database.rows(RENEW_UPLOAD, { id, now: this.now }).catch(() => undefined);
    const timer = setInterval(renew, STORING_LEASE_MS / 3).unref();
    try {
      await this.afterPrevious(editor.user_id, () => this.storeFile(file, editor));
    } catch (error) {
      await this.fail(id, error as Error).catch((failure: Error) => this.log.error(failure));
    } finally {
      clearInterval(timer);
    }
  }

  private async fail(id: string, error: Error): Promise<void> {
    if (this.stopping.signal.aborted) {
      // Another process, or this one when it has restarted, can store it.
      await this.database.rows(RELEASE_UPLOAD, { id, state: 'receiving', error: null });
      return;
    }
    const isExpected = error instanceof Rejected || error instanceof ApiError;
    if (!isExpected) this.log.error(error);
    const text = error instanceof Rejected ? error.message : 'The file could not be stored. Try again.';
    await this.database.rows(RELEASE_UPLOAD, { id, state: 'failed', error: text });
  }

  private async storeFile(file: FileUpload, editor: Editor): Promise<void> {
    const { id, game_id } = file;
    const file_key = newFileKey(file);
    await this.unused.announce(file_key);
    const content = await this.parts.copy(id, file_key, this.stopping.signal);
    const stored = { file_key, ...content };
    let result: Recorded;
    try {
      result = await this.database.transaction((db) => this.record(db, file, stored, editor));
    } catch (error) {
      await this.unused.delete([file_key]);
      throw error;
    }
    const { upload_id, previous_key, channel_name } = result;
    const event = file.replaces === null ? 'upload.created' : 'upload.replaced';
    this.audit.record({ event, ...editor, game_id, upload_id });
    await this.sessions.discard(id);
    if (previous_key !== null) await this.unused.deleteDue([previous_key]);
    if (channel_name !== undefined) await this.signBuild({ game_id, channel_name });
  }

  /** Launchers can update to the build without a signature, too: they download all of it. */
  private async signBuild(channel: { game_id: number; channel_name: string }): Promise<void> {
    try {
      await this.signatures.signNewest(channel, this.stopping.signal);
    } catch (error) {
      this.log.warn(`A build could not be signed: ${(error as Error).message} Run \`gamewharf files sign\`.`);
    }
  }

  /** Lists the stored file. */
  private async record(
    db: EntityManager,
    file: FileUpload,
    stored: Pick<Upload, 'file_key' | 'size' | 'md5_hash'>,
    { user_id }: Editor,
  ): Promise<Recorded> {
    const { id, game_id, filename, traits, replaces } = file;
    if (!(await this.database.row(LOCK_EDITED_GAME, { game_id, user_id }, db)))
      throw new Rejected('You can no longer edit the game.');
    // If this process lost its lease, another process may have listed the file already.
    const claimed = await db.update(
      FileUpload,
      { id, state: 'storing' },
      { state: 'stored', leased_until: null },
    );
    if (claimed.affected !== 1) throw new Rejected('The file was stored by another process.');
    const previous = replaces === null ? null : await db.findOneBy(Upload, { id: replaces, game_id });
    if (replaces !== null && !previous) throw new Rejected('The file to replace was deleted.');
    let upload_id: number;
    let channel_name: string | undefined;
    if (previous && previous.channel_name === null) {
      const changed = { ...stored, filename, external_url: null, file_url: null, updated_at: () => 'now()' };
      await db.update(Upload, { id: previous.id, game_id }, changed);
      upload_id = previous.id;
    } else {
      channel_name = previous?.channel_name ?? file.channel_name ?? undefined;
      const user_version = file.user_version ?? undefined;
      const upload = await recordFile(db, { ...file, channel_name, user_version }, stored);
      if (file.hidden) await db.update(Upload, { id: upload.id, game_id }, { hidden: true });
      upload_id = upload.id;
    }
    await this.uploads.updateTraits(db, game_id, traits);
    await db.update(FileUpload, { id }, { upload_id });
    return { upload_id, previous_key: previous?.file_key ?? null, channel_name };
  }
}

export const invalidUploadSession = () => apiError(404, 'invalid upload session');
