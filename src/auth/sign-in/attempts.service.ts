import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { type EntityManager, In } from 'typeorm';
import { Database } from '../../platform/database/database';
import { isConnectionLost } from '../../platform/database/sqlstates';
import { statement } from '../../platform/database/statement';
import { Attempt } from './attempt.entity';

/**
 * An account, IP address or user whose failed attempts are counted. After `free` failures, each further one
 * doubles the wait.
 */
interface Subject {
  name: string;
  free: number;
  longest_seconds: number;
}

const limited = (name: string, free: number, longest_seconds: number): Subject => ({
  name,
  free,
  longest_seconds,
});

/** The account's ID, because it can have several names; or the entered name, if no account has it. */
export const accountSubject = ({ id, name }: { id: number | null; name: string }) =>
  limited(id === null ? `name ${name}` : `user ${id}`, 5, 300);
export const networkSubject = (network: string) => limited(`address ${network}`, 20, 900);
export const setupSubject = limited('setup code', 5, 300);
export const deviceCodeSubject = (user_id: number) => limited(`device code by ${user_id}`, 5, 900);
export const downloadKeySubject = (user_id: number) => limited(`download key by ${user_id}`, 5, 900);

// Not `now()`, the time at which this transaction began: while it waited for the lock of the row, a concurrent attempt
// that succeeded has set a later `blocked_until`.
const COUNT_ATTEMPT = statement<{ failures: number }>(
  'count_attempt',
  `INSERT INTO attempts AS old (subject, failures, blocked_until, expires_at)
  VALUES ($hash, 1, now(), now() + interval '1 day')
  ON CONFLICT (subject) DO UPDATE SET
    failures = CASE WHEN old.expires_at < now() THEN 1 ELSE old.failures + 1 END,
    blocked_until = now() + make_interval(secs => CASE
      WHEN old.expires_at < now() OR old.failures + 1 < $free THEN 0
      ELSE least($longest_seconds, power(2, least(old.failures + 1 - $free, 20))) END),
    expires_at = now() + interval '1 day'
  WHERE old.blocked_until <= clock_timestamp()
  RETURNING failures`,
);

class Blocked extends Error {}

type HashedSubject = ReturnType<typeof inLockOrder>[number];

/** Counts attempts in the database, so that the waits apply to all replicas. */
@Injectable()
export class AttemptsService {
  /** The running attempts, by subject. */
  private readonly running = new Map<string, Promise<unknown>>();

  constructor(private readonly database: Database) {}

  /** Counts attempts before they are checked, so that concurrent ones count. Returns the seconds to wait. */
  async reserve(limited: Subject[]): Promise<number> {
    const subjects = inLockOrder(limited);
    try {
      await this.database.transaction(async (db) => {
        for (const subject of subjects) if (!(await this.count(db, subject))) throw new Blocked();
      });
      return 0;
    } catch (error) {
      if (!(error instanceof Blocked)) throw error;
      return this.database.transaction((db) => this.wait(db, subjects));
    }
  }

  /**
   * Checks an attempt in the transaction that counts it; only a failure stays counted. If `seconds` is set,
   * the client must wait and the attempt isn't checked.
   */
  async check<Found>(
    limited: Subject,
    find: (db: EntityManager) => Promise<Found | undefined>,
  ): Promise<{ found?: Found; seconds?: number }> {
    const [counted] = inLockOrder([limited]) as [HashedSubject];
    const { name, hash } = counted;
    // A second click or tab waits for the first.
    await this.running.get(name)?.catch(() => undefined);
    // Attempts for one subject wait for the same row lock: many of them would use up the connection pool.
    if (this.running.has(name)) return { seconds: 1 };
    const attempt = this.database.transaction(async (db) => {
      if (!(await this.count(db, counted))) return { seconds: await this.wait(db, [counted]) };
      const found = await find(db);
      if (found) await uncount(db, hash);
      return { found };
    });
    this.running.set(name, attempt);
    return attempt.finally(() => this.running.delete(name));
  }

  /** Counts an attempt as a failure; returns false if attempts for the subject are blocked. */
  private async count(db: EntityManager, { hash, free, longest_seconds }: HashedSubject): Promise<boolean> {
    return (await this.database.row(COUNT_ATTEMPT, { hash, free, longest_seconds }, db)) !== undefined;
  }

  /** Records a success: deletes the failures of `forgotten`, and uncounts this attempt for the others. */
  async succeeded(forgotten: Subject, ...others: Subject[]): Promise<void> {
    await this.retrying(async (db) => {
      for (const { hash, name } of inLockOrder([forgotten, ...others]))
        if (name === forgotten.name) await db.delete(Attempt, { subject: hash });
        else await uncount(db, hash);
    });
  }

  async forget(subjects: Subject[]): Promise<number> {
    return this.database.transaction(async (db) => {
      const { affected } = await db.delete(Attempt, {
        subject: In(inLockOrder(subjects).map(({ hash }) => hash)),
      });
      return affected ?? 0;
    });
  }

  /** Removes the count of an attempt that could not be checked. */
  async cancel(...subjects: Subject[]): Promise<void> {
    await this.retrying(async (db) => {
      for (const { hash } of inLockOrder(subjects)) await uncount(db, hash);
    });
  }

  /**
   * Retries after a lost connection: an attempt that stays counted blocks users of the IP address for a day.
   */
  private async retrying(work: (db: EntityManager) => Promise<void>): Promise<void> {
    try {
      await this.database.transaction(work);
    } catch (error) {
      if (!isConnectionLost(error)) throw error;
      await this.database.transaction(work);
    }
  }

  private async wait(db: EntityManager, subjects: { hash: Buffer }[]): Promise<number> {
    const row = await db
      .createQueryBuilder(Attempt, 'a')
      .select('ceil(extract(epoch FROM max(a.blocked_until) - now()))::int', 'seconds')
      .where({ subject: In(subjects.map(({ hash }) => hash)) })
      .getRawOne<{ seconds: number | null }>();
    return Math.max(row?.seconds ?? 1, 1);
  }
}

const uncount = (db: EntityManager, subject: Buffer) =>
  db.update(
    Attempt,
    { subject },
    { failures: () => 'greatest(failures - 1, 0)', blocked_until: () => 'now()' },
  );

const inLockOrder = (subjects: Subject[]) =>
  subjects
    .map((subject) => ({ ...subject, hash: createHash('sha256').update(subject.name).digest() }))
    .toSorted((a, b) => Buffer.compare(a.hash, b.hash));
