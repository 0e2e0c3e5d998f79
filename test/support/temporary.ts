import { chmod, mkdtemp, statfs } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOM = 2 * 1024 ** 3;

/**
 * TMPDIR, or the fastest place for temporary databases: in memory, if enough is free, because cloning one on
 * a disk takes many times as long.
 */
export async function temporaryBase(): Promise<string> {
  if (process.platform !== 'linux' || process.env.TMPDIR) return tmpdir();
  const memory = await statfs('/dev/shm').catch(() => undefined);
  return memory && memory.bavail * memory.bsize > ROOM ? '/dev/shm' : tmpdir();
}

export async function temporaryFolder(prefix: string): Promise<string> {
  const folder = await mkdtemp(join(await temporaryBase(), prefix));
  // Root runs the server as another account, which needs access here.
  await chmod(folder, 0o755);
  return folder;
}
