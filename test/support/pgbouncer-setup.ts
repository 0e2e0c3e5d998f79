import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { administer } from './database';
import globalSetup from './global-setup';
import { freePort } from './ports';
import { until } from './time';

const QUOTED = /['\\]/g;

/** The usual database server, and before it a real PgBouncer that lends its connections for one transaction each. */
export default async function pgbouncerSetup(): Promise<void> {
  const { error } = spawnSync('pgbouncer', ['--version']);
  if (error) throw new Error('This machine has no pgbouncer: on Debian, apt-get install pgbouncer');
  await globalSetup();
  const server = new URL(process.env.TEST_SERVER_URL!);
  const folder = mkdtempSync(join(tmpdir(), 'gamewharf-pgbouncer-'));
  chmodSync(folder, 0o755);
  const port = await freePort();
  const quoted = (text: string) => `'${decodeURIComponent(text).replace(QUOTED, "''")}'`;
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
server_idle_timeout = 1
`,
    { mode: 0o644 },
  );
  // It refuses to be root.
  const account = process.getuid?.() === 0 ? ['-u', 'nobody'] : [];
  const pooler = spawn('pgbouncer', ['-q', ...account, file], { stdio: 'ignore' });
  const { stop } = globalThis.testServer!;
  globalThis.testServer = {
    stop: async () => {
      const ended = once(pooler, 'exit');
      if (pooler.exitCode === null && pooler.kill()) await ended;
      rmSync(folder, { recursive: true, force: true });
      await stop();
    },
  };
  const through = new URL(server);
  through.hostname = '127.0.0.1';
  through.port = String(port);
  process.env.TEST_POOLER_URL = through.href;
  await until(() => answers(through.href), 10_000);
  await administer((client) => client.query('SELECT 1'));
}

async function answers(url: string): Promise<boolean> {
  const client = new Client({ connectionString: url });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch {
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
