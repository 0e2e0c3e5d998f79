import { randomBytes } from 'node:crypto';
import { readdir, readFile, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { EmbeddedPostgres, openEmbeddedPostgres } from '../../src/dev/embedded/embedded-postgres';
import { administer, withDatabase } from './database';
import { migrateTemplate } from './template';
import { temporaryBase, temporaryFolder } from './temporary';

const PREFIX = 'gamewharf-jest-';
const fast = {
  fsync: 'off',
  synchronous_commit: 'off',
  full_page_writes: 'off',
  wal_level: 'minimal',
  max_wal_senders: '0',
  max_wal_size: '256MB',
  max_connections: '200',
  // Shared memory is in files inside the folder, because a killed server would leave files that are
  // elsewhere.
  dynamic_shared_memory_type: 'mmap',
};

interface TestServer {
  stop(): Promise<void>;
}

declare global {
  var testServer: TestServer | undefined;
}

/** One server and one migrated template for the whole run: the server of DATABASE_URL, or an embedded one. */
export default async function globalSetup(): Promise<void> {
  const server = process.env.DATABASE_URL ? undefined : await startServer();
  const url = server?.url ?? process.env.DATABASE_URL ?? '';
  const template = `gamewharf_template_${randomBytes(4).toString('hex')}`;
  process.env.TEST_SERVER_URL = url;
  process.env.TEST_SUPERUSER_URL = server?.superuser ?? url;
  process.env.TEST_TEMPLATE = template;

  const stop = async () => {
    if (server) return server.stop();
    await administer((client) => client.query(`DROP DATABASE IF EXISTS ${template} WITH (FORCE)`));
  };
  globalThis.testServer = { stop };
  // Ctrl-C ends jest without its teardown.
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void stop().finally(() => process.exit(130)));
  }
  try {
    await administer((client) => client.query(`CREATE DATABASE ${template}`));
    await migrateTemplate(withDatabase(url, template));
    // Jest copies the globals of this process to each test file that it runs in band, where TypeORM would collect the
    // entities of all of them.
    Reflect.deleteProperty(globalThis, 'typeormMetadataArgsStorage');
  } catch (error) {
    await stop();
    throw error;
  }
}

async function startServer(): Promise<TestServer & { url: string; superuser: string }> {
  await removeAbandoned();
  const folder = await temporaryFolder(PREFIX);
  const server = await open(folder);
  const password = (await readFile(join(folder, 'postgres-password'), 'utf8')).trim();
  const superuser = Object.assign(new URL(server.url), {
    username: 'postgres',
    password,
    pathname: '/postgres',
  });
  return {
    url: server.url,
    superuser: superuser.href,
    stop: async () => {
      await server.stop();
      await remove(folder, server);
    },
  };
}

const open = (folder: string) =>
  openEmbeddedPostgres({ dataDir: folder, mode: 'serve', settings: fast, log: () => undefined });

async function remove(folder: string, server?: EmbeddedPostgres): Promise<void> {
  if (server) await rm(server.dataDir, { recursive: true, force: true });
  await rm(folder, { recursive: true, force: true });
}

/** Removes servers of killed test runs: if one can be taken over, no other run uses it. */
async function removeAbandoned(): Promise<void> {
  const base = await temporaryBase();
  for (const name of (await readdir(base)).filter((entry) => entry.startsWith(PREFIX))) {
    const folder = join(base, name);
    try {
      if (Date.now() - (await stat(folder)).mtimeMs < 60_000) continue;
      const server = await open(folder);
      await server.stop();
      await remove(folder, server);
    } catch {
      // The folder is in use by another run, or owned by another account.
    }
  }
}
