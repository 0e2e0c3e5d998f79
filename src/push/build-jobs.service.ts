import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { Interval } from '@nestjs/schedule';
import type { EntityManager } from 'typeorm';
import { Events } from '../events/events';
import { Clock, staggered } from '../platform/config/clock';
import { Settings } from '../platform/config/settings';
import { Database } from '../platform/database/database';
import { bind, statement } from '../platform/database/statement';
import { ApiError } from '../platform/errors/api-error';
import { BuildFolders } from '../uploads/build-folders';
import { FileQuota } from '../uploads/file-quota.service';
import { UploadParts } from '../uploads/sessions/upload-parts.service';
import { UploadSessions } from '../uploads/sessions/upload-sessions.service';
import { BuildFileError } from '../wharf/pwr/build-file-error';
import { ADD_EVENT } from './build-events.service';
import { BuildFailures } from './build-failures.service';
import { storedKeys } from './build-keys';
import { ANNOUNCE_COMPLETED } from './build-messages';
import { BuildQueue, type Claim, MAX_BUILD_ATTEMPTS } from './build-queue.service';
import { BuildMetrics } from './build-metrics';
import { processBuild, type ProcessedBuild } from './build-thread';

const JOB_POLL_INTERVAL_MS = 5000;
const UNFINISHED_BUILDS_INTERVAL_MS = 50_000;
const RENEW_INTERVAL_MS = 15_000;
/** The wait after a failed attempt, multiplied by the number of attempts. */
const JOB_RETRY_MS = 10_000;

interface JobRow {
  id: number;
  game_id: number;
  created_at: string;
  patch_session: string;
  signature_session: string;
  parent_key: string | null;
  parent_size: number;
  parent_signature_key: string;
  parent_signature_size: number;
}

const JOB = statement<JobRow>(
  'build_job',
  `SELECT b.id, b.game_id, b.created_at, patch.session_id AS patch_session, signature.session_id AS signature_session,
     p.file_key AS parent_key, p.size AS parent_size, ps.file_key AS parent_signature_key, ps.size AS parent_signature_size
   FROM builds b
   JOIN build_files patch ON patch.build_id = b.id AND patch.type = 'patch'
   JOIN build_files signature ON signature.build_id = b.id AND signature.type = 'signature'
   LEFT JOIN builds p ON p.id = b.parent_build_id
   LEFT JOIN build_files ps ON ps.build_id = p.id AND ps.type = 'signature'
   WHERE b.id = $build_id`,
);

const COMPLETE = statement<{ game_id: number }>(
  'complete_build',
  `WITH job AS (DELETE FROM build_jobs WHERE build_id = $build_id),
   files AS (
     UPDATE build_files SET session_id = NULL, updated_at = now(),
       file_key = CASE type WHEN 'patch' THEN $patch_key ELSE $signature_key END,
       size = CASE type WHEN 'patch' THEN $patch_size::bigint ELSE $signature_size::bigint END
     WHERE build_id = $build_id),
   build AS (
     UPDATE builds SET state = 'completed', file_key = $archive_key, size = $archive_size, md5_hash = $md5_hash,
       expires_at = NULL, updated_at = now()
     WHERE id = $build_id RETURNING game_id, channel_name, hidden)
   UPDATE uploads u SET updated_at = now() FROM build b
   WHERE u.game_id = b.game_id AND u.channel_name = b.channel_name AND NOT b.hidden RETURNING u.game_id`,
);

const LATE = statement<{ id: number }>(
  'late_builds',
  `SELECT id FROM builds WHERE expires_at <= $now ORDER BY expires_at LIMIT 100`,
);

/** A claim, with its start for the metrics. */
interface Attempt extends Claim {
  /** Milliseconds of `performance.now()`. */
  started: number;
}

const LATE_MESSAGE = 'The push was not complete within 24 hours.';
const GIVEN_UP_MESSAGE = 'The build could not be processed. Push it again.';

