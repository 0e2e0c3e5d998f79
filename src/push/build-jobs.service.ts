import { randomUUID } from 'node:crypto';
import {
  type BeforeApplicationShutdown,
  Injectable,
  Logger,
  type OnApplicationBootstrap,
} from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import type { EntityManager } from 'typeorm';
import { Events } from '../events/events';
import { Clock } from '../platform/config/clock';
import { Settings } from '../platform/config/settings';
import { Database } from '../platform/database/database';
import { bind, statement } from '../platform/database/statement';
import { ApiError } from '../platform/errors/api-error';
import { BuildFolders } from '../uploads/build-folders';
import { FileUploadsService } from '../uploads/file-uploads.service';
import { UploadSessions } from '../uploads/sessions/upload-sessions.service';
import { BuildFileError } from '../wharf/pwr/build-file-error';
import { ADD_EVENT } from './build-events.service';
import { BuildFailures } from './build-failures.service';
import { storedKeys } from './build-keys';
import { ANNOUNCE_COMPLETED } from './build-messages';
import { BuildMetrics } from './build-metrics';
import { processBuild, type ProcessedBuild } from './build-thread';

const POLL_INTERVAL_MS = 5000;
const SWEEP_INTERVAL_MS = 50_000;
/** Another process takes the job of one that was killed. */
const LEASE_MS = 60_000;
const RENEW_INTERVAL_MS = 15_000;
const MAX_ATTEMPTS = 3;
/** The wait after a failure, of the storage for example; multiplied by the number of attempts. */
const RETRY_MS = 10_000;

/** Owners whose jobs this process has claimed recently. */
const MAX_SERVED = 1000;

/**
 * The owners with the fewest running jobs are next, and among them the one that this process served least recently, so
 * that many pushes of one owner don't delay those of others. $4: the owners served, the latest last.
 */
const CLAIM = statement<{ build_id: number; attempts: number; owner_id: number }>(
  'claim_build_job',
  `WITH running AS (
     SELECT g.user_id, count(*) AS jobs
     FROM build_jobs j JOIN builds b ON b.id = j.build_id JOIN games g ON g.id = b.game_id
     WHERE j.lease IS NOT NULL AND j.leased_until > $1 GROUP BY g.user_id),
   next AS (
     SELECT j.build_id, g.user_id FROM build_jobs j JOIN builds b ON b.id = j.build_id JOIN games g ON g.id = b.game_id
     LEFT JOIN running r ON r.user_id = g.user_id
     WHERE coalesce(j.leased_until <= $1, true) AND j.attempts < ${MAX_ATTEMPTS}
     ORDER BY coalesce(r.jobs, 0), coalesce(array_position($4::bigint[], g.user_id), 0), j.created_at, j.build_id
     LIMIT 1 FOR UPDATE OF j SKIP LOCKED)
   UPDATE build_jobs j SET attempts = attempts + 1, lease = $2, leased_until = $3 FROM next
   WHERE j.build_id = next.build_id RETURNING j.build_id, j.attempts, next.user_id AS owner_id`,
);

const RENEW = statement<{ build_id: number }>(
  'renew_build_job',
  'UPDATE build_jobs SET leased_until = $3 WHERE build_id = $1 AND lease = $2 RETURNING build_id',
);

