import { Logger, type OnApplicationShutdown } from '@nestjs/common';
import type { Redis } from 'ioredis';
import { MemoryStorage, type Charge } from './memory-storage';

type Dependencies = ConstructorParameters<typeof MemoryStorage>;

/** A client with the script below as a command. */
type CountingRedis = Redis & { count(key: string, ...rest: (string | number)[]): Promise<string> };

// Uses the clock of the Redis server, which all replicas share. Returns the milliseconds, before this request, until
// the whole limit is available again.
const COUNT_SCRIPT = `
local period, interval, count, always = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == 'always'
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local used_ms = math.max(0, tonumber(redis.call('GET', KEYS[1]) or '0') - now)
if always or used_ms + interval <= period + 0.000001 then
  local after = math.max(0, used_ms + count * interval)
  redis.call('SET', KEYS[1], string.format('%.3f', now + after), 'PX', math.max(1, math.ceil(after)))
end
return string.format('%.3f', used_ms)`;

// After three timeouts no request waits, so a Redis server that hangs adds at most 60 ms.
const REDIS_TIMEOUT_MS = 20;
const MAX_FAILURES = 3;
const PAUSE_MS = 1000;

/**
 * Counters in Redis, which all replicas share. While Redis fails, this process continues from the last known
 * counters.
 */
export class RedisStorage extends MemoryStorage implements OnApplicationShutdown {
  private readonly log = new Logger('Redis');
  private failures = 0;
  private pausedUntil = -Infinity;
  private hasWarned = false;

  /** Imports the client here, so that nothing is loaded if Redis is not configured. */
  static async open(url: string, ...rest: Dependencies): Promise<RedisStorage> {
    const { Redis } = await import('ioredis');
    const redis = new Redis(url, {
      lazyConnect: true,
      enableOfflineQueue: false,
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
      // Applies to commands that the client itself sends on a new connection.
      commandTimeout: PAUSE_MS,
      connectTimeout: PAUSE_MS,
      // The default would delay the end of the process by two seconds.
      disconnectTimeout: PAUSE_MS / 10,
      retryStrategy: (attempt) => Math.min(attempt * 100, PAUSE_MS),
      scripts: { count: { lua: COUNT_SCRIPT, numberOfKeys: 1 } },
    });
    return new RedisStorage(redis as CountingRedis, rest);
  }

  private constructor(
    private readonly redis: CountingRedis,
    rest: Dependencies,
  ) {
    super(...rest);
    redis.on('error', (error: Error) => this.warn(error.message));
    redis.connect().catch(() => undefined);
  }

  override get isShared(): boolean {
    return this.redis.status === 'ready' && this.clock.monotonic() >= this.pausedUntil;
  }

  override async increment(key: string, ttl: number, limit: number, block: number, name: string) {
    const charge = { name, key, limit, ttl };
    this.adoptSharedCounter(charge, await this.count(charge, 1, 'unless limited'));
    return super.increment(key, ttl, limit, block, name);
  }

  override async add(charge: Charge, count: 1 | -1): Promise<void> {
    this.adoptSharedCounter(charge, await this.count(charge, count, 'always'));
    return super.add(charge, count);
  }

  onApplicationShutdown(): void {
    this.redis.disconnect();
  }

  /** Returns the used milliseconds before this request, or undefined if Redis failed. */
  private async count(
    { key, ttl, limit }: Charge,
    count: 1 | -1,
    when: 'always' | 'unless limited',
  ): Promise<number | undefined> {
    if (!this.isShared) {
      this.fallbacks.inc();
      return undefined;
    }
    try {
      const used_ms = await inTime(this.redis.count(`gamewharf:limit:${key}`, ttl, ttl / limit, count, when));
      this.succeeded();
      return Number(used_ms);
    } catch (error) {
      this.fallbacks.inc();
      this.failed(error as Error);
      return undefined;
    }
  }

  /** A connection isn't enough: a server whose memory is full accepts it, but rejects the command. */
  private succeeded(): void {
    this.failures = 0;
    if (this.hasWarned) this.log.log('Redis is available again. Rate limits are shared.');
    this.hasWarned = false;
  }

  private failed(error: Error): void {
    if (++this.failures < MAX_FAILURES || !this.isShared) return;
    this.failures = 0;
    this.pausedUntil = this.clock.monotonic() + PAUSE_MS;
    this.warn(error.message);
    // Reconnects, because a server that hangs keeps its connection open.
    this.redis.disconnect(true);
  }

  private warn(problem: string): void {
    if (!this.hasWarned)
      this.log.warn(`Redis is unavailable, so each process counts rate limits on its own: ${problem}`);
    this.hasWarned = true;
  }
}

/**
 * Rejects after REDIS_TIMEOUT_MS. setImmediate, because the response may be waiting to be read if this process was
 * busy.
 */
function inTime<T>(response: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(new Error('no response'))), REDIS_TIMEOUT_MS);
    response.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
