import { createHash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { ApiHeader } from '@nestjs/swagger';
import type { ClientBase } from 'pg';
import { Clock } from '../config/clock';
import { Database } from '../database/database';
import { bind, statement, type Write } from '../database/statement';
import { badRequest } from '../http/api-error';
import { IdempotencyQuota } from './idempotency-quota';

export const HEADER = 'Idempotency-Key';

/** Identifies a retry. */
export interface RetryKey {
  credential: string;
  /** Of the credential; null: an operator's. */
  user_id: number | null;
  key_hash: Buffer;
  route: string;
}

/** On a handler with a RetryKey: describes the header in OpenAPI. */
export const OncePerKey = () =>
  ApiHeader({
    name: HEADER,
    required: false,
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    description:
      'Within 24 hours, a repeated request with the same key and parameters gets the first response and changes nothing.',
  });

// ExpiredRows deletes older rows.
const LIFE = `interval '24 hours'`;

// Waits for a concurrent transaction with the same key. No row: an earlier request of this user had the key.
const CLAIM = statement(
  'idempotency_claim',
  `INSERT INTO idempotency_keys AS k (credential, key_hash, fingerprint, user_id) VALUES ($1, $2, $3, $4)
   ON CONFLICT (credential, key_hash) DO UPDATE
     SET fingerprint = excluded.fingerprint, user_id = excluded.user_id, created_at = now()
   WHERE k.created_at < now() - ${LIFE} OR k.user_id <> excluded.user_id
   RETURNING true AS claimed`,
);

interface StoredResponse {
  fingerprint: Buffer;
  answer: string;
}

const STORED_ANSWER = statement<StoredResponse>(
  'idempotency_kept',
  'SELECT fingerprint, answer FROM idempotency_keys WHERE credential = $1 AND key_hash = $2',
);

const RECENT_ANSWER = statement<StoredResponse>(
  'idempotency_recent',
  `SELECT fingerprint, answer FROM idempotency_keys
   WHERE credential = $1 AND key_hash = $2 AND user_id IS NOT DISTINCT FROM $3 AND created_at >= now() - ${LIFE}`,
);

const STORE_ANSWER = statement(
  'idempotency_keep',
  'UPDATE idempotency_keys SET answer = $3 WHERE credential = $1 AND key_hash = $2',
);

/** Runs a write once for each key, and stores its response in the same transaction. Errors are not stored. */
@Injectable()
export class IdempotencyService {
  private readonly quota: IdempotencyQuota;

  constructor(
    private readonly database: Database,
    clock: Clock,
  ) {
    this.quota = new IdempotencyQuota(clock);
  }

  /** For a request that would now be rejected: its stored response, if it succeeded before. */
  async answered<Answer extends object>(
    key: RetryKey | undefined,
    request: object,
  ): Promise<Answer | undefined> {
    if (!key) return undefined;
    const { credential, user_id, key_hash } = key;
    const kept = await this.database.row(RECENT_ANSWER, [credential, key_hash, user_id]);
    return kept?.fingerprint.equals(fingerprintOf(key, request))
      ? (JSON.parse(kept.answer) as Answer)
      : undefined;
  }

  once<Answer extends object>(
    key: RetryKey | undefined,
    request: object,
    write: Write<Answer>,
  ): Promise<Answer> {
    if (!key) return this.database.write(write);
    const { credential, user_id, key_hash } = key;
    const fingerprint = fingerprintOf(key, request);
    return this.database.transaction(async (db) => {
      const claim = bind(CLAIM, [credential, key_hash, fingerprint, user_id]);
      const claimed = (await this.database.run(db, [claim]))(CLAIM);
      if (claimed.length === 0) {
        const rowsOf = await this.database.run(db, [bind(STORED_ANSWER, [credential, key_hash])]);
        return answerOf(rowsOf(STORED_ANSWER)[0], fingerprint);
      }
      const answer = write.result(await this.database.run(db, write.statements));
      const text = JSON.stringify(answer);
      if (user_id !== null) this.quota.take(user_id, Buffer.byteLength(text));
      await this.database.run(db, [bind(STORE_ANSWER, [credential, key_hash, text])]);
      return answer;
    });
  }
}

/** Runs the work of an operator's request once for each key, in the caller's transaction. `fingerprint` is the request's. */
export async function oncePerKey<Answer>(
  client: Pick<ClientBase, 'query'>,
  { credential, key_hash }: RetryKey,
  fingerprint: Buffer,
  work: () => Promise<Answer>,
): Promise<Answer> {
  const claimed = await client.query(CLAIM.text, [credential, key_hash, fingerprint, null]);
  if (claimed.rowCount === 0) {
    const { rows } = await client.query<StoredResponse>(STORED_ANSWER.text, [credential, key_hash]);
    return answerOf(rows[0], fingerprint);
  }
  const answer = await work();
  await client.query(STORE_ANSWER.text, [credential, key_hash, JSON.stringify(answer)]);
  return answer;
}

const fingerprintOf = ({ route }: RetryKey, request: object) => sha256(JSON.stringify([route, request]));

function answerOf<Answer>(stored: StoredResponse | undefined, fingerprint: Buffer): Answer {
  if (!stored?.fingerprint.equals(fingerprint)) throw badRequest(`${HEADER} was used with other parameters`);
  return JSON.parse(stored.answer) as Answer;
}

export const sha256 = (text: string) => createHash('sha256').update(text).digest();
