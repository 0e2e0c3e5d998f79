import { createHmac, randomBytes } from 'node:crypto';
import {
  chown,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rmdir,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { OperatorError } from '../../platform/config/operator-error';
import { isRoot, letPass } from './account';
import { INIT_PREFIX, initdb, InitPlan, removeWork } from './initdb';

const MAJOR_VERSION = '18';

/** The database's part of the data folder: DATA_DIR/postgres (or a link to it), a password, a URL, a log. */
export class DataFolder {
  readonly log: string;
  readonly urlFile: string;
  private readonly link: string;
  private readonly passwordFile: string;

  private constructor(readonly path: string) {
    this.link = join(path, 'postgres');
    this.log = join(path, 'postgres.log');
    this.urlFile = join(path, 'database-url');
    this.passwordFile = join(path, 'postgres-password');
  }

  static async open(dataDir: string): Promise<DataFolder> {
    const path = resolve(dataDir);
    return asOperator(path, async () => {
      const created = await mkdir(path, { recursive: true });
      if (created && isRoot()) await letPass(created, path);
      return new DataFolder(await realpath(path));
    });
  }

  /** The path of the cluster; undefined before the first start. */
  async cluster(): Promise<string | undefined> {
    return asOperator(this.path, () => this.findCluster());
  }

  private async findCluster(): Promise<string | undefined> {
    const found = await lstat(this.link).catch(unlessMissing);
    if (!found) return undefined;
    const cluster = await realpath(this.link).catch(unlessMissing);
    if (!cluster) {
      throw new OperatorError(
        `The database of ${this.path} is missing: ${this.link} points to a folder that no longer exists. ` +
          `Restore it, or remove ${this.link} to start with an empty one.`,
      );
    }
    const { uid } = await stat(cluster);
    if (!isRoot() && uid !== process.geteuid?.()) {
      throw new OperatorError(
        `The database in ${cluster} belongs to another account (uid ${uid}): start Gamewharf as that account ` +
          'or as root, or set DATA_DIR to another folder.',
      );
    }
    const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(unlessMissing);
    if (version?.trim() === MAJOR_VERSION) return cluster;
    if (version) {
      throw new OperatorError(
        `The database in ${cluster} was written by PostgreSQL ${version.trim()}, and this Gamewharf brings ` +
          `${MAJOR_VERSION}: move it with pg_dump, or set DATA_DIR to another folder.`,
      );
    }
    if ((await readdir(cluster)).length === 0) return void (await rmdir(this.link));
    throw new OperatorError(
      `${cluster} holds something that is not a database of Gamewharf: move it away, or set DATA_DIR to another folder.`,
    );
  }

  /** Creates the cluster in a temporary folder and renames it, so that an incomplete one is never found. */
  async createCluster(home: string, plan: InitPlan): Promise<string> {
    return asOperator(home, async () => {
      const work = join(home, `${INIT_PREFIX}${randomBytes(4).toString('hex')}`);
      const target = join(home, 'postgres');
      try {
        await mkdir(work, { mode: 0o700 });
        const passwordFile = join(work, 'password');
        await writeFile(passwordFile, await this.password('create'), { mode: 0o600 });
        const { account } = plan;
        if (account) for (const path of [work, passwordFile]) await chown(path, account.uid, account.gid);
        await initdb(join(work, 'data'), passwordFile, plan);
        // Left over from a data folder that was deleted: keep the files, but do not use them.
        if (home !== this.path) await rename(target, `${target}.before-${Date.now()}`).catch(unlessMissing);
        await rename(join(work, 'data'), target);
        await syncFolder(home);
      } finally {
        await removeWork(work);
      }
      if (home !== this.path) await symlink(target, this.link);
      return realpath(target);
    });
  }

  async password(create?: 'create'): Promise<string> {
    const kept = await readFile(this.passwordFile, 'utf8').catch((error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT') return '';
      throw new OperatorError(
        `${this.passwordFile} cannot be read (${error.code}): start this command as the account that started Gamewharf, ` +
          'or set DATABASE_URL.',
      );
    });
    if (kept) return kept;
    if (!create) {
      throw new OperatorError(
        `The password of the database is missing: restore ${this.passwordFile} from a backup.`,
      );
    }
    const password = randomBytes(24).toString('base64url');
    await this.writeSecret(this.passwordFile, password);
    return password;
  }

  /** The application connects as an ordinary role, so that SQL injection could not read files. */
  async applicationPassword(): Promise<string> {
    return createHmac('sha256', await this.password())
      .update('gamewharf')
      .digest('base64url');
  }

  async writeUrl(url: string): Promise<void> {
    if ((await readFile(this.urlFile, 'utf8').catch(unlessMissing)) !== url)
      await this.writeSecret(this.urlFile, url);
  }

  /** The port of the last start, so that URLs stay valid. */
  async lastPort(): Promise<number | undefined> {
    const url = await readFile(this.urlFile, 'utf8').catch(unlessMissing);
    return url && URL.canParse(url) ? Number(new URL(url).port) : undefined;
  }

  private async writeSecret(file: string, text: string): Promise<void> {
    const fresh = `${file}.${randomBytes(4).toString('hex')}`;
    await asOperator(this.path, async () => {
      const handle = await open(fresh, 'wx', 0o600);
      await handle.writeFile(text);
      await handle.sync();
      await handle.close();
      await rename(fresh, file);
    });
  }
}

async function syncFolder(path: string): Promise<void> {
  const handle = await open(path, 'r');
  await handle.sync();
  await handle.close();
}

export const unlessMissing = (error: NodeJS.ErrnoException) => {
  if (error.code !== 'ENOENT') throw error;
  return undefined;
};

/** Explains file system errors that the operator can solve. */
async function asOperator<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const remedy = code && remedies[code];
    if (!remedy) throw error;
    throw new OperatorError(
      `The data folder ${path} ${remedy} (${code}): put that right, set DATA_DIR to another folder, ` +
        'or set DATABASE_URL to a PostgreSQL server.',
    );
  }
}

const remedies: Record<string, string> = {
  EACCES: 'cannot be written by this account',
  EPERM: 'cannot be written by this account',
  EROFS: 'is on a read-only file system',
  ENOSPC: 'is on a full disk',
  EDQUOT: 'is on a full disk',
  ENOTDIR: 'is not a folder',
  EEXIST: 'is not a folder',
  ENAMETOOLONG: 'has a name that is too long',
};
