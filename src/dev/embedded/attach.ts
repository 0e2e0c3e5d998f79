import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseError } from 'pg';
import { OperatorError } from '../../platform/config/operator-error';
import { Account, canReach, clusterAccount, serverAccount } from './account';
import { packagedBinaries, usableBinaries } from './binaries';
import { DataFolder } from './data-folder';
import { removeLeftovers } from './initdb';
import { freePort, isServerOf, readPostmasterPid, removeBrokenPid, ServerProcess } from './server';
import { ServerSession } from './server-session';
import { reachableHome, shelter } from './fallback-data-dir';

const POLL_MS = 10;
const START_TIMEOUT_MS = 10_000;
const ROLE = 'gamewharf';

interface AttachOptions {
  folder: DataFolder;
  service: boolean;
  name: string;
  settings: Record<string, string>;
  accounts: string[];
  shelters: string[];
  binaries?: string;
  /** The port that the application uses already. */
  port?: number;
  signal: AbortSignal;
  log: (message: string) => void;
}

export interface Attached {
  session: ServerSession;
  cluster: string;
  url: string;
}

interface Installation {
  native: string;
  cluster: string;
  account: Account | undefined;
}

/** Finds the running server of a data folder, or starts one, and registers this process as its user. */
export async function attach(options: AttachOptions): Promise<Attached> {
  const attempt = new Attempt(options);
  try {
    for (;;) {
      const attached = await attempt.step();
      if (attached) return attached;
      await sleep(POLL_MS);
    }
  } catch (error) {
    attempt.server?.abandon();
    throw error;
  }
}

class Attempt {
  server?: ServerProcess;
  private cluster?: string;
  private strangerPid?: number;
  private readonly timeout: StartTimeout;

  constructor(private readonly options: AttachOptions) {
    this.timeout = new StartTimeout(options);
  }

  async step(): Promise<Attached | undefined> {
    const { folder, signal, name } = this.options;
    if (signal.aborted) throw new OperatorError('The start of PostgreSQL was cancelled.');
    const failure = await this.server?.failure();
    if (failure) {
      this.server = undefined;
      return this.timeout.afterFailure(failure);
    }

    this.cluster ??= await folder.cluster();
    const running = this.cluster && (await readPostmasterPid(this.cluster));
    if (this.cluster && running) {
      if (!running.pid) return void (await removeBrokenPid(this.cluster));
      const outcome = running.ready
        ? await ServerSession.connect(this.cluster, running.port, await folder.password(), name)
        : 'not ready';
      if (outcome instanceof ServerSession) return this.join(outcome, this.cluster);
      if (outcome === 'busy') return this.timeout.whileBusy();
      if (this.server) return undefined;
      if (running.pid !== this.strangerPid && (await isServerOf(this.cluster, running.pid))) {
        return outcome === 'not ready'
          ? this.timeout.whileBusy()
          : this.timeout.whileSilent(outcome, running.pid);
      }
      this.strangerPid = running.pid;
    }
    if (!this.server) await this.start();
    return undefined;
  }

  private async start(): Promise<void> {
    const { folder, settings, log } = this.options;
    const installation = await prepare(this.options, this.cluster);
    const port = this.options.port ?? (await freePort(await folder.lastPort()));
    const who = installation.account ? `, run by account ${installation.account.name}` : '';
    log(`PostgreSQL starts on 127.0.0.1:${port}, with its data in ${installation.cluster}${who}`);
    this.server = await ServerProcess.start({
      ...installation,
      port,
      settings,
      log: folder.log,
      strangerPid: this.strangerPid,
    });
    this.cluster = installation.cluster;
  }

  /** Undefined: another process is stopping the server, which must be started again. */
  private async join(session: ServerSession, cluster: string): Promise<Attached | undefined> {
    const { folder } = this.options;
    const password = await folder.applicationPassword();
    if (!(await this.register(session, password))) return void (await session.close());
    const url = `postgresql://${ROLE}:${password}@127.0.0.1:${session.port}/${ROLE}`;
    await folder.writeUrl(url);
    return { session, cluster, url };
  }

  private async register(session: ServerSession, password: string): Promise<boolean> {
    try {
      const holder = this.options.service ? await session.becomeService() : true;
      if (holder !== true) throw inUse(holder, session.port, this.options.folder);
      if (!(await session.register())) return false;
      await session.provide(ROLE, password);
      return true;
    } catch (error) {
      if (error instanceof DatabaseError && error.code?.startsWith('57P')) return false;
      if (!(error instanceof OperatorError) && !(error instanceof DatabaseError)) return false;
      await session.close();
      throw error;
    }
  }
}

// initdb looks for postgres beside it by a command line.
const SPECIAL_TO_SHELLS = /["$`\\]/;

const inUse = (holder: string, port: number, folder: DataFolder) =>
  new OperatorError(
    `The data folder ${folder.path} is in use by ${holder}, and its database listens on 127.0.0.1:${port}: ` +
      `to share that database, set DATABASE_URL_FILE=${folder.urlFile} and another PORT; ` +
      'for a store of its own, set DATA_DIR to another folder.',
  );

async function prepare(options: AttachOptions, existing: string | undefined): Promise<Installation> {
  const { folder, accounts, shelters, log, signal } = options;
  const account = existing ? await clusterAccount(existing, accounts) : await serverAccount(accounts);
  const shelterOf = async () =>
    account && (SPECIAL_TO_SHELLS.test(folder.path) || !(await canReach(account, folder.path)))
      ? shelter(account, shelters)
      : folder.path;
  const native = await usableBinaries(options.binaries ?? packagedBinaries(), account, shelterOf, log);
  if (existing) {
    if (!account || (await canReach(account, existing))) return { native, account, cluster: existing };
    throw new OperatorError(
      `Account ${account.name}, which runs PostgreSQL, cannot reach the data in ${existing}: ` +
        'let it pass the folders above them.',
    );
  }
  const home = await reachableHome(folder, account, shelters);
  if (home !== folder.path) {
    log(`account ${account?.name} cannot reach ${folder.path}: the data of PostgreSQL are kept in ${home}`);
  }
  await removeLeftovers(home);
  const { settings } = options;
  return {
    native,
    account,
    cluster: await folder.createCluster(home, { native, account, settings, signal }),
  };
}

/** Limits how long a start may wait, and for what. */
class StartTimeout {
  private since?: number;
  private warned = false;

  constructor(private readonly options: AttachOptions) {}

  /** For failures that may pass: processes of a killed server, a port in use, a server that another process starts. */
  async afterFailure(failure: string): Promise<undefined> {
    const passing = /shared memory|lock file|TCP\/IP|already in use/.test(failure);
    if (!passing || this.isOver()) {
      throw new OperatorError(`PostgreSQL did not start: ${failure} (more in ${this.options.folder.log}).`);
    }
    await sleep(100);
  }

  /** Recovery after a crash has no timeout. */
  whileBusy(): undefined {
    if (this.isOver() && !this.warned)
      this.options.log('PostgreSQL is still starting or stopping: waiting for it');
    this.warned ||= this.isOver();
  }

  whileSilent(outcome: string, pid: number): undefined {
    const server = `The PostgreSQL of ${this.options.folder.path} (process ${pid})`;
    if (outcome === 'rejected') {
      throw new OperatorError(
        `${server} rejects the stored password. Restore postgres-password from a backup.`,
      );
    }
    if (this.isOver())
      throw new OperatorError(`${server} is running but doesn't respond. End that process, and start again.`);
  }

  private isOver(): boolean {
    this.since ??= Date.now();
    return Date.now() - this.since > START_TIMEOUT_MS;
  }
}
