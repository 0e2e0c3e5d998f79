import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type { Caller, Limit } from './rate-limits.service';

/** A client with the script below as a command. */
type CountingRedis = Redis & {
  count(keys: number, ...keysAndArguments: (string | number)[]): Promise<string[]>;
};

// One round trip for all limits of a request, by the clock of the Redis server. Answers the milliseconds, before this request,
// until each limit is wholly available again. A refusable request is counted for all limits or for none.
const COUNT = `
local cost, refusable = tonumber(ARGV[1]), ARGV[2] == 'refusable'
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local spent, room, answer = {}, true, {}
for i, key in ipairs(KEYS) do
  spent[i] = math.max(0, tonumber(redis.call('GET', key) or '0') - now)
  answer[i] = string.format('%.3f', spent[i])
  local period, interval = tonumber(ARGV[2 * i + 1]), tonumber(ARGV[2 * i + 2])
  room = room and spent[i] + interval <= period + 0.000001
end
if room or not refusable then
  for i, key in ipairs(KEYS) do
    local after = math.max(0, spent[i] + cost * tonumber(ARGV[2 * i + 2]))
    redis.call('SET', key, string.format('%.3f', now + after), 'PX', math.max(1, math.ceil(after)))
  end
end
return answer`;

// In milliseconds. A request waits twice at most, so a Redis server that hangs adds at most 60 ms.
const TIMEOUT = 20;
const MAX_FAILURES = 3;
const PAUSE = 1000;

/** Counters in Redis, which all replicas share. When Redis fails, requests neither fail nor wait for long. */
export class SharedCounters {
  private readonly log = new Logger('Redis');
  private failures = 0;
  private pausedUntil = 0;
  private warned = false;

  /** Imports the client here, so that it costs nothing where Redis is not configured. */
  static async open(url: string): Promise<SharedCounters> {
    const { Redis } = await import('ioredis');
    return new SharedCounters(
      new Redis(url, {
        lazyConnect: true,
        enableOfflineQueue: false,
        maxRetriesPerRequest: 0,
        autoResendUnfulfilledCommands: false,
        // For the client's own commands on a new connection.
        commandTimeout: PAUSE,
        connectTimeout: PAUSE,
        // The default would delay the end of the process by two seconds.
        disconnectTimeout: PAUSE / 10,
        retryStrategy: (attempt) => Math.min(attempt * 100, PAUSE),
        scripts: { count: { lua: COUNT } },
      }) as CountingRedis,
    );
  }

  private constructor(private readonly redis: CountingRedis) {
    this.redis.on('error', (error: Error) => this.warn(error.message));
    this.redis.on('ready', () => {
      if (this.warned) this.log.log('Redis is back: rate limits are shared again');
      this.warned = false;
    });
    this.redis.connect().catch(() => undefined);
  }

  get available(): boolean {
    return this.redis.status === 'ready' && performance.now() >= this.pausedUntil;
  }

  close(): void {
    this.redis.disconnect();
  }

  /** `refusable`: counts nothing where a limit is used up. Returns the counters before; undefined: Redis failed. */
  async count(
    limits: readonly Limit[],
    caller: Caller,
    cost: 1 | -1,
    how: 'refusable' | 'in any case',
  ): Promise<number[] | undefined> {
    if (!this.available) return undefined;
    const keys = limits.map(({ name, counts }) => `gamewharf:limit:${name}:${caller[counts]}`);
    const rates = limits.flatMap(({ period_ms, interval_ms }) => [period_ms, interval_ms]);
    try {
      const spent = await inTime(this.redis.count(keys.length, ...keys, cost, how, ...rates));
      this.failures = 0;
      return spent.map(Number);
    } catch (error) {
      this.failed(error as Error);
      return undefined;
    }
  }

  private failed(error: Error): void {
    if (++this.failures < MAX_FAILURES || !this.available) return;
    this.failures = 0;
    this.pausedUntil = performance.now() + PAUSE;
    this.warn(error.message);
    // Reconnects, since a server that hangs keeps its connection open.
    this.redis.disconnect(true);
  }

  private warn(problem: string): void {
    if (!this.warned) this.log.warn(`Redis does not answer, so each process counts by itself: ${problem}`);
    this.warned = true;
  }
}

/** Rejects after TIMEOUT. setImmediate: when this process was busy, the answer may be waiting to be read. */
function inTime<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(() => setImmediate(() => reject(new Error('it does not answer'))), TIMEOUT);
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
