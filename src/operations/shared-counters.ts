import { Logger } from '@nestjs/common';
import type { Redis } from 'ioredis';
import type { Caller, Limit } from './limits';

/** A client that knows the script below by this name. */
type CountingRedis = Redis & {
  count(keys: number, ...keysAndArguments: (string | number)[]): Promise<string[]>;
};

// One round trip for all limits of a request, by the clock of the Redis server, which all replicas share. Answers for each
// how long it took, before this request, until all that was spent is back. What may be refused is counted in full or not at all.
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

// A request waits twice at most, which stays below what a hung server may add to it.
const ANSWER_WITHIN = 20;
const FAILURES_IN_A_ROW = 3;
const PAUSE = 1000;

/** Counters that all replicas share. Whatever is wrong with Redis, no request waits for it longer than a moment or fails. */
export class SharedCounters {
  private readonly log = new Logger('Redis');
  private failures = 0;
  private pausedUntil = 0;
  private complained = false;

  /** The client is loaded here and not above: without Redis it would only cost memory, and time at every start. */
  static async open(url: string): Promise<SharedCounters> {
    const { Redis } = await import('ioredis');
    return new SharedCounters(
      new Redis(url, {
        lazyConnect: true,
        enableOfflineQueue: false,
        maxRetriesPerRequest: 0,
        autoResendUnfulfilledCommands: false,
        // For its own questions, by which it finds out whether a new connection is good.
        commandTimeout: PAUSE,
        connectTimeout: PAUSE,
        // Of a connection that is already lost it would hold the process for two seconds.
        disconnectTimeout: PAUSE / 10,
        retryStrategy: (attempt) => Math.min(attempt * 100, PAUSE),
        scripts: { count: { lua: COUNT } },
      }) as CountingRedis,
    );
  }

  private constructor(private readonly redis: CountingRedis) {
    this.redis.on('error', (error: Error) => this.complain(error.message));
    this.redis.on('ready', () => {
      if (this.complained) this.log.log('Redis is back: rate limits are shared again');
      this.complained = false;
    });
    this.redis.connect().catch(() => undefined);
  }

  get available(): boolean {
    return this.redis.status === 'ready' && performance.now() >= this.pausedUntil;
  }

  /** Spends one of each limit, or of none where one has nothing left. What was spent before; undefined: Redis did not answer. */
  spend(limits: readonly Limit[], caller: Caller): Promise<number[] | undefined> {
    return this.count(limits, caller, 1, 'refusable');
  }

  /** Adds to what was spent, whether there was room for it or not. */
  add(limits: readonly Limit[], caller: Caller, cost: 1 | -1): Promise<number[] | undefined> {
    return this.count(limits, caller, cost, 'in any case');
  }

  close(): void {
    this.redis.disconnect();
  }

  private async count(
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
    if (++this.failures < FAILURES_IN_A_ROW || !this.available) return;
    this.failures = 0;
    this.pausedUntil = performance.now() + PAUSE;
    this.complain(error.message);
    // A server that hangs keeps its connection: only a new one, once it answers, is trusted again.
    this.redis.disconnect(true);
  }

  private complain(problem: string): void {
    if (!this.complained) this.log.warn(`Redis cannot be asked, each process counts for itself: ${problem}`);
    this.complained = true;
  }
}

/** What is answered within 20 ms. A process that was busy for so long looks once more before it gives up. */
function inTime<T>(answer: Promise<T>): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = setTimeout(
      () => setImmediate(() => reject(new Error('it does not answer'))),
      ANSWER_WITHIN,
    );
    answer.then(resolve, reject).finally(() => clearTimeout(timer));
  });
}
