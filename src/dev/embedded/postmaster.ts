import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The process that started a server and stops it. */
export interface Owner {
  mode: string;
  pid: number;
  servingAt: string;
}

/** The process that a cluster's postmaster.pid names. */
export interface Postmaster {
  pid: number;
  port: string;
  isReady: boolean;
  /** Undefined: this is another program, which now has the PID of a server that was killed. */
  owner?: Owner;
}

/** The setting by which other processes find the owner: they read it in the arguments of the server. */
export const ownerSetting = ({ mode, pid, servingAt }: Owner) => ({
  'gamewharf.owner': [mode, pid, servingAt].join(','),
});

export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  if (!text) return undefined;
  const [pid = '', , , port = '', , , , status] = text.split('\n');
  const postmaster = { pid: Number(pid), port, isReady: status?.trim() === 'ready' };
  const settings = (await commandLine(pid)).split(`postgres -D ${cluster} `)[1];
  if (settings === undefined) return postmaster;
  const [mode = '', owner = pid, servingAt = ''] =
    /gamewharf\.owner=(\S*)/.exec(settings)?.[1]?.split(',') ?? [];
  return { ...postmaster, owner: { mode, pid: Number(owner), servingAt } };
}

async function commandLine(pid: string): Promise<string> {
  try {
    if (process.platform === 'linux')
      return (await readFile(`/proc/${pid}/cmdline`, 'utf8')).replaceAll('\0', ' ');
    return (await promisify(execFile)('ps', ['-ww', '-o', 'args=', '-p', pid])).stdout;
  } catch {
    return '';
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
