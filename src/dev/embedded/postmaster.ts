import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';

/** The process that a cluster's postmaster.pid names. */
interface Postmaster {
  pid: number;
  port: string;
  isReady: boolean;
  /**
   * The ID of the process that started the server and stops it; undefined: the file names another program, which now has
   * the PID of a server that was killed.
   */
  owner?: number;
}

/** The setting by which other processes find the owner: they read it in the arguments of the server. */
export const OWNER_SETTING = 'gamewharf.owner';

export async function findPostmaster(cluster: string): Promise<Postmaster | undefined> {
  const text = await readFile(join(cluster, 'postmaster.pid'), 'utf8').catch(() => '');
  if (!text) return undefined;
  const [pid = '', , , port = '', , , , status = ''] = text.split('\n');
  const postmaster = { pid: Number(pid), port, isReady: status.trim() === 'ready' };
  const settings = (await commandLine(pid)).split(`postgres -D ${cluster} `)[1];
  if (settings === undefined) return postmaster;
  const owner = settings.split(`${OWNER_SETTING}=`)[1];
  // A server that was not started by Gamewharf owns itself.
  return { ...postmaster, owner: owner ? parseInt(owner) : postmaster.pid };
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
