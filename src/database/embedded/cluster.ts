import { execFile } from 'node:child_process';
import { createHash, createHmac, randomBytes } from 'node:crypto';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  open,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  rmdir,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { dirname, join, parse, relative, resolve, sep } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../operator-error';
import { Account, canReach, isRoot, serverAccount } from './account';
import { program } from './binaries';

const MAJOR_VERSION = '18';
const INIT_PREFIX = 'postgres.init-';
const posix = process.platform !== 'win32';

interface ClusterPlan {
  native: string;
  account: Account | undefined;
  /** Whether it has to survive a power cut. */
  sync: boolean;
  signal: AbortSignal;
}

/** What the data folder holds for the database: DATA_DIR/postgres (or a link to it), a password, a URL, a log. */
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

  /** Where the cluster lies, or undefined before the first start. */
  async cluster(): Promise<string | undefined> {
    return asOperator(this.path, () => this.findCluster());
  }

  private async findCluster(): Promise<string | undefined> {
    const found = await lstat(this.link).catch(unlessMissing);
    if (!found) return undefined;
    const cluster = await realpath(this.link).catch(unlessMissing);
    if (!cluster) {
      throw new OperatorError(
        `The database of ${this.path} is gone: ${this.link} points to a folder that no longer exists. ` +
          `Restore it, or remove ${this.link} to start with an empty one.`,
      );
    }
    const { uid } = await stat(cluster);
    if (posix && !isRoot() && uid !== process.geteuid?.()) {
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

  /** Creates the cluster beside its final place and moves it there whole, so that it is never found half made. */
  async createCluster(home: string, plan: ClusterPlan): Promise<string> {
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
        // Data of a data folder that was deleted since: not ours to delete, nor to bring back.
        if (home !== this.path) await rename(target, `${target}.before-${Date.now()}`).catch(unlessMissing);
        await rename(join(work, 'data'), target);
        await syncFolder(home);
      } finally {
        await rm(work, { recursive: true, force: true, maxRetries: 5, retryDelay: 100 });
      }
      if (home !== this.path) await symlink(target, this.link);
      return realpath(target);
    });
  }

  /** Takes a cluster to a home that its account can reach, after the data folder was moved or closed. */
  async moveCluster(cluster: string, home: string): Promise<string> {
    const target = join(home, 'postgres');
    try {
      await rename(cluster, target);
    } catch (error) {
      throw new OperatorError(
        `PostgreSQL cannot reach its data in ${cluster}, and they could not be moved to ${target} ` +
          `(${(error as NodeJS.ErrnoException).code}): let every account pass the folders above them.`,
      );
    }
    await rm(this.link, { force: true });
    await symlink(target, this.link);
    return realpath(target);
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

  /** The application connects as an ordinary role: a hole in a query must not reach the files of the machine. */
  async applicationPassword(): Promise<string> {
    return createHmac('sha256', await this.password())
      .update('gamewharf')
      .digest('base64url');
  }

  async writeUrl(url: string): Promise<void> {
    if ((await readFile(this.urlFile, 'utf8').catch(unlessMissing)) !== url)
      await this.writeSecret(this.urlFile, url);
  }

  /** The port of the last start, so that addresses handed out stay true. */
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

/** A folder that the account can reach: the data folder itself, or else one named after it in a shelter. */
export async function reachableHome(
  folder: DataFolder,
  account: Account | undefined,
  shelters: string[],
): Promise<string> {
  if (!account || (await canReach(account, folder.path))) return folder.path;
  const name = createHash('sha256').update(folder.path).digest('hex').slice(0, 12);
  const home = join(await shelter(account, shelters), name);
  await mkdir(home, { recursive: true });
  await chmod(home, 0o755);
  await writeFile(join(home, 'belongs-to'), `${folder.path}\n`);
  return home;
}

/** What a start that was killed in the middle has left. */
export async function removeLeftovers(home: string): Promise<void> {
  for (const name of await readdir(home)) {
    if (name.startsWith(INIT_PREFIX)) await rm(join(home, name), { recursive: true, force: true });
  }
}

/** For root only: a folder outside the data folder which nobody else can have prepared. */
export async function shelter(account: Account, shelters: string[]): Promise<string> {
  for (const path of shelters) {
    try {
      const created = await mkdir(path, { recursive: true });
      if (created) await letPass(created, path);
      const { uid, mode } = await lstat(path);
      if (uid === 0 && !(mode & 0o022) && (await canReach(account, path))) return path;
    } catch {
      continue;
    }
  }
  throw new OperatorError(
    `PostgreSQL runs as account ${account.name}, which cannot reach the data folder, and no other place for the data ` +
      `was found (tried ${shelters.join(', ')}): set DATA_DIR to a folder that every account can reach.`,
  );
}

/** Who runs the server of an existing cluster: its owner. What was restored by root is given to an account again. */
export async function clusterAccount(cluster: string, names: string[]): Promise<Account | undefined> {
  if (!isRoot()) return undefined;
  const { uid, gid } = await stat(cluster);
  if (uid !== 0) return { name: `with uid ${uid}`, uid, gid };
  const account = await serverAccount(names);
  if (account) await chownTree(cluster, account);
  return account;
}

async function chownTree(path: string, account: Account): Promise<void> {
  await chown(path, account.uid, account.gid);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) await chownTree(inside, account);
    else if (entry.isFile()) await chown(inside, account.uid, account.gid);
  }
}

