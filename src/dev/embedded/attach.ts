import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseError } from 'pg';
import { OperatorError } from '../../platform/errors/operator-error';
import { canReach, reachable, serverAccount } from './account';
import { packagedBinaries, usableBinaries } from './binaries';
import type { DataFolder } from './data-folder';
import { freePort, isServerOf, readPostmasterPid, ServerProcess } from './server';
import { ServerSession } from './server-session';

const POLL_MS = 10;
const START_TIMEOUT_MS = 10_000;
const ROLE = 'gamewharf';
/** Temporary failures: processes of a killed server, a port in use. */
const PASSING = /shared memory|lock file|TCP\/IP|already in use/;

export interface EmbeddedPostgresOptions {
  dataDir: string;
  /** The service starts or takes over the server and keeps it running; a command joins it, or starts its own. */
  mode: 'serve' | 'join-or-start';
  log: (message: string) => void;
  /** Settings of PostgreSQL, for tests without durability. */
  settings?: Record<string, string>;
  /** The URL of this process, for the error of another one on the same folder. */
  servingAt?: string;
  /** Cancels a running start. */
  signal?: AbortSignal;
  /** For root: the accounts that may run PostgreSQL, and the folder for data that they cannot access in the data folder. */
  accounts?: string[];
  fallback?: string;
  /** The folder with bin/, lib/ and share/, if not that of the installed package. */
  binaries?: string;
}

interface AttachOptions extends EmbeddedPostgresOptions {
  folder: DataFolder;
  /** The port that the app already uses. */
  port?: number;
  signal: AbortSignal;
}

export interface Attached {
  session: ServerSession;
  cluster: string;
  url: string;
}

/** Finds the running server of a data folder, or starts one, and registers this process as its user. */
export async function attach(options: AttachOptions): Promise<Attached> {
  const { folder, signal, servingAt } = options;
  const name = `process ${process.pid}${servingAt ? ` (${servingAt})` : ''}`;
  let server: ServerProcess | undefined;
  let unrelatedPid: number | undefined;
  let since: number | undefined;
  const isOver = () => Date.now() - (since ??= Date.now()) > START_TIMEOUT_MS;
  try {
    for (; ; await sleep(POLL_MS)) {
      if (signal.aborted) throw new OperatorError('The start of PostgreSQL was canceled.');
      const failure = await server?.failure();
      if (failure) {
        if (!PASSING.test(failure) || isOver())
          throw new OperatorError(`PostgreSQL did not start: ${failure} (more in ${folder.log}).`);
        server = undefined;
        await sleep(100);
      }
      const cluster = await folder.cluster();
      const running = cluster && (await readPostmasterPid(cluster));
      const isOurs =
        running &&
        running.pid !== unrelatedPid &&
        (server !== undefined || (await isServerOf(cluster, running.pid)));
      if (isOurs) {
        // A recovery after a crash has no timeout.
        if (!running.ready) continue;
        const session = await ServerSession.connect(running.port, await folder.password(), name);
        const attached = session && (await join(session, cluster, options));
        if (attached) return attached;
        if (!session && isOver())
          throw new OperatorError(
            `The PostgreSQL of ${folder.path} (process ${running.pid}) is running but doesn't respond. ` +
              'Stop that process, and start Gamewharf again.',
          );
      } else if (!server) {
        unrelatedPid = running ? running.pid : undefined;
        server = await start(options, cluster, unrelatedPid);
      }
    }
  } catch (error) {
    server?.abandon();
    throw error;
  }
}

/** Returns undefined if the server is being stopped and must be started again. */
async function join(
  session: ServerSession,
  cluster: string,
  { folder, mode }: AttachOptions,
): Promise<Attached | undefined> {
  const password = await folder.applicationPassword();
  try {
    const holder = mode === 'serve' ? await session.becomeService() : true;
    if (holder !== true)
      throw new OperatorError(
        `The data folder ${folder.path} is in use by ${holder}, and its database listens on 127.0.0.1:${session.port}: ` +
          `to share that database, set DATABASE_URL_FILE=${folder.urlFile} and another PORT; ` +
          'for a store of its own, set DATA_DIR to another folder.',
      );
    if (await session.register()) {
      await session.provide(ROLE, password);
      const url = `postgresql://${ROLE}:${password}@127.0.0.1:${session.port}/${ROLE}`;
      await folder.writeUrl(url);
      return { session, cluster, url };
    }
  } catch (error) {
    const isFinal = error instanceof OperatorError || error instanceof DatabaseError;
    if (isFinal && !(error as DatabaseError).code?.startsWith('57P')) {
      await session.close();
      throw error;
    }
  }
  await session.close();
  return undefined;
}

async function start(
  { folder, log, signal, ...options }: AttachOptions,
  existing: string | undefined,
  unrelatedPid: number | undefined,
): Promise<ServerProcess> {
  const { accounts = ['postgres', 'nobody'], fallback = '/var/lib/gamewharf', settings = {} } = options;
  const account = await serverAccount(accounts, existing);
  if (existing && !(await canReach(account, existing)))
    throw new OperatorError(
      `Account ${account!.name}, which runs PostgreSQL, cannot reach the data in ${existing}: ` +
        'allow it to enter the folders above them.',
    );
  const home = await reachable(account, folder.path, fallback);
  const native = await usableBinaries(options.binaries ?? packagedBinaries(), account, home, log);
  const cluster = existing ?? (await folder.createCluster(home, { native, account, settings, signal }));
  const port = options.port ?? (await freePort(await folder.lastPort()));
  const who = account ? `, run by account ${account.name}` : '';
  log(`PostgreSQL starts on 127.0.0.1:${port}, with its data in ${cluster}${who}`);
  return ServerProcess.start({ native, cluster, account, port, settings, log: folder.log, unrelatedPid });
}
