import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { resolve } from 'node:path';
import { databaseUrl, type Environment, PEPPER } from './app';
import { freePort } from '../../src/dev/embedded/server';

const ROOT = resolve(__dirname, '..', '..');

/** The service as a separate process, which can be killed and started again with the same URL. */
export class ServiceProcess {
  private child: ChildProcess | undefined;
  private log = '';

  private constructor(
    private readonly port: number,
    private readonly environment: Environment,
  ) {}

  /** Uses the database of the test file. */
  static async open(environment: Environment): Promise<ServiceProcess> {
    const { status, stderr } = spawnSync(process.execPath, ['tools/scripts/compile.mjs'], {
      cwd: ROOT,
      encoding: 'utf8',
    });
    if (status !== 0) throw new Error(stderr);
    return new ServiceProcess(await freePort(), environment);
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** Resolves when it accepts requests. */
  async start(environment: Environment = {}): Promise<void> {
    this.log = '';
    const child = spawn(process.execPath, ['dist/src/main.js'], {
      cwd: ROOT,
      env: {
        ...process.env,
        NODE_ENV: 'production',
        DATABASE_URL: databaseUrl(),
        API_KEY_PEPPER: PEPPER,
        HOST: '127.0.0.1',
        PORT: String(this.port),
        PUBLIC_URL: this.url,
        METRICS_PORT: 'off',
        RATE_LIMIT: 'off',
        ...this.environment,
        ...environment,
      },
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.child = child;
    const isReady = new Promise<void>((ready, reject) => {
      const read = (chunk: Buffer) => {
        this.log += chunk.toString();
        if (this.log.includes('"msg":"ready"')) ready();
      };
      child.stdout.on('data', read);
      child.stderr.on('data', read);
      child.once('exit', () => reject(new Error(this.log)));
    });
    await isReady;
  }

  /** Ends the process as a power failure would, without time for any cleanup. */
  async kill(): Promise<void> {
    const { child } = this;
    if (child?.exitCode !== null || child.signalCode !== null) return;
    const exited = once(child, 'exit');
    process.kill(child.pid!, 'SIGKILL');
    await exited;
  }
}
