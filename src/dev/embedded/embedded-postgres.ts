import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { OperatorError } from '../../platform/errors/operator-error';
import { canReach, reachable, serverAccount } from './account';
import { packagedBinaries, usableBinaries } from './binaries';
import { DataFolder } from './data-folder';
import { findPostmaster, isSignaled, ownerSetting, type Owner, type Postmaster } from './postmaster';
import { freePort, ServerProcess } from './server';
import { countConnections, createDatabase } from './server-queries';

const POLL_MS = 50;
const START_POLL_MS = 10;
const START_TIMEOUT_MS = 10_000;
/** Temporary failures: processes of a killed server, a server that another process is starting, a port in use. */
const PASSING = /shared memory|lock file|TCP\/IP|already in use/;

export interface EmbeddedPostgresOptions {
  dataDir: string;
  /** The service owns the server and restarts it if it crashes; a command uses the running one, or starts its own. */
  mode: 'serve' | 'join-or-start';
  log: (message: string) => void;
  /** Settings of PostgreSQL, for tests without durability. */
  settings?: Record<string, string>;
  /** The URL of this process, for the error of another one on the same folder. */
  servingAt?: string;
  /** Cancels a running start, or a command's wait for other processes at the end. */
  signal?: AbortSignal;
  /** What root needs: the accounts that may run PostgreSQL, and the folder for data that they cannot access in the data folder. */
  accounts?: string[];
  fallback?: string;
  /** The folder with bin/, lib/ and share/, if not that of the installed package. */
  binaries?: string;
}

interface Opened {
  url: string;
  dataDir: string;
  /** Undefined: another process owns the server. */
  server?: ServerProcess;
}

/** The running PostgreSQL server of a data folder: this process owns it, or uses that of another process. */
export async function openEmbeddedPostgres(options: EmbeddedPostgresOptions): Promise<EmbeddedPostgres> {
  const stopping = new AbortController();
  const signal = options.signal ? AbortSignal.any([options.signal, stopping.signal]) : stopping.signal;
  const open = async (port?: number) => {
    try {
      return await findOrStart(await DataFolder.open(options.dataDir), { ...options, signal }, port);
    } catch (error) {
      throw explained(error, options.dataDir);
    }
  };
  return new EmbeddedPostgres(options, await open(), stopping, open);
}

/** Adds a remedy to an error of the file system. */
function explained(error: unknown, dataDir: string): unknown {
  const { syscall, message } = error as NodeJS.ErrnoException;
  if (syscall === undefined) return error;
  return new OperatorError(
    `The data folder ${resolve(dataDir)} cannot be used (${message}): fix the cause, set DATA_DIR to another folder, ` +
      'or set DATABASE_URL to a PostgreSQL server.',
  );
}

export class EmbeddedPostgres {
  /** The database of the app. */
  readonly url: string;
  /** The path of the data: in the data folder, or in a folder that the server's account can access. */
  readonly dataDir: string;
  /** Whether another process owns the server. */
  readonly joined: boolean;
  private server: ServerProcess | undefined;
  private recovery = Promise.resolve();
  private stopped?: Promise<void>;

  constructor(
    private readonly options: EmbeddedPostgresOptions,
    { url, dataDir, server }: Opened,
    private readonly stopping: AbortController,
    private readonly reopen: (port: number) => Promise<Opened>,
  ) {
    this.url = url;
    this.dataDir = dataDir;
    this.joined = server === undefined;
    this.own(server);
  }

  /** Stops an owned server: the service's within 5 s, a command's when other processes don't use it any longer. */
  stop(): Promise<void> {
    this.stopped ??= (async () => {
      this.stopping.abort();
      await this.recovery;
      if (this.server && this.options.mode === 'join-or-start') await this.waitForOthers();
      await this.server?.stop();
    })();
    return this.stopped;
  }

  private async waitForOthers(): Promise<void> {
    const { log, signal } = this.options;
    // Connections that this process has just closed may exist for a moment.
    for (let round = 1; !signal?.aborted && (await countConnections(this.url)) > 0; round += 1) {
      if (round === 5) log('PostgreSQL keeps running until the other processes that use it have ended.');
      await sleep(100, undefined, { signal }).catch(() => undefined);
    }
  }

  private own(server: ServerProcess | undefined): void {
    this.server = server;
    if (this.options.mode === 'serve')
      void server?.ended.then(() => {
        if (!this.stopping.signal.aborted) this.recovery = this.recover();
      });
  }

