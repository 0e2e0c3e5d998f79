import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { freePort } from '../../src/dev/embedded/server';
import { until } from './time';

export const hasPgBouncer = spawnSync('pgbouncer', ['--version']).status === 0;

export interface Pooler {
  pid: number;
  /** The server through the pooler, for any of its databases. */
  through(url: string): string;
  stop(): Promise<void>;
}

/** A real PgBouncer in front of the server, in transaction pooling mode. */
export async function startPooler(
  server_url: string,
  parameters: Record<string, string> = { server_idle_timeout: '1' },
): Promise<Pooler> {
  const server = new URL(server_url);
  const folder = mkdtempSync(join(tmpdir(), 'gamewharf-pgbouncer-'));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const quoted = (text: string) => `'${decodeURIComponent(text).replace(/['\\]/g, "''")}'`;
  const login = `user=${quoted(server.username || 'postgres')}${server.password && ` password=${quoted(server.password)}`}`;
  const file = join(folder, 'pgbouncer.ini');
  writeFileSync(
    file,
    `[databases]
* = host=${server.hostname} port=${server.port || 5432} ${login}
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = ${port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
max_client_conn = 1000
default_pool_size = 20
${Object.entries(parameters)
  .map(([name, value]) => `${name} = ${value}\n`)
  .join('')}`,
    { mode: 0o644 },
  );
  // PgBouncer can't run as root.
  const account = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const pooler = spawn('pgbouncer', ['-q', ...account, file], { stdio: 'ignore' });
  const through = (url: string) =>
    Object.assign(new URL(url), { hostname: '127.0.0.1', port: String(port) }).href;
  const stop = async () => {
    const ended = once(pooler, 'exit');
    if (pooler.exitCode === null && pooler.kill()) await ended;
    rmSync(folder, { recursive: true, force: true });
  };
  await until(() => responds(through(server_url)));
  return { pid: pooler.pid!, through, stop };
}

/** Whether a query succeeds, by default however long it takes. */
export async function responds(url: string, milliseconds?: number): Promise<boolean> {
  const client = new Client({
    connectionString: url,
    connectionTimeoutMillis: milliseconds,
    query_timeout: milliseconds,
  });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    void client.end().catch(() => undefined);
  }
}
