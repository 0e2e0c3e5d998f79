import { execFile } from 'node:child_process';
import { chmod, chown, readdir, realpath, stat } from 'node:fs/promises';
import { dirname, join, relative, sep } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../platform/config/operator-error';

export interface Account {
  name: string;
  uid: number;
  gid: number;
}

export const isRoot = () => process.geteuid?.() === 0;

/** The account that runs PostgreSQL, which doesn't run as root; undefined: our own. */
export async function serverAccount(names: string[]): Promise<Account | undefined> {
  if (!isRoot()) return undefined;
  for (const name of names) {
    const account = await lookUp(name);
    if (account && account.uid !== 0) return account;
  }
  throw new OperatorError(
    `PostgreSQL does not run as root, and this machine has no account named ${names.join(' or ')} to run it as: ` +
      'start Gamewharf as an ordinary account, or set DATABASE_URL to a PostgreSQL server.',
  );
}

async function lookUp(name: string): Promise<Account | undefined> {
  const id = async (flag: string) => Number((await promisify(execFile)('id', [flag, name])).stdout.trim());
  try {
    return { name, uid: await id('-u'), gid: await id('-g') };
  } catch {
    return undefined;
  }
}

/** Whether the account may enter this folder and all folders above it. */
export async function canReach(account: Account, folder: string): Promise<boolean> {
  for (let path = await realpath(folder); ; path = dirname(path)) {
    const { uid, gid, mode } = await stat(path);
    const pass = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if (!(mode & pass)) return false;
    if (path === dirname(path)) return true;
  }
}

/** The owner of an existing cluster runs its server. A cluster that root restored gets an owner again. */
export async function clusterAccount(cluster: string, names: string[]): Promise<Account | undefined> {
  if (!isRoot()) return undefined;
  const { uid, gid } = await stat(cluster);
  if (uid === 0) {
    const account = await serverAccount(names);
    if (account) await chownTree(cluster, account);
    return account;
  }
  const usual = await serverAccount(names).catch(() => undefined);
  return usual?.uid === uid ? usual : { name: `with uid ${uid}`, uid, gid };
}

async function chownTree(path: string, account: Account): Promise<void> {
  await chown(path, account.uid, account.gid);
  for (const entry of await readdir(path, { withFileTypes: true })) {
    const inside = join(path, entry.name);
    if (entry.isDirectory()) await chownTree(inside, account);
    else if (entry.isFile()) await chown(inside, account.uid, account.gid);
  }
}

/** Lets others enter folders that we created, whatever the umask. Their files have their own modes. */
export async function letPass(first: string, last: string): Promise<void> {
  let path = first;
  await chmod(path, 0o755);
  for (const name of relative(first, last).split(sep).filter(Boolean)) {
    path = join(path, name);
    await chmod(path, 0o755);
  }
}