/** Processes pushed builds, in every replica. */
@Injectable()
export class BuildJobs implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly log = new Logger('Builds');
  private readonly stopping = new AbortController();
  private readonly waiting = new Set<() => void>();
  private wakes = 0;
  private running: Promise<void>[] = [];

  constructor(
    private readonly settings: Settings,
    private readonly database: Database,
    private readonly queue: BuildQueue,
    private readonly sessions: UploadSessions,
    private readonly parts: UploadParts,
    private readonly quota: FileQuota,
    private readonly folders: BuildFolders,
    private readonly failures: BuildFailures,
    private readonly events: Events,
    private readonly clock: Clock,
    private readonly metrics: BuildMetrics,
    private readonly host: HttpAdapterHost,
  ) {}

  onApplicationBootstrap(): void {
    // Without an adapter this is an operator's command.
    if (!this.host.httpAdapter) return;
    this.running = Array.from({ length: this.settings.BUILD_WORKERS }, () => this.work());
  }

  async beforeApplicationShutdown(): Promise<void> {
    this.stopping.abort();
    this.wake();
    await Promise.all(this.running);
  }

  /** Call this when there may be a job. */
  wake(): void {
    this.wakes++;
    for (const resume of this.waiting) resume();
  }

  /** Fails builds that aren't complete in time, and those whose processes were killed too often. */
  @Interval('unfinished builds', staggered(UNFINISHED_BUILDS_INTERVAL_MS))
  async sweep(): Promise<void> {
    const now = new Date(this.clock.now());
    for (const { id } of await this.database.rows(LATE, { now })) await this.failures.fail(id, LATE_MESSAGE);
    for (const { id } of await this.queue.givenUp())
      if (await this.failures.fail(id, GIVEN_UP_MESSAGE)) this.metrics.ended('failed', 0);
    await this.metrics.readOldest();
    await this.folders.deleteStale();
  }

  private async work(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      const { wakes } = this;
      const claimed = await this.queue.claim().catch(() => undefined);
      if (claimed) await this.run({ ...claimed, started: performance.now() });
      else if (wakes === this.wakes) await this.woken();
    }
  }

  private woken(): Promise<void> {
    return new Promise((resolve) => {
      const resume = () => {
        clearTimeout(timer);
        this.waiting.delete(resume);
        resolve();
      };
      const timer = setTimeout(resume, JOB_POLL_INTERVAL_MS).unref();
      this.waiting.add(resume);
    });
  }

  private async run(claim: Attempt): Promise<void> {
    const { build_id, attempt, lease } = claim;
    const lost = new AbortController();
    const renewal = setInterval(() => void this.renew(claim, lost), RENEW_INTERVAL_MS).unref();
    try {
      await this.folders.with(`build-${build_id}.${attempt}.${lease}`, (folder) =>
        this.process(claim, folder, AbortSignal.any([lost.signal, this.stopping.signal])),
      );
    } catch (error) {
      if (!lost.signal.aborted)
        await this.afterFailure(claim, error as Error).catch(({ message }: Error) =>
          // The lease expires, and another attempt follows.
          this.log.warn(`The failure of build ${build_id} could not be stored: ${message}`),
        );
    } finally {
      clearInterval(renewal);
    }
  }

  private async process(claim: Attempt, folder: string, signal: AbortSignal): Promise<void> {
    const { build_id, attempt, started } = claim;
    const job = await this.database.row(JOB, { build_id });
    if (!job) return;
    const { game_id, created_at, patch_session, signature_session } = job;
    const sessions = [patch_session, signature_session];
    await this.failures.deleteStored(game_id, build_id, attempt - 1);
    const keys = storedKeys(game_id, build_id, attempt);
    const discard = () => this.failures.deleteStored(game_id, build_id, attempt);
    const built = await processBuild(
      {
        storage: this.storageSettings(),
        signature: await this.parts.list(signature_session),
        patch: await this.parts.list(patch_session),
        parent: parentIn(job),
        keys,
        folder,
        max_bytes: this.settings.FILES_MAX_BYTES,
        created_at: Date.parse(created_at),
      },
      signal,
    ).catch(async (error: unknown) => {
      // An attempt that has taken the job over doesn't know the files that this one stored meanwhile.
      await discard().catch(() => undefined);
      throw error;
    });
    if (!(await this.complete(claim, { game_id, keys, sessions }, built))) return discard();
    this.metrics.completed(performance.now() - started, totalBytes(built));
    this.events.announced();
    for (const id of sessions) await this.sessions.deleteExpired(id);
  }

  /** Returns false if another process has taken the job over, or the build has failed. */
  private complete(
    claim: Claim,
    { game_id, keys, sessions }: { game_id: number; keys: ReturnType<typeof storedKeys>; sessions: string[] },
    built: ProcessedBuild,
  ): Promise<boolean> {
    return this.database.transaction(async (db) => {
      if (!(await this.queue.hasLease(claim, db))) return false;
      const { build_id } = claim;
      const { archive, patch, signature } = built;
      await this.requireSpace(game_id, totalBytes(built), db);
      await this.database.execute(
        [
          bind(COMPLETE, {
            build_id,
            archive_key: keys.archive,
            archive_size: archive.size,
            md5_hash: archive.md5_hash,
            patch_key: keys.patch,
            patch_size: patch.size,
            signature_key: keys.signature,
            signature_size: signature.size,
          }),
          bind(ADD_EVENT, { build_id, type: 'completed', message: 'The build is complete.', data: null }),
          bind(ANNOUNCE_COMPLETED, { build_id }),
        ],
        db,
      );
      await this.sessions.expire(sessions, db);
      return true;
    });
  }

  private async requireSpace(game_id: number, bytes: number, db: EntityManager): Promise<void> {
    try {
      await this.quota.requireSpace(game_id, bytes, db);
    } catch (error) {
      throw error instanceof ApiError ? new BuildFileError(`Not enough space: ${error.message}.`) : error;
    }
  }

  private async afterFailure(claim: Attempt, error: Error): Promise<void> {
    const { build_id, attempt, started } = claim;
    if (this.stopping.signal.aborted) {
      await this.queue.release(claim, 0, { isCounted: false });
      return;
    }
    const milliseconds = performance.now() - started;
    if (error instanceof BuildFileError) {
      this.metrics.ended('rejected', milliseconds);
      await this.failures.fail(build_id, error.message, {
        isAllowed: (db) => this.queue.hasLease(claim, db),
      });
      return;
    }
    this.log.warn(`Attempt ${attempt} to process build ${build_id} failed: ${error.message}`);
    this.metrics.ended(attempt >= MAX_BUILD_ATTEMPTS ? 'failed' : 'retried', milliseconds);
    if (attempt >= MAX_BUILD_ATTEMPTS)
      await this.failures.fail(build_id, GIVEN_UP_MESSAGE, {
        isAllowed: (db) => this.queue.hasLease(claim, db),
      });
    else await this.queue.release(claim, attempt * JOB_RETRY_MS, { isCounted: true });
  }

  private async renew(claim: Claim, lost: AbortController): Promise<void> {
    try {
      if (!(await this.queue.renew(claim))) lost.abort();
    } catch {
      // The next renewal tries again. If the lease expires, the transaction at the end detects it.
    }
  }

  private storageSettings() {
    const entries = Object.entries(this.settings).filter(([name]) => name.startsWith('FILES_'));
    return Object.fromEntries(entries) as Pick<Settings, Extract<keyof Settings, `FILES_${string}`>>;
  }
}

const parentIn = (job: JobRow) =>
  job.parent_key === null
    ? undefined
    : {
        archive: { file_key: job.parent_key, size: job.parent_size },
        signature: { file_key: job.parent_signature_key, size: job.parent_signature_size },
      };

const totalBytes = ({ archive, patch, signature }: ProcessedBuild) =>
  archive.size + patch.size + signature.size;
