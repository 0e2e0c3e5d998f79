import { createHmac, randomBytes } from 'node:crypto';
import { chown, lstat, mkdir, readFile, realpath, rename, symlink, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { OperatorError } from '../../platform/config/operator-error';
import { keptSecret } from '../../platform/config/stored-secrets';
import { makeFolder } from './account';
import { INIT_PREFIX, initdb, type InitPlan, removeWork } from './initdb';

const MAJOR_VERSION = '18';
const PASSWORD = 'postgres-password';

/** The database's part of the data folder: DATA_DIR/postgres (or a link to it), a password, a URL, a log. */
export class DataFolder {
  readonly log: string;
  readonly urlFile: string;
  private readonly link: string;

  private constructor(readonly path: string) {
    this.link = join(path, 'postgres');
    this.log = join(path, 'postgres.log');
    this.urlFile = join(path, 'database-url');
  }

  static async open(dataDir: string): Promise<DataFolder> {
    const path = resolve(dataDir);
    return asOperator(path, async () => {
      makeFolder(path);
      return new DataFolder(await realpath(path));
    });
  }

  /** The path of the cluster; undefined before the first start. */
  async cluster(): Promise<string | undefined> {
    return asOperator(this.path, async () => {
      if (!(await lstat(this.link).catch(unlessMissing))) return undefined;
      const cluster = await realpath(this.link).catch(unlessMissing);
      if (!cluster)
        throw new OperatorError(
          `The database of ${this.path} is missing: ${this.link} points to a folder that no longer exists. ` +
            `Restore it, or remove ${this.link} to start with an empty one.`,
        );
      const version = await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(unlessMissing);
      if (version?.trim() === MAJOR_VERSION) return cluster;
      throw new OperatorError(
        version
          ? `The database in ${cluster} was written by PostgreSQL ${version.trim()}, and this Gamewharf brings ` +
              `${MAJOR_VERSION}: move it with pg_dump, or set DATA_DIR to another folder.`
          : `${cluster} holds something that is not a database of Gamewharf: move it away, or set DATA_DIR to another folder.`,
      );
    });
  }

  /** Creates the cluster in a temporary folder and renames it, so that an incomplete one is never found. */
  async createCluster(home: string, plan: InitPlan): Promise<string> {
    return asOperator(home, async () => {
      const work = join(home, `${INIT_PREFIX}${randomBytes(4).toString('hex')}`);
      const target = join(home, 'postgres');
      try {
        await mkdir(work, { mode: 0o700 });
        const passwordFile = join(work, 'password');
        await writeFile(passwordFile, keptSecret(this.path, PASSWORD), { mode: 0o600 });
        const { account } = plan;
        if (account) for (const path of [work, passwordFile]) await chown(path, account.uid, account.gid);
        await initdb(join(work, 'data'), passwordFile, plan);
        // Left over from a deleted data folder: the files are kept but not used.
        if (home !== this.path) await rename(target, `${target}.before-${Date.now()}`).catch(unlessMissing);
        await rename(join(work, 'data'), target);
      } finally {
        await removeWork(work);
      }
      if (home !== this.path) await symlink(target, this.link);
      return realpath(target);
    });
  }

  async password(): Promise<string> {
    const file = join(this.path, PASSWORD);
    const kept = await readFile(file, 'utf8').catch(({ code }: NodeJS.ErrnoException) => {
      throw new OperatorError(
        `The password of the database in ${file} cannot be read (${code}): restore it from a backup, start this command as ` +
          'the account that started Gamewharf, or set DATABASE_URL.',
      );
    });
    return kept.trim();
  }

  /** The app connects as an ordinary role, so that SQL injection cannot read files. */
  async applicationPassword(): Promise<string> {
    const hmac = createHmac('sha256', await this.password());
    return hmac.update('gamewharf').digest('base64url');
  }

  async writeUrl(url: string): Promise<void> {
    if ((await this.url()) === url) return;
    const fresh = `${this.urlFile}.${randomBytes(4).toString('hex')}`;
    await asOperator(this.path, async () => {
      await writeFile(fresh, url, { mode: 0o600, flag: 'wx' });
      await rename(fresh, this.urlFile);
    });
  }

  /** The port of the last start, so that URLs stay valid. */
  async lastPort(): Promise<number | undefined> {
    const url = await this.url();
    return url && URL.canParse(url) ? Number(new URL(url).port) : undefined;
  }

  private url(): Promise<string | undefined> {
    return readFile(this.urlFile, 'utf8').catch(unlessMissing);
  }
}

export const unlessMissing = (error: NodeJS.ErrnoException) => {
  if (error.code !== 'ENOENT') throw error;
  return undefined;
};

/** Adds a remedy to an error of the file system. */
async function asOperator<T>(path: string, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const { syscall, message } = error as NodeJS.ErrnoException;
    if (syscall === undefined) throw error;
    throw new OperatorError(
      `The data folder ${path} cannot be used (${message}): correct that, set DATA_DIR to another folder, ` +
        'or set DATABASE_URL to a PostgreSQL server.',
    );
  }
}
