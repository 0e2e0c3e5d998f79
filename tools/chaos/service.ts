import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync } from 'node:fs';
import { join } from 'node:path';
import { freePort } from '../../src/dev/embedded/server';
import { until } from '../../test/support/time';
import { ask } from './ask';
import type { Protection } from './without';

const MAIN = join(__dirname, '..', '..', 'src', 'main.js');
const WITHOUT = join(__dirname, 'without.js');

export interface ServiceOptions {
  env: NodeJS.ProcessEnv;
  log: string;
  /** A protection that this one lacks, as a control. */
  without?: Protection;
}

/** One replica: the production build in its own process, always on the same port. */
export class Service {
  private child: ChildProcess | undefined;
  private discarded = false;

  private constructor(
    private readonly options: ServiceOptions,
    readonly port: number,
    readonly metrics_port: number,
  ) {}

  static async create(options: ServiceOptions): Promise<Service> {
    return new Service(options, await freePort(), await freePort());
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  get pid(): number {
    return this.child!.pid!;
  }

  get running(): boolean {
    return this.child !== undefined && this.child.exitCode === null && this.child.signalCode === null;
  }

  /** Waits until it is ready. */
  async start(): Promise<void> {
    this.spawn();
    await until(() => {
      if (!this.running) throw new Error(`the service ended: see ${this.options.log}`);
      return this.isReady();
    }, 60_000);
  }

  spawn(): void {
    if (this.discarded) throw new Error('interrupted');
    const { env, log, without } = this.options;
    const output = openSync(log, 'a');
    this.child = spawn(process.execPath, [...(without ? ['-r', WITHOUT] : []), MAIN], {
      cwd: env.DATA_DIR,
      stdio: ['ignore', output, output],
      env: {
        ...env,
        PUBLIC_URL: env.PUBLIC_URL ?? this.url,
        PORT: String(this.port),
        METRICS_PORT: String(this.metrics_port),
        ...(without && { CHAOS_WITHOUT: without }),
      },
    });
    closeSync(output);
  }

  isReady(): Promise<boolean> {
    return ask(`${this.url}/health/ready`, { timeout: 3000 }).then(
      ({ status }) => status === 200,
      () => false,
    );
  }

  kill(): Promise<void> {
    return this.end('SIGKILL');
  }

  /** Stops it like a deployment. */
  async stop(): Promise<number | null> {
    await this.end('SIGTERM');
    return this.child?.exitCode ?? null;
  }

  /** Prevents further starts. */
  discard(): Promise<void> {
    this.discarded = true;
    return this.kill();
  }

  private async end(signal: NodeJS.Signals): Promise<void> {
    if (!this.running) return;
    const ended = once(this.child!, 'exit');
    this.child!.kill(signal);
    await ended;
  }
}
