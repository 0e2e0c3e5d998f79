import { Injectable } from '@nestjs/common';
import { ApiHeader } from '@nestjs/swagger';
import { InjectThrottlerStorage } from '@nestjs/throttler';
import type { EntityManager } from 'typeorm';
import { Database } from '../platform/database/database';
import { ApiError } from '../platform/errors/api-error';
import { MemoryStorage, type Charge, createCharge } from '../platform/limits/memory-storage';
import {
  computeFingerprint,
  hashKey,
  HEADER,
  readResponse,
  type RetryKey,
  runOnce,
  STORED_RESPONSE,
  type StoredResponse,
} from './stored-responses';
import { DAY_MS } from '../platform/formats/durations';

export { HEADER, type RetryKey } from './stored-responses';

/** Size of a row and its index entries, without the response. */
const ROW_BYTES = 300;
/** Limit of stored responses per user in a day, after which they are deleted. */
export const MAX_STORED_BYTES = 256 * 1024 * 1024;

/** Describes the header in OpenAPI, on a handler with an `@IdempotencyKey()`. */
export const OncePerKey = () =>
  ApiHeader({
    name: HEADER,
    required: false,
    schema: { type: 'string', minLength: 1, maxLength: 255 },
    description:
      'Within 24 hours, a repeated request with the same key and parameters gets the first response and changes nothing.',
  });

/** A write. It receives the manager of the transaction that it is part of, if any. */
export type Work<Result> = (manager?: EntityManager) => Promise<Result>;

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
    const stored = await this.findStored(key);
    return stored?.fingerprint.equals(computeFingerprint(key, JSON.stringify(request)))
      ? (JSON.parse(stored.response) as Result)
      : undefined;
  }

  /**
   * `work` gets the manager of the transaction in which its response is stored, and sends its statements
   * there, or uses its repositories. Without a key, it gets none, and commits its statements itself.
   */
  async once<Result extends object>(
    key: RetryKey | undefined,
    request: object,
    work: Work<Result>,
  ): Promise<Result> {
    return (await this.run(key, request, work)).response;
  }

  /**
   * Stores the response after the work, which may use several transactions and must have no further effect
   * when it is repeated. Concurrent requests all run the work, and return the response that is stored first.
   */
  async storedAfter<Result extends object>(
    key: RetryKey | undefined,
    request: object,
    work: () => Promise<Result>,
  ): Promise<Result> {
    if (!key) return work();
    const stored = await this.findStored(key);
    if (stored) return readResponse(stored, computeFingerprint(key, JSON.stringify(request)));
    const response = await work();
    return this.once(key, request, () => Promise.resolve(response));
  }

  /** `unstored`: names of fields omitted from the stored response, because they identify a person. */
  async run<Result extends object>(
    key: RetryKey | undefined,
    request: object,
    work: Work<Result>,
    unstored: readonly string[] = [],
  ): Promise<{ response: Result; isRepeated: boolean }> {
    if (!key) return { response: await work(), isRepeated: false };
    let quota: Charge | undefined;
    const store = (response: Result) => {
      const text = JSON.stringify(response, (name, value: unknown) =>
        unstored.includes(name) ? undefined : value,
      );
      quota = createQuotaCharge(key.user_id, Buffer.byteLength(text));
      if (quota) this.requireSpace(quota);
      return text;
    };
    const workOnce = (manager: EntityManager) =>
      runOnce(
        (statement, values) => this.database.rows(statement, values, manager),
        key,
        computeFingerprint(key, JSON.stringify(request)),
        () => work(manager),
        store,
      );
    const concurrencyKey = key.user_id === null ? undefined : `user ${key.user_id}`;
    const result = await this.database.transaction(workOnce, { concurrencyKey });
    // The quota is charged after the transaction, which must not wait for Redis.
    if (quota) await this.limits.increment(quota.key, quota.ttl, quota.limit, quota.ttl, quota.name);
    return result;
  }

  private findStored(key: RetryKey): Promise<StoredResponse | undefined> {
    const { credential, user_id } = key;
    return this.database.row(STORED_RESPONSE, { credential, key_hash: hashKey(key), user_id });
  }

  /** Checks the counter of this process, so that the transaction doesn't wait for Redis. */
  private requireSpace(quota: Charge): void {
    const record = this.limits.blocked(quota);
    if (record)
      throw new ApiError(429, ['rate limit exceeded'], { 'Retry-After': String(record.timeToBlockExpire) });
  }
}

/** A rate limit in which responses count by the bytes of their rows. Used space is released evenly. */
const createQuotaCharge = (user_id: number | null, bytes: number): Charge | undefined =>
  user_id === null
    ? undefined
    : createCharge('stored-responses', `user ${user_id}`, {
        count: MAX_STORED_BYTES / (bytes + ROW_BYTES),
        period_ms: DAY_MS,
      });