  private async recover(): Promise<void> {
    const { log } = this.options;
    const { signal } = this.stopping;
    log('PostgreSQL has ended unexpectedly');
    for (let pause = 50; !signal.aborted; pause = Math.min(pause * 2, 5_000)) {
      try {
        this.own((await this.reopen(Number(new URL(this.url).port))).server);
        return log('PostgreSQL responds again');
      } catch (error) {
        log((error as Error).message);
        await sleep(pause, undefined, { signal }).catch(() => undefined);
      }
    }
  }
}

type OpenOptions = EmbeddedPostgresOptions & { signal: AbortSignal };

/** `port`: the one that the app already uses. */
async function findOrStart(folder: DataFolder, options: OpenOptions, port?: number): Promise<Opened> {
  const { mode, log, signal } = options;
  let since = Date.now();
  let awaited: number | undefined;
  for (; ; await sleep(POLL_MS)) {
    signal.throwIfAborted();
    const cluster = await folder.cluster();
    const postmaster = cluster === undefined ? undefined : await findPostmaster(cluster);
    const isOver = Date.now() - since > START_TIMEOUT_MS;
    if (!cluster || !postmaster?.owner) {
      const opened = await start(folder, options, cluster, postmaster?.pid, port);
      if (typeof opened === 'object') return opened;
      if (!PASSING.test(opened) || isOver)
        throw new OperatorError(`PostgreSQL did not start: ${opened} (more in ${folder.log}).`);
      continue;
    }
    const { owner, isReady } = postmaster;
    if (!isSignaled(owner.pid, 0)) {
      // It was killed together with the supervisor of its server.
      isSignaled(postmaster.pid, isOver ? 'SIGKILL' : 'SIGINT');
      continue;
    }
    since = Date.now();
    // Another process is starting or stopping it.
    if (!isReady) continue;
    if (mode === 'join-or-start') {
      const url = await folder.url();
      // At the first start, the file comes after the server.
      if (url && new URL(url).port === postmaster.port) return { url, dataDir: cluster };
    } else if (owner.mode === 'serve') {
      throw inUse(folder, postmaster, owner);
    } else if (awaited !== owner.pid) {
      log(`waiting for the command with process ID ${(awaited = owner.pid)}, which uses ${folder.path}`);
    }
  }
}

const inUse = (folder: DataFolder, { port }: Postmaster, { pid, servingAt }: Owner) =>
  new OperatorError(
    `The data folder ${folder.path} is in use by process ${pid}${servingAt && ` (${servingAt})`}, and its database listens on ` +
      `127.0.0.1:${port}: to share that database, set DATABASE_URL_FILE=${folder.urlFile} and a different PORT; ` +
      'for a store of its own, set DATA_DIR to another folder.',
  );

/** The running server, or the reason why it ended. */
async function start(
  folder: DataFolder,
  options: OpenOptions,
  existing: string | undefined,
  unrelatedPid: number | undefined,
  appPort: number | undefined,
): Promise<Opened | string> {
  const { log, signal, mode, servingAt = '', settings = {} } = options;
  const { accounts = ['postgres', 'nobody'], fallback = '/var/lib/gamewharf' } = options;
  const account = await serverAccount(accounts, existing);
  if (existing && account && !(await canReach(account, existing)))
    throw new OperatorError(
      `Account ${account.name}, which runs PostgreSQL, cannot reach the data in ${existing}: ` +
        'allow it to enter the folders above them.',
    );
  const home = await reachable(account, folder.path, fallback);
  const native = await usableBinaries(options.binaries ?? packagedBinaries(), account, home, log);
  const dataDir = existing ?? (await folder.createCluster(home, { native, account, settings, signal }));
  const port = appPort ?? (await freePort(await folder.lastPort()));
  const who = account ? `, run by account ${account.name}` : '';
  log(`PostgreSQL starts on 127.0.0.1:${port}, with its data in ${dataDir}${who}`);
  const server = await ServerProcess.start({
    native,
    cluster: dataDir,
    account,
    port,
    settings: { ...ownerSetting({ mode, pid: process.pid, servingAt }), ...settings },
    log: folder.log,
    unrelatedPid,
  });
  try {
    for (; ; await sleep(START_POLL_MS)) {
      signal.throwIfAborted();
      if (server.failure !== undefined) return server.failure;
      const postmaster = await findPostmaster(dataDir);
      if (!postmaster?.isReady || postmaster.owner?.pid !== process.pid) continue;
      const url = folder.urlAt(port);
      if (!(await createDatabase(url, folder.password()))) continue;
      await folder.writeUrl(url);
      return { url, dataDir, server };
    }
  } catch (error) {
    await server.stop();
    throw error;
  }
}
