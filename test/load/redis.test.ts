import { setImmediate as immediate } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { Clock } from '../../src/platform/config/clock';
import { MetricsRegistry } from '../../src/platform/observability/metrics-registry';
import { RedisStorage } from '../../src/platform/limits/redis-storage';
import { TestRedis, withRedis } from '../support/redis';
import { sleep, until } from '../support/time';

let redis: TestRedis;
withRedis.describe('a Redis that hangs', () => {
  beforeEach(async () => {
    redis = await TestRedis.start();
  });
  afterEach(() => {
    jest.useRealTimers();
    return redis.stop();
  });

  test('adds at most 60 ms to a request with three limits', async () => {
    const storage = await RedisStorage.open(redis.url, new Clock(), new MetricsRegistry());
    await until(() => storage.isShared);
    const request = async () => {
      for (const name of ['credential', 'user', 'default'])
        await storage.increment(name, 900_000, 5, 0, name);
    };
    await request();
    redis.hang();
    // Time passes only for the timeouts.
    jest.useFakeTimers({ doNotFake: ['performance', 'setImmediate', 'nextTick', 'queueMicrotask', 'Date'] });
    for (let i = 0; i < 10; i++) {
      let isDone = false;
      void request().then(() => (isDone = true));
      await jest.advanceTimersByTimeAsync(60);
      await immediate();
      expect(isDone).toBe(true);
    }
    jest.useRealTimers();
    expect((await storage.increment('user', 900_000, 5, 0, 'user')).isBlocked).toBe(true);
    storage.onApplicationShutdown();
  });

  test('control: a client that waits gets no response', async () => {
    const client = new Redis(redis.url);
    await client.ping();
    redis.hang();
    expect(await Promise.race([client.ping(), sleep(300).then(() => 'no response')])).toBe('no response');
    client.disconnect();
  });
});
