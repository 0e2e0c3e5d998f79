import { randomUUID } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Database } from '../platform/database/database';
import { statement } from '../platform/database/statement';

/**
 * After this time, another process takes the job of a process that was killed. By the clock of the database: those of
 * two replicas can differ by more.
 */
const JOB_LEASE = "now() + interval '60 s'";
export const MAX_BUILD_ATTEMPTS = 3;

/** Maximum number of recently served owners to track. */
const MAX_SERVED = 1000;

/**
 * The owners with the fewest running jobs are next, and among them the one that this process served least recently, so
 * that many pushes of one owner don't delay those of others. `$served`: the owners served, the latest last.
 */
const CLAIM_JOB = statement<{ build_id: number; attempts: number; owner_id: number }>(
  'claim_build_job',
  `WITH running AS (
     SELECT g.user_id, count(*) AS jobs
     FROM build_jobs j JOIN builds b ON b.id = j.build_id JOIN games g ON g.id = b.game_id
     WHERE j.lease IS NOT NULL AND j.leased_until > now() GROUP BY g.user_id),
   next AS (
     SELECT j.build_id, g.user_id FROM build_jobs j JOIN builds b ON b.id = j.build_id JOIN games g ON g.id = b.game_id
     LEFT JOIN running r ON r.user_id = g.user_id
     WHERE coalesce(j.leased_until <= now(), true) AND j.attempts < ${MAX_BUILD_ATTEMPTS}
     ORDER BY coalesce(r.jobs, 0), coalesce(array_position($served::bigint[], g.user_id), 0), j.created_at, j.build_id
     LIMIT 1 FOR UPDATE OF j SKIP LOCKED)
   UPDATE build_jobs j SET attempts = attempts + 1, lease = $lease, leased_until = ${JOB_LEASE} FROM next
   WHERE j.build_id = next.build_id RETURNING j.build_id, j.attempts, next.user_id AS owner_id`,
);

const RENEW_JOB = statement<{ build_id: number }>(
  'renew_build_job',
  `UPDATE build_jobs SET leased_until = ${JOB_LEASE} WHERE build_id = $build_id AND lease = $lease RETURNING build_id`,
);

const RELEASE_JOB = statement(
  'release_build_job',
  `UPDATE build_jobs SET attempts = attempts - $uncounted, lease = NULL,
     leased_until = now() + make_interval(secs => $wait_seconds)
   WHERE build_id = $build_id AND lease = $lease`,
);

const LOCK_JOB = statement<{ build_id: number }>(
  'lock_build_job',
  'SELECT build_id FROM build_jobs WHERE build_id = $build_id AND lease = $lease FOR UPDATE',
);

const GIVEN_UP = statement<{ id: number }>(
  'given_up_builds',
  `SELECT build_id AS id FROM build_jobs WHERE attempts >= ${MAX_BUILD_ATTEMPTS} AND leased_until <= now() LIMIT 100`,
);

/** A job that this process has claimed. */
export interface Claim {
  build_id: number;
  attempt: number;
  lease: string;
}

/** Builds to process. A job is leased for a time, so that another process takes it if this one is killed. */
@Injectable()
export class BuildQueue {
  private served: number[] = [];

  constructor(private readonly database: Database) {}

  async claim(): Promise<Claim | undefined> {
    const lease = randomUUID();
    const claimed = await this.database.row(CLAIM_JOB, { lease, served: this.served });
    if (!claimed) return undefined;
    const { build_id, attempts, owner_id } = claimed;
    this.served = [...this.served.filter((id) => id !== owner_id), owner_id].slice(-MAX_SERVED);
    return { build_id, attempt: attempts, lease };
  }

  /** Returns false if another process has taken the job over. */
  async renew({ build_id, lease }: Claim): Promise<boolean> {
    return (await this.database.row(RENEW_JOB, { build_id, lease })) !== undefined;
  }

  /** Lets another attempt begin after `wait_ms`. `isCounted`: whether the attempt that ends counts as one. */
  async release({ build_id, lease }: Claim, wait_ms: number, { isCounted }: { isCounted: boolean }) {
    const values = { build_id, lease, wait_seconds: wait_ms / 1000, uncounted: isCounted ? 0 : 1 };
    await this.database.rows(RELEASE_JOB, values);
  }

  /** Locks the job in a transaction, unless another process has taken it over. */
  async hasLease({ build_id, lease }: Claim, db: EntityManager): Promise<boolean> {
    return (await this.database.row(LOCK_JOB, { build_id, lease }, db)) !== undefined;
  }

  /** Builds whose processes were killed too often. */
  givenUp(): Promise<{ id: number }[]> {
    return this.database.rows(GIVEN_UP, {});
  }
}
