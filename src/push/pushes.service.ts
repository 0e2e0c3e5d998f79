import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Clock } from '../platform/config/clock';
import { Settings } from '../platform/config/settings';
import { Database } from '../platform/database/database';
import { bind, longRead, read, statement } from '../platform/database/statement';
import { apiError, badRequest, tooMany } from '../platform/errors/api-error';
import { canEdit, editedBy } from '../games/visibility';
import { IdempotencyService, type RetryKey } from '../idempotency/idempotency.service';
import { isComplete, UploadSessions } from '../uploads/sessions/upload-sessions.service';
import { FileStorage } from '../uploads/storage/file-storage';
import { ChannelsService } from '../uploads/channels.service';
import { LOCK_OWNER } from '../uploads/lock-owner';
import { BUILD_ROW } from '../uploads/upload.row';
import { type Downloader, invalidBuild, isFor } from '../uploads/uploads.service';
import type { Build } from '../wharf/build.entity';
import { BuildFailures } from './build-failures.service';
import { BuildJobs } from './build-jobs.service';
import { traitsForChannel } from './channel-traits';
import {
  type CreateBuildFileRequest,
  type CreateBuildRequest,
  type CreateBuildResponse,
  type FailBuildRequest,
  type FileToUploadResponse,
  type FinishBuildFileRequest,
  type ProfileBuildsRequest,
  type PushedBuildRow,
  type PushedFileRequest,
  pushedFileResponse,
  type PushedFileResponse,
} from './push.dto';

const LIFETIME_MS = 24 * 3600 * 1000;
/** Builds of the games of one owner that are started or processed. */
export const MAX_UNFINISHED = 50;
/** Uploads of a game, one for each channel. */
export const MAX_CHANNELS = 500;

const LOCK_GAME = statement(
  'lock_game_of_push',
  `SELECT g.id FROM games g WHERE g.id = $1 AND ${canEdit('g', '$2')} FOR NO KEY UPDATE OF g`,
  'game $1',
);

const QUOTA = statement<{ unfinished: number; channels: number }>(
  'push_quota',
  `SELECT (SELECT count(*) FROM games og JOIN builds b ON b.game_id = og.id AND b.expires_at IS NOT NULL
           WHERE og.user_id = g.user_id) AS unfinished,
     CASE WHEN EXISTS (SELECT FROM uploads WHERE game_id = g.id AND channel_name = $2) THEN 0
       ELSE (SELECT count(*) FROM uploads WHERE game_id = g.id) END AS channels
   FROM games g WHERE g.id = $1`,
);

/** The newest build `b` that upload tools can compare with: its files are stored, and it has a signature. */
const PARENT = `SELECT b.id FROM builds b
   WHERE b.game_id = $1 AND b.channel_name = $2 AND b.state = 'completed' AND b.file_key IS NOT NULL AND b.size <= $10 AND EXISTS (
     SELECT FROM build_files f WHERE f.build_id = b.id AND f.type = 'signature' AND f.file_key IS NOT NULL)
   ORDER BY b.id DESC LIMIT 1`;

interface CreatedRow {
  id: number;
  upload_id: number;
  parent_build_id: number | null;
}

const CREATE = statement<CreatedRow>(
  'create_pushed_build',
  `WITH build AS (
     INSERT INTO builds (game_id, channel_name, state, user_version, hidden, source, metadata, launch_analysis, expires_at,
       parent_build_id)
     VALUES ($1, $2, 'started', $3, $4, $5, $6, $7, $8, (${PARENT})) RETURNING id, parent_build_id),
   old AS (SELECT min(id) AS id FROM uploads WHERE game_id = $1 AND channel_name = $2),
   upload AS (
     INSERT INTO uploads (game_id, channel_name, filename, traits, position)
     SELECT $1, $2, left(g.slug || '-' || $2, 251) || '.zip', $9::text[],
       (SELECT coalesce(max(position) + 1, 0) FROM uploads WHERE game_id = $1)
     FROM games g CROSS JOIN old WHERE g.id = $1 AND old.id IS NULL RETURNING id)
   SELECT build.id, build.parent_build_id, coalesce(old.id, upload.id) AS upload_id
   FROM build CROSS JOIN old LEFT JOIN upload ON true`,
);