const RELEASE = statement(
  'release_build_job',
  `UPDATE build_jobs SET attempts = attempts - $4, lease = NULL, leased_until = $3 WHERE build_id = $1 AND lease = $2`,
);

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
   WHERE b.id = $1`,
);

const LOCK_JOB = statement<{ build_id: number }>(
  'lock_build_job',
  'SELECT build_id FROM build_jobs WHERE build_id = $1 AND lease = $2 FOR UPDATE',
);

const COMPLETE = statement<{ game_id: number }>(
  'complete_build',
  `WITH job AS (DELETE FROM build_jobs WHERE build_id = $1),
   files AS (
     UPDATE build_files SET session_id = NULL, updated_at = now(),
       file_key = CASE type WHEN 'patch' THEN $5 ELSE $7 END, size = CASE type WHEN 'patch' THEN $6::bigint ELSE $8::bigint END
     WHERE build_id = $1),
   build AS (
     UPDATE builds SET state = 'completed', file_key = $2, size = $3, md5_hash = $4, expires_at = NULL, updated_at = now()
     WHERE id = $1 RETURNING game_id, channel_name, hidden)
   UPDATE uploads u SET updated_at = now() FROM build b
   WHERE u.game_id = b.game_id AND u.channel_name = b.channel_name AND NOT b.hidden RETURNING u.game_id`,
);

const LATE = statement<{ id: number }>(
  'late_builds',
  `SELECT id FROM builds WHERE expires_at <= $1 ORDER BY expires_at LIMIT 100`,
);

const GIVEN_UP = statement<{ id: number }>(
  'given_up_builds',
  `SELECT build_id AS id FROM build_jobs WHERE attempts >= ${MAX_ATTEMPTS} AND leased_until <= $1 LIMIT 100`,
);

const LATE_MESSAGE = 'The push was not complete within 24 hours.';
const GIVEN_UP_MESSAGE = 'The build could not be processed. Push it again.';

interface Claim {
  build_id: number;
  attempt: number;
  lease: string;
  /** Milliseconds of `performance.now()`. */
  started: number;
}

/** Processes pushed builds, in every replica. A job is leased for a time, so that another process takes it if this one is killed. */
@Injectable()
export class BuildJobs implements OnApplicationBootstrap, BeforeApplicationShutdown {
  private readonly log = new Logger('Builds');
  private readonly stopping = new AbortController();
  private readonly waiting = new Set<() => void>();
  private wakes = 0;
  private served: number[] = [];
  private running: Promise<void>[] = [];
  private timer: NodeJS.Timeout | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly database: Database,
    private readonly sessions: UploadSessions,
    private readonly fileUploads: FileUploadsService,
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
    this.timer = setInterval(() => void this.sweep(), SWEEP_INTERVAL_MS * (0.8 + Math.random() / 5)).unref();
    this.running = Array.from({ length: this.settings.BUILD_WORKERS }, () => this.work());
  }

  async beforeApplicationShutdown(): Promise<void> {
    clearInterval(this.timer);
    this.stopping.abort();
    this.wake();
    await Promise.all(this.running);
  }

  /** Call it when there may be a job. */
  wake(): void {
    this.wakes++;
    for (const resume of this.waiting) resume();
  }

  /** Fails builds that aren't complete in time, and those whose processes were killed too often. */
  async sweep(): Promise<void> {
    try {
      const now = [new Date(this.clock.now())];
      for (const { id } of await this.database.rows(LATE, now)) await this.failures.fail(id, LATE_MESSAGE);
      for (const { id } of await this.database.rows(GIVEN_UP, now))
        if (await this.failures.fail(id, GIVEN_UP_MESSAGE)) this.metrics.ended('failed', 0);
      await this.metrics.readOldest();
      await this.folders.deleteStale();
    } catch (error) {
      this.log.warn(`Unfinished builds could not be checked: ${(error as Error).message}`);
    }
  }

  private async work(): Promise<void> {
    while (!this.stopping.signal.aborted) {
      const { wakes } = this;
      const claimed = await this.claim().catch(() => undefined);
      if (claimed) await this.run(claimed);
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
      const timer = setTimeout(resume, POLL_INTERVAL_MS).unref();
      this.waiting.add(resume);
    });
  }

  private async claim(): Promise<Claim | undefined> {
    const lease = randomUUID();
    const now = new Date(this.clock.now());
    const claimed = await this.database.row(CLAIM, [now, lease, this.leaseEnd(), this.served]);
    if (!claimed) return undefined;
    const { build_id, attempts, owner_id } = claimed;
    this.served = [...this.served.filter((id) => id !== owner_id), owner_id].slice(-MAX_SERVED);
    return { build_id, attempt: attempts, lease, started: performance.now() };
  }

  private leaseEnd(): Date {
    return new Date(this.clock.now() + LEASE_MS);
  }

  private async run(claim: Claim): Promise<void> {
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

  private async process(claim: Claim, folder: string, signal: AbortSignal): Promise<void> {
    const { build_id, attempt, lease, started } = claim;
    const job = await this.database.row(JOB, [build_id]);
    if (!job) return;
    const { game_id, created_at, patch_session, signature_session } = job;
    await this.failures.deleteStored(game_id, build_id, attempt - 1);
    const keys = storedKeys(game_id, build_id, attempt);
    const discard = () => this.failures.deleteStored(game_id, build_id, attempt);
    const built = await processBuild(
      {
        storage: this.storageSettings(),
        signature: await this.sessions.parts(signature_session),
        patch: await this.sessions.parts(patch_session),
        parent: parentIn(job),
        keys,
        folder,
        max_bytes: this.settings.FILES_MAX_BYTES,
        created_at: Date.parse(created_at),
      },
      signal,
    ).catch(async (error: unknown) => {
      // The attempt of a process that has taken the job over doesn't see what this one stored meanwhile.
      await discard().catch(() => undefined);
      throw error;
    });
    if (!(await this.complete({ game_id, build_id, lease }, keys, built))) return discard();
    this.metrics.completed(performance.now() - started, totalBytes(built));
    this.events.announced();
    await this.sessions.discard(patch_session);
    await this.sessions.discard(signature_session);
  }

  /** Returns false if the job is another process's by now, or the build has failed. */
  private complete(
    { game_id, build_id, lease }: { game_id: number; build_id: number; lease: string },
    keys: ReturnType<typeof storedKeys>,
    built: ProcessedBuild,
  ): Promise<boolean> {
    return this.database.transaction(async (db) => {
      if (!(await this.hasLease(build_id, lease, db))) return false;
      const { archive, patch, signature } = built;
      const files = [keys.patch, patch.size, keys.signature, signature.size];
      await this.requireSpace(game_id, totalBytes(built), db);
      await this.database.execute(
        [
          bind(COMPLETE, [build_id, keys.archive, archive.size, archive.md5_hash, ...files]),
          bind(ADD_EVENT, [build_id, 'completed', 'The build is complete.', null]),
          bind(ANNOUNCE_COMPLETED, [build_id]),
        ],
        db,
      );
      return true;
    });
  }

  private async requireSpace(game_id: number, bytes: number, db: EntityManager): Promise<void> {
    try {
      await this.fileUploads.requireSpace(game_id, bytes, db);
    } catch (error) {
      throw error instanceof ApiError ? new BuildFileError(`Not enough space: ${error.message}.`) : error;
    }
  }

  /** Locks the job, unless another process has taken it over. */
  private async hasLease(build_id: number, lease: string, db: EntityManager): Promise<boolean> {
    const getRows = await this.database.execute([bind(LOCK_JOB, [build_id, lease])], db);
    return getRows(LOCK_JOB).length > 0;
  }

  private async afterFailure({ build_id, attempt, lease, started }: Claim, error: Error): Promise<void> {
    const now = this.clock.now();
    if (this.stopping.signal.aborted) {
      await this.database.rows(RELEASE, [build_id, lease, new Date(now), 1]);
      return;
    }
    const milliseconds = performance.now() - started;
    if (error instanceof BuildFileError) {
      this.metrics.ended('rejected', milliseconds);
      await this.failures.fail(build_id, error.message, (db) => this.hasLease(build_id, lease, db));
      return;
    }
    this.log.warn(`Attempt ${attempt} to process build ${build_id} failed: ${error.message}`);
    this.metrics.ended(attempt >= MAX_ATTEMPTS ? 'failed' : 'retried', milliseconds);
    if (attempt >= MAX_ATTEMPTS)
      await this.failures.fail(build_id, GIVEN_UP_MESSAGE, (db) => this.hasLease(build_id, lease, db));
    else await this.database.rows(RELEASE, [build_id, lease, new Date(now + attempt * RETRY_MS), 0]);
  }

  private async renew({ build_id, lease }: Claim, lost: AbortController): Promise<void> {
    try {
      const values = [build_id, lease, this.leaseEnd()];
      if (!(await this.database.row(RENEW, values))) lost.abort();
    } catch {
      // The next one tries again. If the lease expires, the transaction at the end notices it.
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
