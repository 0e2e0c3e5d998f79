import { Logger } from '@nestjs/common';
import type { Redis, Result } from 'ioredis';
import type { RateLimit } from '../config/rate-limits';
import { type Cost, type Decision, decide } from './local-counters';

declare module 'ioredis' {
  interface RedisCommander<Context> {
    spend(key: string, period: number, interval: number, cost: number): Result<string, Context>;
  }
}

// One round trip, by the clock of the Redis server, which all replicas share. Answers how long it took, before this
// request, until all that was spent is back.
const SPEND = `
local period, interval, cost = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local time = redis.call('TIME')
local now = time[1] * 1000 + time[2] / 1000
local spent = math.max(0, tonumber(redis.call('GET', KEYS[1]) or '0') - now)
local after = math.max(0, spent + cost * interval)
if cost ~= 0 and after <= period + 0.000001 then
  redis.call('SET', KEYS[1], string.format('%.3f', now + after), 'PX', math.max(1, math.ceil(after)))
end
return string.format('%.3f', spent)`;

// Twice in one request at most, which stays below what a hung server may add to it.
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
        retryStrategy: (attempt) => Math.min(attempt * 100, PAUSE),
        scripts: { spend: { lua: SPEND, numberOfKeys: 1 } },
      }),
    );
  }

  private constructor(private readonly redis: Redis) {
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

  /** Undefined: there is nobody to ask. */
  async spend(key: string, limit: RateLimit, cost: Cost): Promise<Decision | undefined> {
    if (!this.available) return undefined;
    try {
      const spent = await inTime(
        this.redis.spend(`gamewharf:limit:${key}`, limit.period_ms, limit.period_ms / limit.count, cost),
      );
      this.failures = 0;
      return decide(Number(spent), limit, cost);
    } catch (error) {
      this.failed(error as Error);
      return undefined;
    }
  }

  close(): void {
    this.redis.disconnect();
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
