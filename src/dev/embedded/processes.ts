import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { basename } from 'node:path';
import { promisify } from 'node:util';

/** Whether the process is a server of this cluster, and not another program with the same PID. */
export async function isServerProcess(cluster: string, pid: number): Promise<boolean> {
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

/** False if the process doesn't exist; true also for a process of another account. */
export function isSignaled(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(pid, signal);
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
