import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseError } from 'pg';
import { OperatorError } from '../../platform/config/operator-error';
import { canReach, clusterAccount, reachableHome, serverAccount, shelter } from './account';
import { packagedBinaries, usableBinaries } from './binaries';
import type { DataFolder } from './data-folder';
import { removeLeftovers } from './initdb';
import { freePort, isServerOf, readPostmasterPid, removeBrokenPid, ServerProcess } from './server';
import { ServerSession } from './server-session';

const POLL_MS = 10;
const START_TIMEOUT_MS = 10_000;
const ROLE = 'gamewharf';
/** Temporary failures: processes of a killed server, a port in use. */
const PASSING = /shared memory|lock file|TCP\/IP|already in use/;

interface AttachOptions {
  folder: DataFolder;
  service: boolean;
  name: string;
  settings: Record<string, string>;
  accounts: string[];
  shelters: string[];
  binaries?: string;
  /** The port that the app already uses. */
  port?: number;
  signal: AbortSignal;
  log: (message: string) => void;
}

export interface Attached {
  session: ServerSession;
  cluster: string;
  url: string;
}

/** Finds the running server of a data folder, or starts one, and registers this process as its user. */
export async function attach(options: AttachOptions): Promise<Attached> {
  const { folder, signal, name } = options;
  let server: ServerProcess | undefined;
  let strangerPid: number | undefined;
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
      if (running && !running.pid) await removeBrokenPid(cluster);
      else if (
        running &&
        running.pid !== strangerPid &&
        (server || (await isServerOf(cluster, running.pid)))
      ) {
        // A recovery after a crash has no timeout.
        if (!running.ready) continue;
        const session = await ServerSession.connect(running.port, await folder.password(), name);
        const attached = session && (await join(session, cluster, options));
        if (attached) return attached;
        if (!session && isOver())
          throw new OperatorError(
            `The PostgreSQL of ${folder.path} (process ${running.pid}) is running but doesn't respond. ` +
              'End that process, and start again.',
          );
      } else if (!server) {
        strangerPid = running ? running.pid : undefined;
        server = await start(options, cluster, strangerPid);
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
  { folder, service }: AttachOptions,
): Promise<Attached | undefined> {
  const password = await folder.applicationPassword();
  try {
    const holder = service ? await session.becomeService() : true;
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
  { folder, accounts, shelters, settings, log, signal, ...options }: AttachOptions,
  existing: string | undefined,
  strangerPid: number | undefined,
): Promise<ServerProcess> {
  const account = existing ? await clusterAccount(existing, accounts) : await serverAccount(accounts);
  const home = existing ? folder.path : await reachableHome(folder.path, account, shelters);
  const binariesHome = async () =>
    account && !(await canReach(account, folder.path)) ? shelter(account, shelters) : folder.path;
  const native = await usableBinaries(options.binaries ?? packagedBinaries(), account, binariesHome, log);
  let cluster = existing;
  if (!cluster) {
    if (home !== folder.path)
      log(`account ${account?.name} cannot reach ${folder.path}: the data of PostgreSQL are kept in ${home}`);
    await removeLeftovers(home);
    cluster = await folder.createCluster(home, { native, account, settings, signal });
  } else if (account && !(await canReach(account, cluster)))
    throw new OperatorError(
      `Account ${account.name}, which runs PostgreSQL, cannot reach the data in ${cluster}: ` +
        'let it pass the folders above them.',
    );
  const port = options.port ?? (await freePort(await folder.lastPort()));
  const who = account ? `, run by account ${account.name}` : '';
  log(`PostgreSQL starts on 127.0.0.1:${port}, with its data in ${cluster}${who}`);
  return ServerProcess.start({ native, cluster, account, port, settings, log: folder.log, strangerPid });
}
