import type { Clock } from '../config/clock';
import { ApiError } from '../http/api-error';

/** Bytes of responses that one process stores for a user in 24 hours, which is how long they are retained. */
export const MAX_STORED = 256 * 1024 * 1024;
const PER_MS = MAX_STORED / (24 * 3600 * 1000);
const MAX_USERS = 100_000;

/** Limits the disk space for the stored responses of a user. Used space becomes available again evenly. */
export class IdempotencyQuota {
  constructor(private readonly clock: Clock) {}

  readonly taken = new Map<number, { bytes: number; at: number }>();

  /** Throws if the quota is used up. */
  take(user_id: number, bytes: number): void {
    const now = this.clock.monotonic();
    const before = this.taken.get(user_id);
    const stored = bytes + (before ? Math.max(0, before.bytes - (now - before.at) * PER_MS) : 0);
    if (stored > MAX_STORED)
      throw new ApiError(429, ['rate limit exceeded'], {
        'Retry-After': String(Math.ceil((stored - MAX_STORED) / PER_MS / 1000)),
      });
    if (!before && this.taken.size === MAX_USERS) this.taken.clear();
    this.taken.set(user_id, { bytes: stored, at: now });
  }
}
