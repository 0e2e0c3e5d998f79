import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import {
  chmod,
  chown,
  lstat,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  realpath,
  rename,
  rm,
  symlink,
  writeFile,
} from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../platform/errors/operator-error';
import { createdSecret } from '../../platform/config/stored-secrets';
import type { Account } from './account';
import { program } from './binaries';
import { isSignaled } from './postmaster';

const MAJOR_VERSION = '18';
const PASSWORD = 'postgres-password';
const INIT_PREFIX = 'postgres.init-';

interface InitPlan {
  native: string;
  account: Account | undefined;
  /** The server's own. They also apply while its data is created. */
  settings: Record<string, string>;
  signal: AbortSignal;
}

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
    await mkdir(dataDir, { recursive: true });
    return new DataFolder(await realpath(dataDir));
  }

  /** The path of the cluster; undefined before the first start. */
  async cluster(): Promise<string | undefined> {
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
        ? `The database in ${cluster} was written by PostgreSQL ${version.trim()}, and this Gamewharf contains version ` +
            `${MAJOR_VERSION}: move it with pg_dump, or set DATA_DIR to another folder.`
        : `${cluster} isn't a Gamewharf database: move it to another place, or set DATA_DIR to another folder.`,
    );
  }

  /**
   * Creates the cluster in a temporary folder and renames it, so that an incomplete one is never found. `home`: the data
   * folder, or the folder for the data of data folders that the account cannot reach.
   */
  async createCluster(home: string, plan: InitPlan): Promise<string> {
    for (const name of await readdir(this.path))
      if (name.startsWith(INIT_PREFIX) && !isOfRunningProcess(name)) await removeWork(join(this.path, name));
    const own = home === this.path ? home : await mkdtemp(join(home, 'data-'));
    const work = join(own, `${INIT_PREFIX}${process.pid}`);
    const target = join(own, 'postgres');
    try {
      if (own !== this.path) {
        await chmod(own, 0o755);
        await writeFile(join(own, 'belongs-to'), `${this.path}\n`);
      }
      await mkdir(work, { mode: 0o700 });
      const passwordFile = join(work, 'password');
      await writeFile(passwordFile, createdSecret(this.path, PASSWORD), { mode: 0o600 });
      const { account } = plan;
      if (account) for (const path of [work, passwordFile]) await chown(path, account.uid, account.gid);
      await initdb(join(work, 'data'), passwordFile, plan);
      await rename(join(work, 'data'), target);
      if (own !== this.path) await symlink(target, this.link);
    } catch (error) {
      if (own !== this.path) await rm(own, { recursive: true, force: true });
      // Another process was faster.
      if (!['EEXIST', 'ENOTEMPTY'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error;
    } finally {
      await removeWork(work);
    }
    return realpath(this.link);
  }

  async password(): Promise<string> {
    const file = join(this.path, PASSWORD);
    const password = await readFile(file, 'utf8').catch(({ code }: NodeJS.ErrnoException) => {
      throw new OperatorError(
        `The password of the database in ${file} cannot be read (${code}): restore it from a backup, start this command as ` +
          'the account that started Gamewharf, or set DATABASE_URL.',
      );
    });
    return password.trim();
  }

  /** The app connects as an ordinary role, so that SQL injection cannot read files. */
  async rolePassword(): Promise<string> {
    const hmac = createHmac('sha256', await this.password());
    return hmac.update('gamewharf').digest('base64url');
  }

  async writeUrl(url: string): Promise<void> {
    if ((await this.url()) !== url) await writeFile(this.urlFile, url, { mode: 0o600 });
  }

  /** The port of the last start, so that URLs stay valid. */
  async lastPort(): Promise<number | undefined> {
    const url = await this.url();
    return url && URL.canParse(url) ? Number(new URL(url).port) : undefined;
  }

  /** The URL of the last start. */
  url(): Promise<string | undefined> {
    return readFile(this.urlFile, 'utf8').catch(unlessMissing);
  }
}

async function initdb(
  data: string,
  passwordFile: string,
  { native, account, settings, signal }: InitPlan,
): Promise<void> {
  const options = {
    pgdata: data,
    username: 'postgres',
    pwfile: passwordFile,
    auth: 'scram-sha-256',
    // Sort order and case must not depend on the locales of the machine.
    encoding: 'UTF8',
    locale: 'C',
    'locale-provider': 'builtin',
    'builtin-locale': 'C.UTF-8',
  };
  const given = [
    ...Object.entries(options).map(([name, value]) => `--${name}=${value}`),
    ...Object.entries(settings).map(([name, value]) => `--set=${name}=${value}`),
    '--no-instructions',
    ...(settings.fsync === 'off' ? ['--no-sync'] : []),
  ];
  try {
    const run = { uid: account?.uid, gid: account?.gid, cwd: '/', env: serverEnvironment(), signal };
    await promisify(execFile)(program(native, 'initdb'), given, run);
  } catch (error) {
    if (signal.aborted) throw error;
    const { stderr = '', message } = error as Error & { stderr?: string };
    const reason = stderr.split('\n').find((line) => /error:/i.test(line)) ?? message.split('\n')[0];
    throw new OperatorError(
      `PostgreSQL could not create its data in ${resolve(data, '..', '..')} (${reason}): ` +
        'set DATA_DIR to another folder, or DATABASE_URL to a PostgreSQL server.',
    );
  }
}

/** The environment of the server: no secrets, and no variables that change its settings. */
export const serverEnvironment = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH, LC_ALL: 'C' });

/** Its name ends with the ID of the process that creates it. */
function isOfRunningProcess(work: string): boolean {
  const pid = Number(work.slice(INIT_PREFIX.length));
  return pid !== process.pid && isSignaled(pid, 0);
}

/** May fail while an initdb of a killed parent still writes here; the next start tries again. */
async function removeWork(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }).catch(() => undefined);
}

export const unlessMissing = (error: NodeJS.ErrnoException) => {
  if (error.code !== 'ENOENT') throw error;
  return undefined;
};
