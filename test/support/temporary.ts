import { chmod, mkdtemp, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOM = 2 * 1024 ** 3;

/** TMPDIR, or where throw-away databases are fastest: in memory, if enough is free (cloning one took 14 ms there, on a disk 300). */
export async function temporaryBase(): Promise<string> {
  if (process.platform !== 'linux' || process.env.TMPDIR) return tmpdir();
  const memory = await statfs('/dev/shm').catch(() => undefined);
  return memory && memory.bavail * memory.bsize > ROOM ? '/dev/shm' : tmpdir();
}

export async function temporaryFolder(prefix: string): Promise<string> {
  const folder = await mkdtemp(join(await temporaryBase(), prefix));
  // Root runs the server as another account, which has to pass here.
  await chmod(folder, 0o755);
  return folder;
}
