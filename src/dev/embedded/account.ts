import { execFile } from 'node:child_process';
import { chmod, lstat, mkdir, stat } from 'node:fs/promises';
import { promisify } from 'node:util';
import { OperatorError } from '../../platform/errors/operator-error';

const execute = promisify(execFile);

export interface Account {
  name: string;
  uid: number;
  gid: number;
}

/** Options of a process of that account. Its environment has no secrets, and no variables that change PostgreSQL's settings. */
export const processOptions = (account: Account | undefined) => ({
  uid: account?.uid,
  gid: account?.gid,
  cwd: '/',
  env: { PATH: process.env.PATH, LC_ALL: 'C' },
});

/**
 * The account that runs PostgreSQL, which can't run as root; undefined: the current one. The owner of an existing
 * cluster runs its server. A cluster copied by root gets an owner.
 */
export async function serverAccount(names: string[], cluster?: string): Promise<Account | undefined> {
  if (process.geteuid?.() !== 0) return undefined;
  const id = async (flag: string, name: string) => (await execute('id', [flag, name])).stdout.trim();
  const { uid, gid } = cluster ? await stat(cluster) : { uid: 0, gid: 0 };
  if (uid !== 0) return { name: await id('-un', String(uid)).catch(() => `with uid ${uid}`), uid, gid };
  for (const name of names) {
    const ids = await Promise.all([id('-u', name), id('-g', name)]).catch(() => undefined);
    if (!ids) continue;
    const [uid, gid] = ids.map(Number) as [number, number];
    if (cluster) await execute('chown', ['-R', `${uid}:${gid}`, cluster]);
    return { name, uid, gid };
  }
  throw new OperatorError(
    `PostgreSQL does not run as root, and this machine has no account named ${names.join(' or ')} to run it as: ` +
      'start Gamewharf as an ordinary account, or set DATABASE_URL to a PostgreSQL server.',
  );
}

/** Whether the account can enter this folder and all folders above it. */
export const canReach = (account: Account | undefined, folder: string): Promise<boolean> =>
  execute('test', ['-x', folder], processOptions(account)).then(
    () => true,
    () => false,
  );

/** The data folder, or a folder of root that the account can reach instead and that no other user can have created. */
export async function reachable(account: Account, dataDir: string, fallback: string): Promise<string> {
  if (await canReach(account, dataDir)) return dataDir;
  // The umask must not restrict the account's access.
  if (await mkdir(fallback, { recursive: true })) await chmod(fallback, 0o755);
  const { uid, mode } = await lstat(fallback);
  if (uid === 0 && !(mode & 0o022) && (await canReach(account, fallback))) return fallback;
  throw new OperatorError(
    `PostgreSQL runs as account ${account.name}, which cannot reach the data folder, and ${fallback} can't be used ` +
      'instead: set DATA_DIR to a folder that every account can reach.',
  );
}
