import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Injectable } from '@nestjs/common';
import { Clock } from '../platform/config/clock';
import { Settings } from '../platform/config/settings';

const IN_USE_INTERVAL_MS = 60_000;
/** Folders of a process that was killed are deleted when they are unchanged for this time. */
const STALE_MS = 10 * 60_000;
/** Only these folders are deleted, because BUILD_DIR can contain other files. */
const NAME = /^gamewharf-(build|signature)-\d+\./;

/** Temporary folders in BUILD_DIR, one for each build that is processed or signed. */
@Injectable()
export class BuildFolders {
  private readonly parent: string;

  constructor(
    { BUILD_DIR }: Settings,
    private readonly clock: Clock,
  ) {
    // A common parent for all builds could belong to another user of the machine.
    this.parent = BUILD_DIR ?? tmpdir();
  }

  /** Runs the work with a new folder, which is deleted afterwards. `name`: unique. */
  async with<Result>(
    name: `${'build' | 'signature'}-${number}.${string}`,
    work: (folder: string) => Promise<Result>,
  ): Promise<Result> {
    const folder = join(this.parent, `gamewharf-${name}`);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    const touch = () => void utimes(folder, new Date(), new Date()).catch(() => undefined);
    const timer = setInterval(touch, IN_USE_INTERVAL_MS).unref();
    try {
      return await work(folder);
    } finally {
      clearInterval(timer);
      await rm(folder, { recursive: true, force: true }).catch(() => undefined);
    }
  }

  /** Deletes the folders of processes that were killed. */
  async deleteStale(): Promise<void> {
    const names = await readdir(this.parent).catch(() => []);
    for (const name of names.filter((one) => NAME.test(one))) {
      const path = join(this.parent, name);
      const { mtimeMs } = await stat(path).catch(() => ({ mtimeMs: Infinity }));
      if (this.clock.now() - mtimeMs > STALE_MS)
        // In a shared folder, it can belong to another user.
        await rm(path, { recursive: true, force: true }).catch(() => undefined);
    }
  }
}
