import { LRUCache } from 'lru-cache';
import type { Clock } from '../config/clock';

interface Found<Value> {
  value: Value;
  /** Set for a result that expires before the cache's TTL. */
  lives_ms?: number;
}

interface Lookup<Value> {
  sent: number;
  result: Promise<Value>;
}

interface Entry<Value> {
  value: Value;
  expiresAt: number;
}

/**
 * Caches the results of lookups. A result expires at most one TTL after its lookup was sent, because the data
 * may have changed since then. Until then, concurrent lookups of a key share it, and errors aren't cached. The
 * library's own `fetch` is slower: docs/contributing/decisions/performance.md.
 */
export class LookupCache<Value extends object> {
  private readonly entries: LRUCache<string, Entry<Value>>;
  private readonly lookups = new Map<string, Lookup<Value>>();
  /** The number of calls of clear(). */
  private generation = 0;

  constructor(
    private readonly clock: Clock,
    private readonly options: { max: number; ttl_ms: number },
  ) {
    this.entries = new LRUCache({ max: options.max });
  }

  get(key: string): Value | undefined {
    // `peek` is enough, because each lookup makes its entry the newest one.
    const entry = this.entries.peek(key);
    return entry && entry.expiresAt > this.clock.monotonic() ? entry.value : undefined;
  }

  /** The cached value, even if it has expired. */
  getStale(key: string): Value | undefined {
    return this.entries.peek(key)?.value;
  }

  /** The cached value, or the result of the lookup. */
  find(key: string, look: () => Promise<Found<Value>>): Promise<Value> {
    const cached = this.get(key);
    if (cached) return Promise.resolve(cached);
    const sent = this.clock.monotonic();
    const running = this.lookups.get(key);
    if (running && sent < running.sent + this.options.ttl_ms) return running.result;
    const result = this.load(key, look, sent);
    this.lookups.set(key, { sent, result });
    return result;
  }

  /** Callers that already wait for a lookup get its result, which isn't cached. */
  clear(): void {
    this.generation++;
    this.entries.clear();
    this.lookups.clear();
  }

  private async load(key: string, look: () => Promise<Found<Value>>, sent: number): Promise<Value> {
    const { generation } = this;
    try {
      const { value, lives_ms = Infinity } = await look();
      if (generation === this.generation)
        this.entries.set(key, { value, expiresAt: sent + Math.min(this.options.ttl_ms, lives_ms) });
      return value;
    } finally {
      if (generation === this.generation && this.lookups.get(key)?.sent === sent) this.lookups.delete(key);
    }
  }
}
