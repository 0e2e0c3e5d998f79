import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { Database } from '../../database/database';
import { isConnectionLost } from '../../database/sqlstates';

/** What is being guessed at or who guesses: so many failures are free, then each doubles the wait, up to the longest. */
export interface Guess {
  subject: string;
  free: number;
  longest_seconds: number;
}

/** By the account where there is one, since it has several names; else by the name, as the database folds it. */
export const guessAtAccount = ({ id, name }: { id: number | null; name: string }): Guess => ({
  subject: id === null ? `name ${name}` : `user ${id}`,
  free: 5,
  longest_seconds: 300,
});
export const guessFrom = (network: string): Guess => ({
  subject: `address ${network}`,
  free: 20,
  longest_seconds: 900,
});
export const guessAtDeviceCode = (user_id: number): Guess => ({
  subject: `device code by ${user_id}`,
  free: 5,
  longest_seconds: 900,
});

const RESERVE = `
  INSERT INTO attempts AS old (subject, failures, blocked_until, expires_at)
  VALUES ($1, 1, now(), now() + interval '1 day')
  ON CONFLICT (subject) DO UPDATE SET
    failures = CASE WHEN old.expires_at < now() THEN 1 ELSE old.failures + 1 END,
    blocked_until = now() + make_interval(secs => CASE
      WHEN old.expires_at < now() OR old.failures + 1 < $2 THEN 0
      ELSE least($3, power(2, least(old.failures + 1 - $2, 20))) END),
    expires_at = now() + interval '1 day'
  WHERE old.blocked_until <= now()
  RETURNING failures`;

const UNCOUNT =
  'UPDATE attempts SET failures = greatest(failures - 1, 0), blocked_until = now() WHERE subject = $1';

class Blocked extends Error {}

/** Counts guesses in the database, so that the waits hold over all replicas. */
@Injectable()
export class AttemptsService {
  private readonly underWay = new Set<string>();

  constructor(private readonly database: Database) {}

  /**
   * Counts a failure before it is known to be one, so that guesses made at the same time cannot all slip through.
   * Answers the seconds to wait, which is 0 for a guess that may be made.
   */
  async reserve(guesses: Guess[]): Promise<number> {
    const subjects = inLockOrder(guesses);
    try {
      await this.database.transaction(async (db) => {
        for (const { hash, free, longest_seconds } of subjects) {
          const rows: unknown[] = await db.query(RESERVE, [hash, free, longest_seconds]);
          if (rows.length === 0) throw new Blocked();
        }
      });
      return 0;
    } catch (error) {
      if (!(error instanceof Blocked)) throw error;
      return this.database.transaction((db) => this.wait(db, subjects));
    }
  }

  /**
   * Guesses in the transaction that counts the guess, so that one which was right, or which the database could not answer,
   * is not counted. Answers the seconds to wait where the guess may not be made.
   */
  async guess<Found>(
    guess: Guess,
    find: (db: EntityManager) => Promise<Found | undefined>,
  ): Promise<{ found?: Found; seconds?: number }> {
    const subjects = inLockOrder([guess]);
    const { subject, hash, free, longest_seconds } = subjects[0]!;
    // Guesses of one subject wait for each other's lock: many at once would take all connections of the pool.
    if (this.underWay.has(subject)) return { seconds: 1 };
    this.underWay.add(subject);
    try {
      return await this.database.transaction(async (db) => {
        const counted: unknown[] = await db.query(RESERVE, [hash, free, longest_seconds]);
        if (counted.length === 0) return { seconds: await this.wait(db, subjects) };
        const found = await find(db);
        if (found) await db.query(UNCOUNT, [hash]);
        return { found };
      });
    } finally {
      this.underWay.delete(subject);
    }
  }

  /** The guess was right: the account's failures are forgotten, the others lose the one that was counted for it. */
  async succeeded(forgotten: Guess, ...others: Guess[]): Promise<void> {
    await this.takeBack(async (db) => {
      for (const { hash, subject } of inLockOrder([forgotten, ...others]))
        if (subject === forgotten.subject) await db.query('DELETE FROM attempts WHERE subject = $1', [hash]);
        else await db.query(UNCOUNT, [hash]);
    });
  }

  /** Nobody could tell whether the guess was right: what was counted for it is taken back. */
  async withdrawn(...guesses: Guess[]): Promise<void> {
    await this.takeBack(async (db) => {
      for (const { hash } of inLockOrder(guesses)) await db.query(UNCOUNT, [hash]);
    });
  }

  /** Once more when the connection was lost: what stays counted makes others at the address wait, for a day. */
  private async takeBack(work: (db: EntityManager) => Promise<void>): Promise<void> {
    try {
      await this.database.transaction(work);
    } catch (error) {
      if (!isConnectionLost(error)) throw error;
      await this.database.transaction(work);
    }
  }

  private async wait(db: EntityManager, subjects: { hash: Buffer }[]): Promise<number> {
    const [row] = await db.query<{ seconds: number | null }[]>(
      `SELECT ceil(extract(epoch FROM max(blocked_until) - now()))::int AS seconds FROM attempts WHERE subject = ANY ($1)`,
      [subjects.map(({ hash }) => hash)],
    );
    return Math.max(row?.seconds ?? 1, 1);
  }
}

const inLockOrder = (guesses: Guess[]) =>
  guesses
    .map((guess) => ({ ...guess, hash: createHash('sha256').update(guess.subject).digest() }))
    .toSorted((a, b) => Buffer.compare(a.hash, b.hash));
