import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { DatabaseError } from 'pg';
import { DatabaseClient } from '../../platform/database/client';
import { OperatorError } from '../../platform/errors/operator-error';
import { canReach, reachable, serverAccount } from './account';
import { packagedBinaries, usableBinaries } from './binaries';
import { DataFolder } from './data-folder';
import { findPostmaster, isSignaled, OWNER_SETTING } from './postmaster';
import { freePort, ServerProcess } from './server';

const POLL_MS = 50;
const START_POLL_MS = 10;
const SERVER_TIMEOUT_MS = 10_000;
/** Temporary failures: processes of a killed server, a server that another process is starting, a port in use. */
const PASSING = /shared memory|lock file|TCP\/IP|already in use/;

export interface EmbeddedPostgresOptions {
  dataDir: string;
  /** A service starts the server; a command uses the running one, or starts its own. */
  mode: 'serve' | 'join-or-start';
  log: (message: string) => void;
  /** Settings of PostgreSQL, for tests without durability. */
  settings?: Record<string, string>;
  /** Cancels a running start. */
  signal?: AbortSignal;
  /** What root needs: the accounts that may run PostgreSQL, and the folder for data that they cannot access in the data folder. */
  accounts?: string[];
  fallback?: string;
  /** The folder with bin/, lib/ and share/, if not that of the installed package. */
  binaries?: string;
}

/** The running server of a data folder. */
export interface EmbeddedPostgres {
  /** The database of the app. */
  url: string;
  /** The path of the data: in the data folder, or in a folder that the server's account can access. */
  dataDir: string;
  /** Whether another process owns the server. */
  hasJoined: boolean;
  /** Stops the server within 5 s if this process owns it. */
  stop(): Promise<void>;
}

/** Starts the server of a data folder, which this process then owns, or joins that of another process. */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  try {
    return await findOrStart(await DataFolder.open(options.dataDir), options);
  } catch (error) {
    const { syscall, message } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw new OperatorError(
      `The data folder ${resolve(options.dataDir)} cannot be used (${message}): fix the cause, set DATA_DIR to another ` +
        'folder, or set DATABASE_URL to a PostgreSQL server.',
    );
  }
}

async function findOrStart(folder: DataFolder, options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  for (const deadline = Date.now() + SERVER_TIMEOUT_MS; ; await sleep(POLL_MS)) {
    options.signal?.throwIfAborted();
    const isOver = Date.now() > deadline;
    const cluster = await folder.cluster();
    const postmaster = cluster === undefined ? undefined : await findPostmaster(cluster);
    if (!cluster || postmaster?.owner === undefined) {
      const started = await start(folder, cluster, postmaster?.pid, options);
      if (typeof started === 'object') return started;
      if (!PASSING.test(started) || isOver)
        throw new OperatorError(`PostgreSQL did not start: ${started} (more in ${folder.log}).`);
      continue;
    }
    const { pid, port, owner, isReady } = postmaster;
    if (!isSignaled(owner, 0)) {
      // The owner was killed, maybe together with the supervisor of its server.
      isSignaled(pid, isOver ? 'SIGKILL' : 'SIGINT');
      continue;
    }
    if (isOver || (isReady && options.mode === 'serve'))
      throw new OperatorError(
        `The data folder ${folder.path} is in use by process ${owner}, and its database listens on 127.0.0.1:${port}: ` +
          `to share that database, set DATABASE_URL_FILE=${folder.urlFile} and a different PORT; ` +
          'for a separate store, set DATA_DIR to a different folder.',
      );
    // A first start writes the file after the server has started, and a copied folder contains the URL of the original.
    const url = await folder.url();
    if (isReady && url?.port === port)
      return { url: url.href, dataDir: cluster, hasJoined: true, stop: () => Promise.resolve() };
  }
}

/** The running server, or the reason why it ended. */
async function start(
  folder: DataFolder,
  existing: string | undefined,
  unrelatedPid: number | undefined,
  options: EmbeddedPostgresOptions,
): Promise<EmbeddedPostgres | string> {
  const { log, signal, settings = {} } = options;
  const account = await serverAccount(options.accounts ?? ['postgres', 'nobody'], existing);
  if (existing && account && !(await canReach(account, existing)))
    throw new OperatorError(
      `Account ${account.name}, which runs PostgreSQL, cannot reach the data in ${existing}: ` +
        'allow it to enter the folders above them.',
    );
  const home = account
    ? await reachable(account, folder.path, options.fallback ?? '/var/lib/gamewharf')
    : folder.path;
  const native = await usableBinaries(options.binaries ?? packagedBinaries(), account, home, log);
  if (!existing) await folder.createCluster(home, { native, account, settings, signal });
  const cluster = (await folder.cluster())!;
  const port = await freePort(Number((await folder.url())?.port));
  log(
    `PostgreSQL starts on 127.0.0.1:${port}, with its data in ${cluster}${account ? `, run by account ${account.name}` : ''}`,
  );
  const server = await ServerProcess.start({
    native,
    cluster,
    account,
    port,
    settings: { [OWNER_SETTING]: String(process.pid), ...settings },
    log: folder.log,
    unrelatedPid,
  });
  try {
    const failure = await untilReady(server, cluster, signal);
    if (failure !== undefined) return failure;
    const url = folder.urlAt(port);
    await createDatabase(url, folder.password());
    await folder.writeUrl(url);
    await folder.removeUnfinished();
    let stopped: Promise<void> | undefined;
    void server.ended.then(() => stopped ?? log('PostgreSQL has ended unexpectedly: restart Gamewharf.'));
    return { url, dataDir: cluster, hasJoined: false, stop: () => (stopped ??= server.stop()) };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/** Waits until the server accepts connections; returns the reason if it ended instead. */
async function untilReady(
  server: ServerProcess,
  cluster: string,
  signal?: AbortSignal,
): Promise<string | undefined> {
  for (; ; await sleep(START_POLL_MS)) {
    signal?.throwIfAborted();
    if (server.failure !== undefined) return server.failure;
    const postmaster = await findPostmaster(cluster);
    if (postmaster?.isReady && postmaster.owner === process.pid) return undefined;
  }
}

/** Creates the role and the database of that URL. */
async function createDatabase(url: string, superuserPassword: string): Promise<void> {
  const { port, password } = new URL(url);
  const client = new DatabaseClient({
    connectionString: `postgresql://postgres:${superuserPassword}@127.0.0.1:${port}/postgres`,
    ssl: false,
    connectionTimeoutMillis: SERVER_TIMEOUT_MS,
    query_timeout: SERVER_TIMEOUT_MS,
    // This also overrides PGOPTIONS.
    options: '-c statement_timeout=0',
  });
  try {
    await client.connect();
    const { rows } = await client.query<Record<'role' | 'database', boolean>>(
      `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gamewharf') AS role,
              EXISTS (SELECT FROM pg_database WHERE datname = 'gamewharf') AS database`,
    );
    const { role, database } = rows[0]!;
    if (!role) await client.query(`CREATE ROLE gamewharf LOGIN CREATEDB PASSWORD '${password}'`);
    // `gamewharf restore` needs this permission.
    await client.query('GRANT SET ON PARAMETER session_replication_role TO gamewharf');
    if (!database) await client.query('CREATE DATABASE gamewharf OWNER gamewharf');
  } catch (error) {
    if (!(error as DatabaseError).code?.startsWith('28')) throw error;
    throw new OperatorError(
      `PostgreSQL rejects the password in the file postgres-password of the data folder: restore it from a backup.`,
    );
  } finally {
    // A server that hangs doesn't close the connection.
    void client.end().catch(() => undefined);
  }
}
