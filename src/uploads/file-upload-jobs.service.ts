import { Injectable, Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Audit } from '../audit/audit';
import { Database } from '../platform/database/database';
import { statement } from '../platform/database/statement';
import { ApiError } from '../platform/errors/api-error';
import { ClientsByKey } from '../platform/limits/clients-by-key';
import { ConcurrencyLimit } from '../platform/limits/concurrency-limit';
import { BuildSignatures } from './build-signatures.service';
import { newFileKey } from './file-keys';
import { FileUpload } from './file-upload.entity';
import { recordFile } from './files.service';
import { UploadParts } from './sessions/upload-parts.service';
import { UploadSessions } from './sessions/upload-sessions.service';
import { UnusedFiles } from './unused-files.service';
import { Upload } from './upload.entity';
import { LOCK_EDITED_GAME, UploadEditsService } from './upload-edits.service';

const STORING_LEASE_MS = 60_000;
// By the clock of the database: those of two replicas can differ by more.
const LEASED_UNTIL = `now() + interval '${STORING_LEASE_MS} ms'`;
/** Maximum number of files that a process stores at the same time, in total and for one seller. */
const STORING = { accepted: Infinity, running: 2, each: 1 };

/** Only one of two requests gets the file to store. A process that was killed loses it when its lease ends. */
const CLAIM_UPLOAD = statement<FileUpload>(
  'claim_file_upload',
  `UPDATE file_uploads SET state = 'storing', error = NULL, leased_until = ${LEASED_UNTIL}
   WHERE id = $id AND game_id = $game_id
     AND (state IN ('receiving', 'failed') OR (state = 'storing' AND (leased_until < now()) IS NOT FALSE))
   RETURNING *`,
);

const RENEW_UPLOAD = statement(
  'renew_file_upload',
  `UPDATE file_uploads SET leased_until = ${LEASED_UNTIL} WHERE id = $id AND state = 'storing'`,
);

const RELEASE_UPLOAD = statement(
  'release_file_upload',
  `UPDATE file_uploads SET state = $state, error = $error, leased_until = NULL WHERE id = $id AND state = 'storing'`,
);

export interface Editor {
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

/** Stores the files that sellers uploaded completely, and lists them as uploads. */
@Injectable()
export class FileUploadJobs implements OnApplicationShutdown {
  private readonly log = new Logger('FileUploads');
  private readonly stopping = new AbortController();
  /** Resolved when their files are stored. */
  private readonly storing = new Set<Promise<void>>();
  private readonly limit = new ConcurrencyLimit(STORING);
  private readonly sellers = new ClientsByKey<number>();

  constructor(
    private readonly database: Database,
    private readonly sessions: UploadSessions,
    private readonly parts: UploadParts,
    private readonly unused: UnusedFiles,
    private readonly uploads: UploadEditsService,
    private readonly signatures: BuildSignatures,
    private readonly audit: Audit,
  ) {}

  async onApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    await this.waitForFiles();
  }

  /** Waits until every file that this process stores is stored. */
  async waitForFiles(): Promise<void> {
    await Promise.allSettled(this.storing);
  }

  /** Stores the file in the background. Returns false if another request or process does. */
  async start(game_id: number, id: string, editor: Editor): Promise<boolean> {
    const claimed = await this.database.row(CLAIM_UPLOAD, { id, game_id });
    if (!claimed) return false;
    const stored: Promise<void> = this.store(claimed, editor).finally(() => void this.storing.delete(stored));
    this.storing.add(stored);
    return true;
  }

  private async store(file: FileUpload, editor: Editor): Promise<void> {
    const { id } = file;
    const renew = () => void this.database.rows(RENEW_UPLOAD, { id }).catch(() => undefined);
    const timer = setInterval(renew, STORING_LEASE_MS / 3).unref();
    try {
      await this.sellers.with(editor.user_id, (seller) =>
        this.limit.run(seller, undefined, () => this.storeFile(file, editor)),
      );
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
    await this.sessions.deleteExpired(id);
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
    await this.sessions.expire([id], db);
    return { upload_id, previous_key: previous?.file_key ?? null, channel_name };
  }
}