async function initdb(data: string, passwordFile: string, plan: ClusterPlan): Promise<void> {
  const { native, account, sync, signal } = plan;
  const options = [
    ['--pgdata', data],
    ['--username', 'postgres'],
    ['--pwfile', passwordFile],
    ['--auth', 'scram-sha-256'],
    // Neither order nor case of a text may depend on the locales of the machine.
    ['--encoding', 'UTF8'],
    ['--locale', 'C'],
    ['--locale-provider', 'builtin'],
    ['--builtin-locale', 'C.UTF-8'],
  ].map(([name, value]) => `${name}=${value}`);
  try {
    await promisify(execFile)(
      program(native, 'initdb'),
      [...options, '--no-instructions', ...(sync ? [] : ['--no-sync'])],
      {
        ...(account && { uid: account.uid, gid: account.gid }),
        cwd: parse(data).root,
        env: serverEnvironment(),
        windowsHide: true,
        signal,
      },
    );
  } catch (error) {
    if (signal.aborted) throw error;
    const { stderr, message } = error as Error & { stderr?: string };
    const reason = stderr?.split('\n').find((line) => line.includes('error:')) ?? message.split('\n')[0];
    throw new OperatorError(
      `PostgreSQL could not create its data in ${dirname(dirname(data))} (${reason}): ` +
        'set DATA_DIR to another folder, or DATABASE_URL to a PostgreSQL server.',
    );
  }
}

/** What the server gets to see of our environment: no secret, and nothing that would change its settings. */
export function serverEnvironment(): NodeJS.ProcessEnv {
  const kept = ['PATH', 'Path', 'SystemRoot', 'SYSTEMDRIVE', 'TEMP', 'TMP', 'USERPROFILE', 'APPDATA'];
  return { ...Object.fromEntries(kept.map((name) => [name, process.env[name]])), LC_ALL: 'C' };
}

// Folders that we made ourselves under a strict umask; the files inside have modes of their own.
async function letPass(first: string, last: string): Promise<void> {
  let path = first;
  await chmod(path, 0o755);
  for (const name of relative(first, last).split(sep).filter(Boolean)) {
    path = join(path, name);
    await chmod(path, 0o755);
  }
}

async function syncFolder(path: string): Promise<void> {
  if (!posix) return;
  const handle = await open(path, 'r');
  await handle.sync();
  await handle.close();
}

export const unlessMissing = (error: NodeJS.ErrnoException) => {
  if (error.code !== 'ENOENT') throw error;
  return undefined;
};

/** Turns the failures of a file system that its operator can put right into a sentence that says how. */
export async function asOperator<T>(path: string, work: () => Promise<T>): Promise<T> {
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
