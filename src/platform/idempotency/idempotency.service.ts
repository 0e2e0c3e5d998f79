import { createHmac, hash } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { ApiHeader } from '@nestjs/swagger';
import { InjectThrottlerStorage } from '@nestjs/throttler';
import type { ClientBase } from 'pg';
import { Database } from '../database/database';
import { bind, statement, type Write } from '../database/statement';
import { ApiError, badRequest } from '../http/api-error';
import { MemoryStorage, type Spending, spendingOf } from '../rate-limits/memory-storage';

export const HEADER = 'Idempotency-Key';

/** Bytes of stored responses per user in DAY, after which they are deleted. */
export const MAX_STORED = 256 * 1024 * 1024;
export const DAY = 24 * 3600 * 1000;

/** Identifies a retry. */
export interface RetryKey {
  credential: string;
  /** Of the credential; null: an operator's. */
  user_id: number | null;
  /** As sent. Only its hash is stored. */
  key: string;
  route: string;
}

/** On a handler with an `@IdempotencyKey()`: describes the header in OpenAPI. */
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

// The rows that CLAIM leaves unchanged.
const STORED_RESPONSE = statement<StoredResponse>(
  'idempotency_kept',
  `SELECT fingerprint, answer FROM idempotency_keys
   WHERE credential = $1 AND key_hash = $2 AND (user_id <> $3) IS NOT TRUE AND created_at >= now() - ${LIFE}`,
);

const STORE_RESPONSE = statement(
  'idempotency_keep',
  'UPDATE idempotency_keys SET answer = $3 WHERE credential = $1 AND key_hash = $2',
);

/** Runs a write once per key, and stores its response in the same transaction. Errors are not stored. */
@Injectable()
export class IdempotencyService {
  constructor(
    private readonly database: Database,
    @InjectThrottlerStorage() private readonly limits: MemoryStorage,
  ) {}

  /** The response of an earlier request with the same key and parameters. */
  async storedResult<Result extends object>(
    key: RetryKey | undefined,
    request: object,
  ): Promise<Result | undefined> {
    if (!key) return undefined;
    const { credential, user_id } = key;
    const kept = await this.database.row(STORED_RESPONSE, [credential, hashOf(key), user_id]);
    return kept?.fingerprint.equals(fingerprintOf(key, JSON.stringify(request)))
      ? (JSON.parse(kept.answer) as Result)
      : undefined;
  }

  async once<Result extends object>(
    key: RetryKey | undefined,
    request: object,
    write: Write<Result>,
  ): Promise<Result> {
    return (await this.run(key, request, write)).response;
  }

  /**
   * For work in several transactions that has no further effect when it is repeated: stores its response after it.
   * Concurrent requests all work, and get the response that is stored first.
   */
  async storedAfter<Result extends object>(
    key: RetryKey | undefined,
    request: object,
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (!key) return work();
    const values = [key.credential, hashOf(key), key.user_id];
    const stored = await this.database.row(STORED_RESPONSE, values);
    if (stored) return responseOf(stored, fingerprintOf(key, JSON.stringify(request)));
    const response = await work();
    return this.once(key, request, { statements: [], result: () => response });
  }

  /** `unstored`: names of fields omitted from the stored response, because they identify a person. */
  async run<Result extends object>(
    key: RetryKey | undefined,
    request: object,
    write: Write<Result>,
    unstored: readonly string[] = [],
  ): Promise<{ response: Result; isRepeated: boolean }> {
    if (!key) return { response: await this.database.write(write), isRepeated: false };
    const { credential, user_id } = key;
    const fingerprint = fingerprintOf(key, JSON.stringify(request));
    let quota: Spending | undefined;
    const result = await this.database.transaction(async (db) => {
      const claim = bind(CLAIM, [credential, hashOf(key), fingerprint, user_id]);
      const claimed = (await this.database.run(db, [claim]))(CLAIM);
      if (claimed.length === 0) {
        const rowsOf = await this.database.run(db, [
          bind(STORED_RESPONSE, [credential, hashOf(key), user_id]),
        ]);
        return { response: responseOf<Result>(rowsOf(STORED_RESPONSE)[0], fingerprint), isRepeated: true };
      }
      const response = write.result(await this.database.run(db, write.statements));
      const text = JSON.stringify(response, (name, value: unknown) =>
        unstored.includes(name) ? undefined : value,
      );
      quota = quotaOf(user_id, Buffer.byteLength(text));
      if (quota) this.requireSpace(quota);
      await this.database.run(db, [bind(STORE_RESPONSE, [credential, hashOf(key), text])]);
      return { response, isRepeated: false };
    });
    // After the transaction, which must not wait for Redis.
    if (quota) await this.limits.increment(quota.key, quota.ttl, quota.limit, quota.ttl, quota.name);
    return result;
  }

  /** By the counter that this process knows. */
  private requireSpace(quota: Spending): void {
    const record = this.limits.blocked(quota);
    if (record)
      throw new ApiError(429, ['rate limit exceeded'], { 'Retry-After': String(record.timeToBlockExpire) });
  }
}

/** A rate limit in which each response counts by its bytes. Used space becomes available again evenly. */
const quotaOf = (user_id: number | null, bytes: number): Spending | undefined =>
  user_id === null
    ? undefined
    : spendingOf('stored-responses', `user ${user_id}`, { count: MAX_STORED / bytes, period_ms: DAY });

/** Runs the work of an operator's request once per key, in the caller's transaction. `fingerprint` is the request's. */
export async function oncePerKey<Result>(
  client: Pick<ClientBase, 'query'>,
  key: RetryKey,
  fingerprint: Buffer,
  work: () => Promise<Result>,
): Promise<Result> {
  const id = [key.credential, hashOf(key)];
  const claimed = await client.query(CLAIM.text, [...id, fingerprint, null]);
  if (claimed.rowCount === 0) {
    const { rows } = await client.query<StoredResponse>(STORED_RESPONSE.text, [...id, null]);
    return responseOf(rows[0], fingerprint);
  }
  const response = await work();
  await client.query(STORE_RESPONSE.text, [...id, JSON.stringify(response)]);
  return response;
}

/** Of the parameters. Keyed, because the parameters of a sale contain the buyer's email address, which can be guessed. */
export const fingerprintOf = ({ key, route }: RetryKey, ...parameters: (string | Buffer)[]): Buffer =>
  parameters.reduce((hmac, one) => hmac.update(one), createHmac('sha256', key).update(`${route}\n`)).digest();

function responseOf<Result>(stored: StoredResponse | undefined, fingerprint: Buffer): Result {
  if (!stored?.fingerprint.equals(fingerprint)) throw badRequest(`${HEADER} was used with other parameters`);
  return JSON.parse(stored.answer) as Result;
}

const hashOf = ({ key }: RetryKey) => hash('sha256', key, 'buffer');
