import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, realpath } from 'node:fs/promises';
import { rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../platform/errors/operator-error';
import { createdSecret } from '../../platform/config/stored-secrets';
import { type Account, processOptions } from './account';

const MAJOR_VERSION = '18';
const PASSWORD_FILE = 'postgres-password';
const UNFINISHED = 'postgres.init-';

interface InitPlan {
  native: string;
  account: Account | undefined;
  /** The server's own settings, which also apply while its data is created. */
  settings: Record<string, string>;
  signal: AbortSignal | undefined;
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
    const cluster = await realpath(this.link);
    const version = (await readFile(join(cluster, 'PG_VERSION'), 'utf8').catch(unlessMissing))?.trim();
    if (version === MAJOR_VERSION) return cluster;
    throw new OperatorError(
      version
        ? `The database in ${cluster} was written by PostgreSQL ${version}, and this Gamewharf contains version ` +
            `${MAJOR_VERSION}: move it with pg_dump, or set DATA_DIR to another folder.`
        : `${cluster} isn't a Gamewharf database: move it to another place, or set DATA_DIR to another folder.`,
    );
  }

  /**
   * Creates the cluster in a temporary folder, so that an incomplete one is never found. `home`: the data folder, or the
   * folder for the data of data folders that the account cannot reach.
   */
  async createCluster(home: string, plan: InitPlan): Promise<void> {
    const isElsewhere = home !== this.path;
    const work = await mkdtemp(join(home, isElsewhere ? 'data-' : UNFINISHED));
    const [data, passwordFile] = [join(work, 'postgres'), join(work, 'password')];
    try {
      await chmod(work, 0o755);
      await mkdir(data, { mode: 0o700 });
      await writeFile(passwordFile, this.password(), { mode: 0o600 });
      if (plan.account)
        for (const path of [data, passwordFile]) await chown(path, plan.account.uid, plan.account.gid);
      await initdb(data, passwordFile, plan);
      await rm(passwordFile);
      if (isElsewhere) return await symlink(data, this.link);
      await rename(data, this.link);
    } catch (error) {
      await remove(work);
      // If there is a cluster, a concurrent start has made it.
      if (!(await this.cluster())) throw error;
    }
  }

  /** Removes the folders that killed or slower starts have left. */
  async removeUnfinished(): Promise<void> {
    const names = (await readdir(this.path)).filter((name) => name.startsWith(UNFINISHED));
    await Promise.all(names.map((name) => remove(join(this.path, name))));
  }

  password(): string {
    return createdSecret(this.path, PASSWORD_FILE);
  }

  /** The app connects as an ordinary role, so that SQL injection cannot read files. */
  urlAt(port: number): string {
    const password = createHmac('sha256', this.password()).update('gamewharf').digest('base64url');
    return `postgresql://gamewharf:${password}@127.0.0.1:${port}/gamewharf`;
  }

  async writeUrl(url: string): Promise<void> {
    if ((await this.url())?.href !== url) await writeFile(this.urlFile, url, { mode: 0o600 });
  }

  /** The URL of the last start. */
  async url(): Promise<URL | undefined> {
    const url = await readFile(this.urlFile, 'utf8').catch(unlessMissing);
    return url && URL.canParse(url) ? new URL(url) : undefined;
  }
}

async function initdb(
  data: string,
  passwordFile: string,
  { native, account, settings, signal }: InitPlan,
): Promise<void> {
  const options = [
    `--pgdata=${data}`,
    '--username=postgres',
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    // Sort order and case must not depend on the locales of the machine.
    '--encoding=UTF8',
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--no-instructions',
    ...(settings.fsync === 'off' ? ['--no-sync'] : []),
    ...Object.entries(settings).map(([name, value]) => `--set=${name}=${value}`),
  ];
  try {
    await promisify(execFile)(join(native, 'bin', 'initdb'), options, { ...processOptions(account), signal });
  } catch (error) {
    if (signal?.aborted) throw error;
    const { stderr = '', message } = error as Error & { stderr?: string };
    const reason = stderr.split('\n').find((line) => /error:/i.test(line)) ?? message.split('\n')[0];
    throw new OperatorError(
      `PostgreSQL could not create its data in ${data} (${reason}): ` +
        'set DATA_DIR to another folder, or DATABASE_URL to a PostgreSQL server.',
    );
  }
}

/** May fail while an initdb of a killed parent still writes here; the next start tries again. */
async function remove(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }).catch(() => undefined);
}

export const unlessMissing = (error: NodeJS.ErrnoException) => {
  if (error.code !== 'ENOENT') throw error;
  return undefined;
};
