import { readdir, readFile } from 'node:fs/promises';
import { until } from '../../test/support/time';

/** A process and its descendants, parents first. */
export async function listFamily(pid: number): Promise<number[]> {
  const children = new Map<number, number[]>();
  for (const name of await readdir('/proc')) {
    if (!/^\d+$/.test(name)) continue;
    const status = await readStatus(Number(name));
    if (status) children.set(status.parent, [...(children.get(status.parent) ?? []), Number(name)]);
  }
  const family = [pid];
  for (const member of family) family.push(...(children.get(member) ?? []));
  return family;
}

/** Parents first, so that they don't notice the signals to their children. */
export function signal(pids: number[], name: NodeJS.Signals): void {
  for (const pid of pids) {
    try {
      process.kill(pid, name);
    } catch {
      // It has already ended.
    }
  }
}

/** Kills a process and its descendants at once, so that none has time to save anything for another. */
export async function killFamily(pid: number): Promise<void> {
  signal([pid], 'SIGSTOP');
  const family = await listFamily(pid);
  signal(family, 'SIGSTOP');
  signal(family, 'SIGKILL');
  await until(async () => (await Promise.all(family.map(isRunning))).every((running) => !running));
}

/** The resident memory of a process. */
export async function readMemoryBytes(pid: number): Promise<number> {
  const [, pages] = (await readFile(`/proc/${pid}/statm`, 'utf8')).split(' ');
  return Number(pages) * 4096;
}

async function isRunning(pid: number): Promise<boolean> {
  const status = await readStatus(pid);
  // The process may be a zombie whose parent hasn't waited for it.
  return status !== undefined && status.state !== 'Z' && status.state !== 'X';
}

async function readStatus(pid: number): Promise<{ state: string; parent: number } | undefined> {
  const text = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  // The name of the process precedes its state, and may contain any character.
  const [state, parent] = text.slice(text.lastIndexOf(')') + 2).split(' ');
  return state && parent ? { state, parent: Number(parent) } : undefined;
}
