import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { chmod, readFile, rename } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import type { Account } from './account';
import { program } from './binaries';
import { serverEnvironment, unlessMissing } from './data-folder';

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

/** A server process started by this process. It keeps running unless it is stopped. */
export class ServerProcess {
  private exited = false;

  private constructor(
    private readonly child: ChildProcess,
    private readonly log: string,
  ) {
    const ended = () => (this.exited = true);
    child.once('exit', ended).once('error', ended).unref();
  }

  static async start({ native, cluster, account, ...plan }: ServerPlan): Promise<ServerProcess> {
    // PostgreSQL rejects the permissions that a copy or a backup may have.
    await chmod(cluster, 0o700);
    await rename(plan.log, `${plan.log}.1`).catch(unlessMissing);
    const log = openSync(plan.log, 'a', 0o600);
    const settings = { ...plan.settings, ...FIXED_SETTINGS, port: String(plan.port) };
    const options = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
    try {
      const child = spawn(program(native, 'postgres'), ['-D', cluster, ...options], {
        uid: account?.uid,
        gid: account?.gid,
        cwd: '/',
        // Ctrl-C signals the whole process group, but the app must drain before the server stops.
        detached: true,
        stdio: ['ignore', log, log],
        env: {
          ...serverEnvironment(),
          ...(plan.unrelatedPid && { PG_GRANDPARENT_PID: String(plan.unrelatedPid) }),
        },
      });
      return new ServerProcess(child, plan.log);
    } finally {
      closeSync(log);
    }
  }

  /** The reason why it ended, from its log, or undefined if it runs. */
  async failure(): Promise<string | undefined> {
    if (!this.exited) return undefined;
    const lines = (await readFile(this.log, 'utf8')).trim().split('\n');
    return lines.find((line) => /FATAL|PANIC/.test(line)) ?? lines.at(-1);
  }

  abandon(): void {
    if (!this.exited) this.child.kill('SIGINT');
  }
}

interface PostmasterPid {
  /** 0: the file is being written. */
  pid: number;
  port: number;
  /** Whether it accepts connections. */
  ready: boolean;
}

export async function readPostmasterPid(cluster: string): Promise<PostmasterPid | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(unlessMissing);
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]) || 0, port: Number(lines[3]) || 0, ready: lines[7]?.trim() === 'ready' };
}

/** Whether the process is a server of this cluster, and not another program with the same PID. */
export async function isServerOf(cluster: string, pid: number): Promise<boolean> {
  try {
    if (process.platform === 'linux') {
      const words = (await readFile(`/proc/${pid}/cmdline`, 'utf8')).split('\0');
      return basename(words[0] ?? '') === 'postgres' && words.includes(cluster);
    }
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'args=', '-p', String(pid)]);
    return stdout.includes(`postgres -D ${cluster}`);
  } catch {
    return false;
  }
}

/** A fast shutdown, then an immediate one, then SIGKILL. Committed data is safe in each case. */
export async function stopServer(cluster: string, pid: number): Promise<void> {
  const steps: [NodeJS.Signals, number][] = [
    ['SIGINT', 2_200],
    ['SIGQUIT', 900],
    ['SIGKILL', 300],
  ];
  for (const [signal, timeout] of steps) {
    if (!signalled(pid, signal)) return;
    for (const deadline = Date.now() + timeout; Date.now() < deadline; await sleep(10)) {
      if (!signalled(pid, 0)) return;
      // A zombie keeps its PID, so the missing file shows that it has ended.
      if (!(await readPostmasterPid(cluster))) return sleep(50);
    }
  }
}

/** False if the process doesn't exist. */
export function signalled(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Below the ephemeral ports, one of which could be in use at the next start. */
export async function freePort(preferred?: number): Promise<number> {
  for (let port = preferred; ; port = undefined) {
    port ??= 20_000 + Math.floor(Math.random() * 12_000);
    if (await isFree(port)) return port;
  }
}

function isFree(port: number): Promise<boolean> {
  const probe = createServer();
  return new Promise((resolve) => {
    probe.once('error', () => resolve(false));
    probe.listen({ port, host: '127.0.0.1', exclusive: true }, () => probe.close(() => resolve(true)));
  });
}
