import { ChildProcess, execFile, spawn } from 'node:child_process';
import { closeSync, openSync } from 'node:fs';
import { chmod, open, readFile, rename, rm, stat } from 'node:fs/promises';
import { createServer } from 'node:net';
import { basename, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { promisify } from 'node:util';
import { Account } from './account';
import { program } from './binaries';
import { unlessMissing } from './data-folder';
import { serverEnvironment } from './initdb';

const LOG_LIMIT = 10 * 1024 * 1024;

interface ServerPlan {
  native: string;
  cluster: string;
  account: Account | undefined;
  port: number;
  log: string;
  settings: Record<string, string>;
  /** A pid in postmaster.pid that another program has now: PostgreSQL ignores it if it is its ancestor's. */
  strangerPid?: number;
}

interface PostmasterPid {
  /** 0: the file is incomplete. */
  pid: number;
  port: number;
  /** The status of a running server. */
  ready: boolean;
}

/** A server process that this process started. It keeps running unless it is stopped. */
export class ServerProcess {
  private exited = false;

  private constructor(
    private readonly child: ChildProcess,
    private readonly plan: ServerPlan,
    private readonly logStart: number,
  ) {
    const ended = () => (this.exited = true);
    child.once('exit', ended).once('error', ended).unref();
  }

  static async start(plan: ServerPlan): Promise<ServerProcess> {
    const { native, cluster, account } = plan;
    // PostgreSQL rejects the permissions that a copy or a backup may have.
    await chmod(cluster, 0o700);
    const logStart = await rotateLog(plan.log);
    const log = openSync(plan.log, 'a', 0o600);
    try {
      const child = spawn(program(native, 'postgres'), ['-D', cluster, ...serverOptions(plan)], {
        ...(account && { uid: account.uid, gid: account.gid }),
        cwd: '/',
        // Ctrl-C signals the whole process group, but the application must drain before the server stops.
        detached: true,
        stdio: ['ignore', log, log],
        env: {
          ...serverEnvironment(),
          ...(plan.strangerPid && { PG_GRANDPARENT_PID: String(plan.strangerPid) }),
        },
      });
      return new ServerProcess(child, plan, logStart);
    } finally {
      closeSync(log);
    }
  }

  /** Why it ended, from its log; undefined: it runs. */
  async failure(): Promise<string | undefined> {
    if (!this.exited) return undefined;
    const lines = (await readFrom(this.plan.log, this.logStart)).trim().split('\n');
    const causes = lines.filter(
      (line) => /FATAL|PANIC/.test(line) && !/the database system is|terminating/.test(line),
    );
    return causes[0] ?? lines.at(-1) ?? 'no reason given';
  }

  abandon(): void {
    if (!this.exited) this.child.kill('SIGINT');
  }
}

const fixedSettings = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  password_encryption: 'scram-sha-256',
  timezone: 'UTC',
  log_timezone: 'UTC',
  lc_messages: 'C',
  // Details and statements of errors may hold personal data.
  log_error_verbosity: 'terse',
  log_min_error_statement: 'panic',
};

function serverOptions({ port, settings }: ServerPlan): string[] {
  const all = Object.entries({ ...settings, ...fixedSettings, port: String(port) });
  return all.flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

export async function readPostmasterPid(cluster: string): Promise<PostmasterPid | undefined> {
  const file = join(cluster, 'postmaster.pid');
  const text = await readFile(file, 'utf8').catch(unlessMissing);
  if (text === undefined) return undefined;
  const lines = text.split('\n');
  return { pid: Number(lines[0]) || 0, port: Number(lines[3]) || 0, ready: lines[7]?.trim() === 'ready' };
}

/** Removes an empty postmaster.pid, left by a full disk, which keeps PostgreSQL from starting. A recent one is being written. */
export async function removeBrokenPid(cluster: string): Promise<void> {
  const file = join(cluster, 'postmaster.pid');
  const age = Date.now() - ((await stat(file).catch(unlessMissing))?.mtimeMs ?? 0);
  if (age > 2_000) await rm(file, { force: true });
}

/** Whether the process is a server of this cluster, and not another program with the same pid. */
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
  for (const [signal, timeout] of [
    ['SIGINT', 2_200],
    ['SIGQUIT', 900],
    ['SIGKILL', 300],
  ] as const) {
    if (!signalled(pid, signal) || (await isGone(cluster, pid, timeout))) return;
  }
}

async function isGone(cluster: string, pid: number, timeout: number): Promise<boolean> {
  const deadline = Date.now() + timeout;
  while (Date.now() < deadline) {
    if (!signalled(pid, 0)) return true;
    // A zombie keeps its pid: then the missing file shows that it has ended.
    if (!(await readPostmasterPid(cluster))) return sleep(50, true);
    await sleep(10);
  }
  return false;
}

/** False if the process doesn't exist. */
export function signalled(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch {
    return false;
  }
}

/** Below the ports of outgoing connections, one of which could use the port at the next start. */
export async function freePort(preferred?: number): Promise<number> {
  if (preferred && (await isFree(preferred))) return preferred;
  for (;;) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
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

async function rotateLog(path: string): Promise<number> {
  const size = (await stat(path).catch(unlessMissing))?.size ?? 0;
  if (size < LOG_LIMIT) return size;
  await rename(path, `${path}.1`);
  return 0;
}

async function readFrom(path: string, start: number): Promise<string> {
  const handle = await open(path, 'r');
  try {
    const buffer = Buffer.alloc(16_384);
    const { bytesRead } = await handle.read(buffer, 0, buffer.length, start);
    return buffer.toString('utf8', 0, bytesRead);
  } finally {
    await handle.close();
  }
}
