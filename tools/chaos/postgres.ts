import { chmod, cp, readFile, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { Client } from 'pg';
import { type Account, serverAccount } from '../../src/dev/embedded/account';
import { findPostmaster } from '../../src/dev/embedded/postmaster';
import { freePort, ServerProcess } from '../../src/dev/embedded/server';
import { until } from '../../test/support/time';
import { listFamily, killFamily, signal } from './processes';

export const ACCOUNTS = ['postgres', 'nobody'];

/** A stopped server's cluster with the store in it, from which others are copied. */
export interface Template {
  native: string;
  cluster: string;
  /** The role of the app. */
  url: string;
  password: string;
}

export type PostgresSettings = Record<string, string>;

const SETTINGS: PostgresSettings = {
  // Shared memory is in files inside the folder, because a killed server would leave files that are
  // elsewhere.
  dynamic_shared_memory_type: 'mmap',
  shared_buffers: '32MB',
  max_connections: '150',
};

/** A PostgreSQL server that can be killed, frozen, restarted, and replicated. */
export class Postgres {
  private discarded = false;
  private starting: Promise<void> | undefined;
  private server: ServerProcess | undefined;

  private constructor(
    private readonly template: Template,
    private readonly cluster: string,
    private readonly account: Account | undefined,
    private readonly port: number,
    private readonly settings: PostgresSettings,
  ) {}

  /** A copy of the template, which is not running yet. */
  static async copy(template: Template, cluster: string, settings: PostgresSettings): Promise<Postgres> {
    await cp(template.cluster, cluster, { recursive: true });
    await chmod(cluster, 0o700);
    const account = await serverAccount(ACCOUNTS, cluster);
    return new Postgres(template, cluster, account, await freePort(), { ...SETTINGS, ...settings });
  }

  get url(): string {
    return this.at(this.template.url);
  }

  /** Connects as the superuser: for replication, and to inspect the server. */
  get administrator(): string {
    return this.at(`postgresql://postgres:${this.template.password}@127.0.0.1/postgres`);
  }

  /** Makes this one a standby of the server at that URL, before its first start. */
  async follow(primary: string): Promise<void> {
    const { hostname, port, username, password } = new URL(primary);
    const address = `host=${hostname} port=${port} user=${username} password=${password} application_name=standby`;
    await writeFile(join(this.cluster, 'standby.signal'), '');
    const file = join(this.cluster, 'postgresql.auto.conf');
    await writeFile(file, `${await readFile(file, 'utf8')}\nprimary_conninfo = '${address}'\n`);
  }

  /** Waits until it accepts connections. */
  start(): Promise<void> {
    if (this.discarded) throw new Error('interrupted');
    this.starting = this.begin();
    return this.starting;
  }

  private async begin(): Promise<void> {
    const { template, cluster, account, port, settings } = this;
    const plan = { native: template.native, cluster, account, port, settings, log: `${cluster}.log` };
    const server = await ServerProcess.start(plan);
    this.server = server;
    await until(async () => {
      if (this.discarded && (await this.pid())) throw new Error('interrupted');
      if (server.failure) throw new Error(`PostgreSQL did not start: ${server.failure}`);
      return this.query('SELECT 1').then(
        () => true,
        () => false,
      );
    }, 30_000);
  }

  /** Kills all its processes at once, like a power failure. */
  async kill(): Promise<void> {
    const pid = await this.pid();
    if (pid) await killFamily(pid);
    await rm(join(this.cluster, 'postmaster.pid'), { force: true });
  }

  /** Prevents further starts. */
  async discard(): Promise<void> {
    this.discarded = true;
    // A server that has just been started has not written its pid yet.
    await this.starting?.catch(() => undefined);
    await this.kill();
  }

  async freeze(): Promise<void> {
    const pid = await this.pid();
    signal([pid], 'SIGSTOP');
    signal(await listFamily(pid), 'SIGSTOP');
  }

  async thaw(): Promise<void> {
    signal((await listFamily(await this.pid())).toReversed(), 'SIGCONT');
  }

  /** Ends recovery: from then on it accepts writes. */
  async promote(): Promise<void> {
    await this.query('SELECT pg_promote(true, 30)');
  }

  async stop(): Promise<void> {
    await this.server?.stop();
  }

  /** Terminates the connections of all clients; returns their number. */
  async terminateConnections(): Promise<number> {
    const rows = await this.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
       WHERE backend_type = 'client backend' AND pid <> pg_backend_pid()`,
    );
    return rows.length;
  }

  async query<Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> {
    return query<Row>(this.administrator, text, values);
  }

  private async pid(): Promise<number> {
    return (await findPostmaster(this.cluster))?.pid ?? 0;
  }

  private at(url: string): string {
    const address = new URL(url);
    address.port = String(this.port);
    return address.href;
  }
}

/** One statement on its own connection. */
export async function query<Row extends object>(
  url: string,
  text: string,
  values: unknown[] = [],
): Promise<Row[]> {
  const client = new Client({ connectionString: url, connectionTimeoutMillis: 2000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    return (await client.query<Row>(text, values)).rows;
  } finally {
    await client.end().catch(() => undefined);
  }
}
