import { chmod, cp, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { OperatorError } from '../../platform/errors/operator-error';
import { isSignaled } from '../embedded/postmaster';

const PREFIX = 'gamewharf-mock-';
const PID_FILE = 'mock.pid';

/** The temporary folder of a mock, with its database. */
export class MockFolder {
  private constructor(readonly path: string) {}

  /** A new folder, with a copy of the template's data folder if there is one. Deletes folders that killed mocks have left. */
  static async create(template?: string): Promise<MockFolder> {
    const path = await createFolder();
    // Root runs PostgreSQL as another account, which needs access.
    await chmod(path, 0o755);
    await writeFile(join(path, PID_FILE), String(process.pid));
    if (template) await cp(template, join(path, 'data'), { recursive: true, preserveTimestamps: true });
    return new MockFolder(path);
  }

  async remove(): Promise<void> {
    await rm(this.path, { recursive: true, force: true, maxRetries: 5 });
  }
}

async function createFolder(): Promise<string> {
  try {
    await deleteAbandoned();
    return await mkdtemp(join(tmpdir(), PREFIX));
  } catch (error) {
    throw new OperatorError(
      `No folder can be created in ${tmpdir()} (${(error as NodeJS.ErrnoException).code}). Set TMPDIR to a folder that this user can write to.`,
    );
  }
}

async function deleteAbandoned(): Promise<void> {
  const names = (await readdir(tmpdir())).filter((name) => name.startsWith(PREFIX));
  await Promise.all(
    names.map(async (name) => {
      const path = join(tmpdir(), name);
      const pid = Number(await readFile(join(path, PID_FILE), 'utf8').catch(() => ''));
      // The file is missing: another mock is starting, or the folder is not ours.
      if (pid > 0 && !(await isRunning(pid)))
        await rm(path, { recursive: true, force: true }).catch(() => undefined);
    }),
  );
}

const isRunning = async (pid: number) => isSignaled(pid, 0) && !(await isDefunct(pid));

/** Many containers have no process that waits for killed ones, so these stay in the list of processes. */
async function isDefunct(pid: number): Promise<boolean> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8').catch(() => '');
  return stat.slice(stat.lastIndexOf(')')).startsWith(') Z');
}
