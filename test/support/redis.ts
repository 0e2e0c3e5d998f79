import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { freePort } from '../../src/dev/embedded/server';
import { runIf } from './run-if';

export const hasRedis = spawnSync('redis-server', ['--version']).status === 0;
export const withRedis = runIf(hasRedis, 'redis-server is not installed');

/** A Redis server of the test that can be frozen, killed and restarted on the same port. */
export class TestRedis {
  private process: ChildProcess | undefined;

  private constructor(readonly port: number) {}

  static async start(): Promise<TestRedis> {
    const redis = new TestRedis(await freePort());
    await redis.start();
    return redis;
  }

  get url(): string {
    return `redis://127.0.0.1:${this.port}`;
  }

  async start(): Promise<void> {
    this.process = spawn('redis-server', ['--port', String(this.port), '--save', '', '--bind', '127.0.0.1'], {
      stdio: 'ignore',
    });
    const client = new Redis(this.url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
    client.on('error', () => undefined);
    await client.ping();
    client.disconnect();
  }

  keys(): Promise<string[]> {
    return this.asked((client) => client.keys('*'));
  }

  /** The remaining milliseconds; -1: no expiry. */
  lifetime(key: string): Promise<number> {
    return this.asked((client) => client.pttl(key));
  }

  /** Rejects writes, as a Redis server whose memory is full does. */
  async rejectWrites(isFull: boolean): Promise<void> {
    await this.asked((client) => client.config('SET', 'maxmemory', isFull ? '1' : '0'));
  }

  private async asked<T>(question: (client: Redis) => Promise<T>): Promise<T> {
    const client = new Redis(this.url);
    try {
      return await question(client);
    } finally {
      client.disconnect();
    }
  }

  hang(): void {
    this.process?.kill('SIGSTOP');
  }

  resume(): void {
    this.process?.kill('SIGCONT');
  }

  async stop(): Promise<void> {
    if (!this.process || this.process.exitCode !== null || this.process.signalCode !== null) return;
    const ended = once(this.process, 'exit');
    this.process.kill('SIGKILL');
    this.process.kill('SIGCONT');
    await ended;
  }
}
