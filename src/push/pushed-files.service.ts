import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Database } from '../platform/database/database';
import { bind, read, statement } from '../platform/database/statement';
import { apiError, badRequest } from '../platform/errors/api-error';
import { canEdit } from '../games/visibility';
import { IdempotencyService, type RetryKey } from '../idempotency/idempotency.service';
import { isComplete, UploadSessions } from '../uploads/sessions/upload-sessions.service';
import { FileStorage } from '../uploads/storage/file-storage';
import { type Downloader, invalidBuild, invalidBuildFile, isFor } from '../uploads/uploads.service';
import type { Build } from '../wharf/build.entity';
import { BuildJobs } from './build-jobs.service';
import {
  type CreateBuildFileRequest,
  type FileToUploadResponse,
  type FinishBuildFileRequest,
  type PushedFileRequest,
  pushedFileResponse,
  type PushedFileResponse,
} from './push.dto';
import { PushesService } from './pushes.service';

interface FileRow extends PushedFileResponse, Pick<Build, 'file_key' | 'file_url'> {}

/** A row of nulls means that the build has no files. */
const FILES = read<Pick<Build, 'game_id'> & (FileRow | { id: null })>(
  'edited_build_files',
  `SELECT b.game_id, f.*
   FROM builds b JOIN games g ON g.id = b.game_id LEFT JOIN LATERAL (
     SELECT o.id, coalesce(o.size, s.received, 0) AS size, o.type, o.created_at, o.updated_at, o.file_key, NULL AS file_url,
       CASE WHEN o.state = 'created' AND s.received > 0 THEN 'uploading' ELSE o.state END AS state
     FROM build_files o LEFT JOIN upload_sessions s ON s.id = o.session_id WHERE o.build_id = b.id
     UNION ALL
     SELECT b.id, b.size, 'archive', b.created_at, coalesce(b.updated_at, b.created_at), b.file_key, b.file_url, 'uploaded'
     WHERE b.state = 'completed' AND b.size IS NOT NULL) f ON true
   WHERE b.id = $build_id AND ${canEdit('g', '$user_id')} ORDER BY f.id`,
);

interface FileSessionRow {
  id: number;
  session_id: string | null;
  state: string;
  size: number | null;
}

const FILE_SESSION = statement<FileSessionRow>(
  'build_file_session',
  'SELECT id, session_id, state, size FROM build_files WHERE build_id = $build_id AND type = $type',
);

const FILE_TO_FINISH = statement<FileSessionRow>(
  'build_file_to_finish',
  'SELECT id, session_id, state, size FROM build_files WHERE build_id = $build_id AND id = $file_id',
);

// A file whose session has expired gets a new session. Of two requests, the second changes nothing. The lock makes this
// and a failure of the build wait for each other, because the failure discards the sessions.
const CREATE_FILE = statement<{ id: number }>(
  'create_build_file',
  `INSERT INTO build_files (id, build_id, type, session_id)
   SELECT nextval('builds_id_seq'), b.id, $type, $session_id FROM builds b WHERE b.id = $build_id AND b.state = 'started' FOR SHARE
   ON CONFLICT (build_id, type, sub_type) DO UPDATE SET session_id = EXCLUDED.session_id, updated_at = now()
     WHERE build_files.state = 'created' AND build_files.session_id IS NOT DISTINCT FROM $expired_session_id::uuid
   RETURNING id`,
);

const LOCK_PUSHED_BUILD = statement(
  'lock_pushed_build',
  'SELECT id FROM builds WHERE id = $build_id FOR NO KEY UPDATE',
  'build $build_id',
);

const FINISH_FILE = statement(
  'finish_build_file',
  `UPDATE build_files SET state = 'uploaded', size = $size, updated_at = now() WHERE id = $file_id AND state = 'created'`,
);

/** Starts processing the build when both files are uploaded. */
const START_PROCESSING = statement<{ build_id: number }>(
  'start_processing_build',
  `WITH ready AS (
     UPDATE builds SET state = 'processing', updated_at = now()
     WHERE id = $build_id AND state = 'started' AND 2 = (
       SELECT count(*) FROM build_files WHERE build_id = $build_id AND state = 'uploaded') RETURNING id)
   INSERT INTO build_jobs (build_id) SELECT id FROM ready RETURNING build_id`,
);

