import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { serverAccount } from '../../src/dev/embedded/account';
import { packagedBinaries, usableBinaries } from '../../src/dev/embedded/binaries';
import { openEmbeddedPostgres } from '../../src/dev/embedded/embedded-postgres';
import { migrate } from '../../src/platform/database/migrate';
import { toNdjson } from '../../src/dev/demo/demo-file';
import { connectTo, importRecords } from '../../src/operator/import/import-records';
import { FaultyProxy } from '../../test/support/proxy';
import { TestRedis } from '../../test/support/redis';
import { temporaryFolder } from '../../test/support/temporary';
import { type Backend, Balancer } from './balancer';
import { ACCOUNTS, Postgres, type PostgresSettings, type Template } from './postgres';
import { Service } from './service';
import { storeRecords } from './store';
import type { Protection } from './without';

const CLI = join(__dirname, '..', '..', 'src', 'cli.js');

type Cleanup = () => Promise<unknown> | unknown;

/** Servers to break, all of which stop when it is closed. */
export class Lab {
  readonly operator_token = randomBytes(20).toString('hex');
  private readonly pepper = randomBytes(32).toString('hex');
  private cleanups: Cleanup[] = [];
  private made = 0;
  private clearing: Promise<void> = Promise.resolve();
  private closing: Promise<void> | undefined;

  private constructor(
    private readonly folder: string,
    private template: Template,
  ) {}

  static async open(): Promise<Lab> {
    const folder = await temporaryFolder('gamewharf-chaos-');
    const lab = new Lab(folder, { native: '', cluster: '', url: '', password: '' });
    try {
      await lab.makeTemplate();
    } catch (error) {
      await lab.close();
      throw error;
    }
    return lab;
  }

  /** A PostgreSQL with the store in it. */
  async postgres(settings: PostgresSettings = {}): Promise<Postgres> {
    this.requireOpen();
    const cluster = join(this.folder, `postgres-${this.made++}`);
    const postgres = await Postgres.copy(this.template, cluster, settings);
    this.onClear(async () => {
      await postgres.discard();
      await rm(cluster, { recursive: true, force: true });
    });
    return postgres;
  }

  /** A replica that uses that database. */
  async service(
    database: string,
    { without, ...settings }: Record<string, string | undefined> & { without?: Protection } = {},
  ): Promise<Service> {
    const service = await Service.create({
      env: { ...this.environment(database), ...settings },
      log: join(this.folder, `service-${this.made++}.log`),
      without,
    });
    this.onClear(() => service.discard());
    return service;
  }

  /** A started PostgreSQL, and a started replica that serves it. */
  async started(
    options: Parameters<Lab['service']>[1] = {},
    settings: PostgresSettings = {},
  ): Promise<{ postgres: Postgres; service: Service }> {
    const postgres = await this.postgres(settings);
    await postgres.start();
    const service = await this.service(postgres.url, options);
    await service.start();
    return { postgres, service };
  }

  async proxy(url: string): Promise<FaultyProxy> {
    const proxy = await FaultyProxy.before(url);
    this.onClear(() => proxy.vanish());
    return proxy;
  }

  async balancer(replicas: Backend[]): Promise<Balancer> {
    const balancer = await Balancer.before(replicas);
    this.onClear(() => balancer.close());
    return balancer;
  }

  async redis(): Promise<TestRedis> {
    const redis = await TestRedis.start();
    this.onClear(() => redis.stop());
    return redis;
  }

  /** Runs the operator's command next to the services; returns its standard output and standard error. */
  async command(database: string, ...args: string[]): Promise<{ output: string; notes: string }> {
    const child = spawn(process.execPath, [CLI, ...args], {
      cwd: this.folder,
      env: this.environment(database),
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let [output, notes] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (notes += chunk.toString()));
    const [code] = (await once(child, 'close')) as [number | null];
    if (code !== 0) throw new Error(`gamewharf ${args.join(' ')} failed: ${notes}`);
    return { output, notes };
  }

  /** Stops everything started for one scenario, in reverse order. */
  clear(): Promise<void> {
    // A second call waits for the first.
    this.clearing = this.clearing.then(async () => {
      for (const cleanup of this.cleanups.splice(0).toReversed()) await cleanup();
    });
    return this.clearing;
  }

  /** Nothing can be started afterwards. */
  close(): Promise<void> {
    this.closing ??= (async () => {
      await this.clear();
      await rm(this.folder, { recursive: true, force: true });
    })();
    return this.closing;
  }

  private onClear(cleanup: Cleanup): void {
    this.cleanups.push(cleanup);
    this.requireOpen();
  }

  private requireOpen(): void {
    if (this.closing) throw new Error('interrupted');
  }

  private environment(database: string): NodeJS.ProcessEnv {
    return {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      DATA_DIR: this.folder,
      DATABASE_URL: database,
      API_KEY_PEPPER: this.pepper,
      OPERATOR_TOKEN: this.operator_token,
      RATE_LIMIT: 'off',
      WEBHOOKS_ALLOW_PRIVATE: 'true',
      LOG_LEVEL: 'warn',
      // Replicas accept each other's tokens, so they need the same issuer.
      PUBLIC_URL: 'http://store.test',
      DRAIN_SECONDS: '2',
    };
  }

  private async fill(url: string): Promise<void> {
    await migrate({ DATABASE_URL: url }, () => undefined);
    await importRecords(() => connectTo({ DATABASE_URL: url }), Readable.from(toNdjson(storeRecords())), {
      pepper: Buffer.from(this.pepper),
    });
  }

  private async makeTemplate(): Promise<void> {
    const home = join(this.folder, 'template');
    await mkdir(home, { mode: 0o755 });
    const quiet = () => undefined;
    const server = await openEmbeddedPostgres({ dataDir: home, mode: 'serve', log: quiet });
    try {
      await this.fill(server.url);
    } finally {
      await server.stop();
    }
    this.template = {
      native: await usableBinaries(packagedBinaries(), await serverAccount(ACCOUNTS), home, quiet),
      cluster: server.dataDir,
      url: server.url,
      password: await readFile(join(home, 'postgres-password'), 'utf8').then((text) => text.trim()),
    };
  }
}
