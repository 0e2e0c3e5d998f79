import { LRUCache } from 'lru-cache';
import type { Clock } from '../config/clock';

interface Found<Value> {
  value: Value;
  /** If it ends earlier than the cache's TTL. */
  lives_ms?: number;
}

/**
 * The results of lookups, for less than `ttl_ms` after each was sent, because it may be outdated since then. Concurrent
 * lookups of a key share one, and a failed one isn't cached. `peek` with `allowStale` returns what was found before.
 */
export const lookupCache = <Value extends object, Context = unknown>(
  clock: Clock,
  { max, ttl_ms }: { max: number; ttl_ms: number },
  look: (key: string, context: Context, stale: Value | undefined) => Promise<Found<Value>>,
): LRUCache<string, Value, Context> =>
  new LRUCache<string, Value, Context>({
    max,
    ttl: ttl_ms,
    ttlResolution: 0,
    perf: { now: () => clock.monotonic() },
    noDeleteOnStaleGet: true,
    // After `delete` and `clear`, callers that already wait get the result, which isn't cached.
    ignoreFetchAbort: true,
    fetchMethod: async (key, stale, { options, context }) => {
      const sent = clock.monotonic();
      const { value, lives_ms = Infinity } = await look(key, context, stale);
      // The library still returns a value whose age is its TTL.
      options.ttl = Math.max(1, Math.min(ttl_ms, lives_ms) - (clock.monotonic() - sent) - 1);
      return value;
    },
  });