/** The files of a pushed build: what upload tools send, and what is stored. */
@Injectable()
export class PushedFilesService {
  constructor(
    private readonly database: Database,
    private readonly pushes: PushesService,
    private readonly sessions: UploadSessions,
    private readonly storage: FileStorage,
    private readonly jobs: BuildJobs,
    private readonly idempotency: IdempotencyService,
  ) {}

  async list(build_id: number, credential: Downloader): Promise<PushedFileResponse[]> {
    return (await this.find(build_id, credential)).map(pushedFileResponse);
  }

  private async find(build_id: number, credential: Downloader): Promise<FileRow[]> {
    const rows = await this.database.rows(FILES, { build_id, user_id: credential.user_id });
    if (!rows[0] || !isFor(credential, rows[0].game_id)) throw invalidBuild();
    return rows.flatMap((row) => (row.id === null ? [] : row));
  }

  /** The URL of a stored file. */
  async url({ build_id, file_id }: PushedFileRequest, credential: Downloader): Promise<string> {
    const [{ slug, channel_name, version }, files] = await Promise.all([
      this.pushes.require(build_id, credential),
      this.find(build_id, credential),
    ]);
    const file = files.find(({ id }) => id === file_id);
    if (file?.file_url) return file.file_url;
    if (!file?.file_key) throw invalidBuildFile();
    const extension = { archive: 'zip', patch: 'pwr', signature: 'pws' }[file.type];
    return this.storage.downloadUrl(
      file.file_key,
      `${slug}-${channel_name}-${version}.${extension}`.slice(-200),
    );
  }

  async create(
    request: CreateBuildFileRequest,
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<FileToUploadResponse> {
    const { build_id, type } = request;
    const { game_id } = await this.pushes.require(build_id, credential);
    const { file } = await this.idempotency.storedAfter(key, request, async () => {
      const known = await this.database.row(FILE_SESSION, { build_id, type });
      if (known?.state === 'uploaded') throw apiError(409, 'the file is already complete');
      const current = await this.withSession(known);
      if (current) return { file: current };
      const expired_session_id = known?.session_id ?? null;
      const { session_id, created } = await this.database.transaction(
        async (db) => {
          const { id: session_id } = await this.sessions.create(game_id, undefined, db);
          const values = { build_id, type, session_id, expired_session_id };
          return { session_id, created: await this.database.row(CREATE_FILE, values, db) };
        },
        { concurrencyKey: `user ${credential.user_id}` },
      );
      if (created) return { file: { id: created.id, session_id } };
      await this.sessions.discard(session_id);
      const other = await this.withSession(await this.database.row(FILE_SESSION, { build_id, type }));
      if (!other) throw notStarted();
      return { file: other };
    });
    return { id: file.id, upload_url: this.sessions.sessionUrl(file.session_id), upload_headers: {} };
  }

  /** The file with its session, or undefined if the session doesn't exist. */
  private async withSession(
    file: { id: number; session_id: string | null } | undefined,
  ): Promise<{ id: number; session_id: string } | undefined> {
    if (!file?.session_id || !(await this.sessions.find(file.session_id))) return undefined;
    return { id: file.id, session_id: file.session_id };
  }

  async finish(
    request: FinishBuildFileRequest,
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<PushedFileResponse> {
    const { build_id, file_id, size } = request;
    await this.pushes.require(build_id, credential);
    const { file } = await this.idempotency.once(key, request, async (manager) => {
      const file = await this.database.row(FILE_TO_FINISH, { build_id, file_id }, manager);
      if (!file) throw invalidBuildFile();
      if ((await this.uploadedSize(file, manager)) !== size)
        throw badRequest('size differs from the uploaded file');
      await this.database.execute(
        [
          bind(LOCK_PUSHED_BUILD, { build_id }),
          bind(FINISH_FILE, { file_id, size }),
          bind(START_PROCESSING, { build_id }),
        ],
        manager,
      );
      return { file: { id: file_id } };
    });
    this.jobs.wake();
    const files = await this.find(build_id, credential);
    return pushedFileResponse(files.find(({ id }) => id === file.id)!);
  }

  /** Undefined until the last part is received, because only then the size is known. */
  private async uploadedSize(
    file: FileSessionRow,
    manager?: EntityManager,
  ): Promise<number | null | undefined> {
    if (file.state === 'uploaded') return file.size;
    const session = file.session_id ? await this.sessions.find(file.session_id, manager) : undefined;
    return session && isComplete(session) ? session.received : undefined;
  }
}

const notStarted = () => apiError(409, 'the build takes no more files');
