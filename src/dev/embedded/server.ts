import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, type FileHandle, open, rename } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Account, processOptions } from './account';
import { unlessMissing } from './data-folder';
import { isSignaled } from './postmaster';

interface ServerPlan {
  native: string;
  cluster: string;
  account: Account | undefined;
  port: number;
  log: string;
  settings: Record<string, string>;
  /**
   * A PID in postmaster.pid that now belongs to another program: PostgreSQL ignores it if it is one of its ancestors.
   */
  unrelatedPid?: number;
}

const FIXED_SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  password_encryption: 'scram-sha-256',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  // Details and statements of errors may contain personal data.
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
};

/**
 * Runs PostgreSQL and stops it when descriptor 3 is closed, which happens however the owner ends. Signals to the process
 * group reach only PostgreSQL, because the shell ignores them.
 */
const SUPERVISOR = `
trap '' INT QUIT TERM HUP
"$0" "$@" 3<&- & server=$!
(read -r _; kill -INT $server) <&3 & watch=$!
wait $server; status=$?
kill -KILL $watch
exit $status`;

const LOG_END_BYTES = 64 * 1024;

/** A server process that ends with this process. */
export class ServerProcess {
  readonly ended: Promise<void>;
  /** The reason why it ended, from its log; undefined while it runs. */
  failure: string | undefined;

  /** `log` is a handle, because a process that starts at the same time may rename the file. */
  private constructor(
    private readonly child: ChildProcess,
    log: FileHandle,
  ) {
    this.ended = once(child, 'exit')
      .catch(() => undefined)
      .then(async () => {
        this.failure = await lastError(log).catch(() => '');
        await log.close();
      });
    child.unref();
    (child.stdio[3] as Socket | undefined)?.on('error', () => undefined).unref();
  }

  static async start({ native, cluster, account, ...plan }: ServerPlan): Promise<ServerProcess> {
    // PostgreSQL rejects the permissions that a copy or a backup may have.
    await chmod(cluster, 0o700);
    await rename(plan.log, `${plan.log}.1`).catch(unlessMissing);
    const log = await open(plan.log, 'a+', 0o600);
    const settings = { ...plan.settings, ...FIXED_SETTINGS, port: plan.port };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    const run = processOptions(account);
    const child = spawn(
      'sh',
      ['-c', SUPERVISOR, join(native, 'bin', 'postgres'), '-D', cluster, ...options],
      {
        ...run,
        // Ctrl-C signals the whole process group, but the app must drain before the server stops.
        detached: true,
        stdio: ['ignore', log.fd, log.fd, 'pipe'],
        env: { ...run.env, ...(plan.unrelatedPid && { PG_GRANDPARENT_PID: String(plan.unrelatedPid) }) },
      },
    );
    return new ServerProcess(child, log);
  }

  /** A fast shutdown, then an immediate one, then SIGKILL. Committed data is safe in each case. */
  async stop(): Promise<void> {
    // This process must run until the server has stopped.
    this.child.ref();
    const steps = { SIGINT: 2_200, SIGQUIT: 900, SIGKILL: 300 };
    for (const [signal, timeout] of Object.entries(steps)) {
      if (this.failure !== undefined || !this.child.pid) return;
      isSignaled(-this.child.pid, signal as NodeJS.Signals);
      await Promise.race([this.ended, sleep(timeout, undefined, { ref: false })]);
    }
  }
}

/** The reason in the log of the server. */
async function lastError(log: FileHandle): Promise<string> {
  const { size } = await log.stat();
  const end = Buffer.alloc(Math.min(size, LOG_END_BYTES));
  await log.read({ buffer: end, position: size - end.length });
  const lines = end.toString().trim().split('\n');
  return lines.find((line) => /FATAL|PANIC/.test(line)) ?? lines.at(-1) ?? '';
}

/** A port below the ephemeral ones, which could be in use at the next start. */
export async function freePort(preferred?: number): Promise<number> {
  for (let port = preferred; ; port = 20_000 + Math.floor(Math.random() * 12_000))
    if (port && (await isFree(port))) return port;
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