interface PushedRow extends PushedBuildRow, Pick<Build, 'channel_name'> {
  slug: string;
}

const PUSHED_COLUMNS = `${BUILD_ROW}, b.hidden, b.error`;

const BUILD = read<PushedRow>(
  'edited_build',
  `SELECT ${PUSHED_COLUMNS}, b.channel_name, g.slug
   FROM builds b JOIN games g ON g.id = b.game_id WHERE b.id = $1 AND ${canEdit('g', '$2')}`,
);

interface FileRow extends PushedFileResponse, Pick<Build, 'file_key' | 'file_url'> {}

/** A row of nulls: the build has no files. */
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
   WHERE b.id = $1 AND ${canEdit('g', '$2')} ORDER BY f.id`,
);

interface FileSessionRow {
  id: number;
  session_id: string | null;
  state: string;
  size: number | null;
}

const FILE_SESSION = statement<FileSessionRow>(
  'build_file_session',
  'SELECT id, session_id, state, size FROM build_files WHERE build_id = $1 AND type = $2',
);

const FILE_TO_FINISH = statement<FileSessionRow>(
  'build_file_to_finish',
  'SELECT id, session_id, state, size FROM build_files WHERE build_id = $1 AND id = $2',
);

// A file whose session $4 has expired gets another one. Of two requests, the second changes nothing.
const CREATE_FILE = statement<{ id: number }>(
  'create_build_file',
  `INSERT INTO build_files (id, build_id, type, session_id)
   SELECT nextval('builds_id_seq'), b.id, $2, $3 FROM builds b WHERE b.id = $1 AND b.state = 'started'
   ON CONFLICT (build_id, type, sub_type) DO UPDATE SET session_id = EXCLUDED.session_id, updated_at = now()
     WHERE build_files.state = 'created' AND build_files.session_id IS NOT DISTINCT FROM $4::uuid
   RETURNING id`,
);

const LOCK_BUILD = statement('lock_pushed_build', 'SELECT id FROM builds WHERE id = $1 FOR NO KEY UPDATE');

const FINISH_FILE = statement(
  'finish_build_file',
  `UPDATE build_files SET state = 'uploaded', size = $2, updated_at = now() WHERE id = $1 AND state = 'created'`,
);

/** With both files, the build is processed. */
const START_PROCESSING = statement<{ build_id: number }>(
  'start_processing_build',
  `WITH ready AS (
     UPDATE builds SET state = 'processing', updated_at = now()
     WHERE id = $1 AND state = 'started' AND 2 = (
       SELECT count(*) FROM build_files WHERE build_id = $1 AND state = 'uploaded') RETURNING id)
   INSERT INTO build_jobs (build_id) SELECT id FROM ready RETURNING build_id`,
);

const PUBLISH = statement<{ id: number }>(
  'publish_build',
  `UPDATE builds SET hidden = false, updated_at = CASE WHEN hidden THEN now() ELSE updated_at END
   WHERE id = $1 AND state <> 'failed' RETURNING id`,
);

// The newest of each game, so that games with many builds aren't read as a whole. $2: offset; $3: rows.
const OF_PROFILE = longRead<PushedBuildRow>(
  'profile_builds',
  `SELECT ${PUSHED_COLUMNS} FROM (${editedBy('$1')}) g (id) CROSS JOIN LATERAL (
     SELECT * FROM builds o
     WHERE o.game_id = g.id
       AND (o.state <> 'started' OR $4 = 'started' OR o.id = ANY ($5::bigint[]))
       AND CASE $4 WHEN '' THEN true WHEN 'live' THEN o.state = 'completed' AND NOT o.hidden
         WHEN 'processing' THEN o.state IN ('started', 'processing') ELSE o.state = $4 END
     ORDER BY o.id DESC LIMIT $2::bigint + $3::bigint) b
   ORDER BY b.id DESC OFFSET $2 LIMIT $3`,
  'user $1',
);

/** Builds that upload tools push: a patch against the channel's newest build, and a signature of the new one. */
@Injectable()
export class PushesService {
  constructor(
    private readonly database: Database,
    private readonly channels: ChannelsService,
    private readonly sessions: UploadSessions,
    private readonly storage: FileStorage,
    private readonly failures: BuildFailures,
    private readonly jobs: BuildJobs,
    private readonly idempotency: IdempotencyService,
    private readonly clock: Clock,
    private readonly settings: Settings,
  ) {}

  async create(
    request: CreateBuildRequest,
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<CreateBuildResponse> {
    const game_id = await this.channels.game({ target: request.target }, credential);
    const { channel, user_version, hidden = false, source, metadata, launch_analysis } = request;
    const { FILES_MAX_BYTES: max_bytes } = this.settings;
    const expires_at = new Date(this.clock.now() + LIFETIME_MS);
    return this.idempotency.once(key, request, (manager) =>
      this.inTransaction(manager, async (db) => {
        const quota = await this.database.execute(
          [
            bind(LOCK_GAME, [game_id, credential.user_id]),
            bind(LOCK_OWNER, [game_id]),
            bind(QUOTA, [game_id, channel]),
          ],
          db,
        );
        const [{ unfinished = 0, channels = 0 } = {}] = quota(QUOTA);
        if (unfinished >= MAX_UNFINISHED) throw tooMany('too many unfinished builds');
        if (channels >= MAX_CHANNELS) throw tooMany('too many channels');
        const texts = [
          user_version || null,
          hidden,
          source ?? null,
          metadata ?? null,
          launch_analysis ?? null,
        ];
        const created = await this.database.execute(
          [bind(CREATE, [game_id, channel, ...texts, expires_at, traitsForChannel(channel), max_bytes])],
          db,
        );
        const { id, upload_id, parent_build_id } = created(CREATE)[0]!;
        const parent_build = parent_build_id === null ? undefined : { id: parent_build_id };
        return { build: { id, upload_id, ...(parent_build && { parent_build }) } };
      }),
    );
  }

  /** A build of a game that the caller can edit. */
  async require(build_id: number, credential: Downloader): Promise<PushedRow> {
    const build = await this.database.row(BUILD, [build_id, credential.user_id]);
    if (!build || !isFor(credential, build.game_id)) throw invalidBuild();
    return build;
  }

  async ofProfile(
    { page, per_page, state, started_build_ids = '' }: ProfileBuildsRequest,
    { user_id }: Downloader,
  ): Promise<PushedBuildRow[]> {
    const started = (started_build_ids.match(/\d+/g) ?? []).map(Number);
    return this.database.rows(OF_PROFILE, [user_id, (page - 1) * per_page, per_page, state ?? '', started]);
  }

  async files(build_id: number, credential: Downloader): Promise<PushedFileResponse[]> {
    return (await this.findFiles(build_id, credential)).map(pushedFileResponse);
  }

  private async findFiles(build_id: number, credential: Downloader): Promise<FileRow[]> {
    const rows = await this.database.rows(FILES, [build_id, credential.user_id]);
    if (!rows[0] || !isFor(credential, rows[0].game_id)) throw invalidBuild();
    return rows.flatMap((row) => (row.id === null ? [] : row));
  }

  /** The URL of a stored file. */
  async fileUrl({ build_id, file_id }: PushedFileRequest, credential: Downloader): Promise<string> {
    const [{ slug, channel_name, version }, files] = await Promise.all([
      this.require(build_id, credential),
      this.findFiles(build_id, credential),
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

  async createFile(
    request: CreateBuildFileRequest,
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<FileToUploadResponse> {
    const { build_id, type } = request;
    const { game_id } = await this.require(build_id, credential);
    const { file } = await this.idempotency.storedAfter(key, request, async () => {
      const known = await this.database.row(FILE_SESSION, [build_id, type]);
      if (known?.state === 'uploaded') throw apiError(409, 'the file is already complete');
      const current = await this.withSession(known);
      if (current) return { file: current };
      const { id: session_id } = await this.sessions.create(game_id);
      const values = [build_id, type, session_id, known?.session_id ?? null];
      const created = await this.database.row(CREATE_FILE, values);
      if (created) return { file: { id: created.id, session_id } };
      await this.sessions.discard(session_id);
      const other = await this.withSession(await this.database.row(FILE_SESSION, [build_id, type]));
      if (!other) throw notStarted();
      return { file: other };
    });
    return { id: file.id, upload_url: this.sessions.sessionUrl(file.session_id), upload_headers: {} };
  }

  /** The file, if it can be sent to its session. */
  private async withSession(
    file: { id: number; session_id: string | null } | undefined,
  ): Promise<{ id: number; session_id: string } | undefined> {
    if (!file?.session_id || !(await this.sessions.find(file.session_id))) return undefined;
    return { id: file.id, session_id: file.session_id };
  }

  async finishFile(
    request: FinishBuildFileRequest,
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<PushedFileResponse> {
    const { build_id, file_id, size } = request;
    await this.require(build_id, credential);
    const { file } = await this.idempotency.once(key, request, async (manager) => {
      const file = await this.database.row(FILE_TO_FINISH, [build_id, file_id]);
      if (!file) throw invalidBuildFile();
      if ((await this.uploadedSize(file)) !== size) throw badRequest('size differs from the uploaded file');
      await this.database.execute(
        [
          bind(LOCK_BUILD, [build_id]),
          bind(FINISH_FILE, [file_id, size]),
          bind(START_PROCESSING, [build_id]),
        ],
        manager,
      );
      return { file: { id: file_id } };
    });
    this.jobs.wake();
    const files = await this.findFiles(build_id, credential);
    return pushedFileResponse(files.find(({ id }) => id === file.id)!);
  }

  /** Undefined until the last part is received, which has the size. */
  private async uploadedSize(file: FileSessionRow): Promise<number | null | undefined> {
    if (file.state === 'uploaded') return file.size;
    const session = file.session_id ? await this.sessions.find(file.session_id) : undefined;
    return session && isComplete(session) ? session.received : undefined;
  }

  async fail(request: FailBuildRequest, credential: Downloader, key: RetryKey | undefined): Promise<void> {
    const { build_id, message } = request;
    await this.require(build_id, credential);
    await this.idempotency.storedAfter(key, request, async () => {
      await this.failures.fail(build_id, message);
      return { success: true };
    });
  }

  /** Makes a hidden build the head of its channel, now or when it is completed. */
  async publish(
    request: { build_id: number },
    credential: Downloader,
    key: RetryKey | undefined,
  ): Promise<void> {
    const { build_id } = request;
    await this.require(build_id, credential);
    await this.idempotency.once(key, request, async (manager) => {
      const rows = await this.database.execute([bind(PUBLISH, [build_id])], manager);
      if (rows(PUBLISH).length === 0) throw apiError(409, 'the build has failed');
      return { success: true };
    });
  }

  private inTransaction<Result>(
    manager: EntityManager | undefined,
    work: (db: EntityManager) => Promise<Result>,
  ): Promise<Result> {
    return manager ? work(manager) : this.database.transaction(work);
  }
}

export const invalidBuildFile = () => apiError(404, 'invalid build file');
const notStarted = () => apiError(409, 'the build takes no more files');
