import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { chmod, lstat, mkdir, realpath, stat, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../platform/config/operator-error';

const execute = promisify(execFile);

export interface Account {
  name: string;
  uid: number;
  gid: number;
}

const isRoot = () => process.geteuid?.() === 0;

/** The account that runs PostgreSQL, which can't run as root; undefined: the current one. */
export async function serverAccount(names: string[]): Promise<Account | undefined> {
  if (!isRoot()) return undefined;
  const id = async (flag: string, name: string) => Number((await execute('id', [flag, name])).stdout);
  for (const name of names) {
    const account = await Promise.all([id('-u', name), id('-g', name)]).catch(() => undefined);
    if (account?.[0]) return { name, uid: account[0], gid: account[1] };
  }
  throw new OperatorError(
    `PostgreSQL does not run as root, and this machine has no account named ${names.join(' or ')} to run it as: ` +
      'start Gamewharf as an ordinary account, or set DATABASE_URL to a PostgreSQL server.',
  );
}

/** The owner of an existing cluster runs its server. A cluster copied by root gets its owner back. */
export async function clusterAccount(cluster: string, names: string[]): Promise<Account | undefined> {
  if (!isRoot()) return undefined;
  const { uid, gid } = await stat(cluster);
  if (uid !== 0) return { name: `with uid ${uid}`, uid, gid };
  const account = (await serverAccount(names))!;
  await execute('chown', ['-R', `${account.uid}:${account.gid}`, cluster]);
  return account;
}

/** Creates a folder. Other accounts can enter folders that root creates, whatever the umask. */
export function makeFolder(path: string): void {
  const umask = process.umask();
  if (isRoot()) process.umask(0o022);
  try {
    mkdirSync(path, { recursive: true });
  } finally {
    process.umask(umask);
  }
}

/** Whether the account can enter this folder and all folders above it. */
export async function canReach(account: Account, folder: string): Promise<boolean> {
  for (let path = await realpath(folder); ; path = dirname(path)) {
    const { uid, gid, mode } = await stat(path);
    const pass = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if (!(mode & pass)) return false;
    if (path === dirname(path)) return true;
  }
}

/** A folder for the data that the account can access: the data folder, or one named after it in a fallback folder. */
export async function reachableHome(
  dataDir: string,
  account: Account | undefined,
  shelters: string[],
): Promise<string> {
  if (!account || (await canReach(account, dataDir))) return dataDir;
  const name = createHash('sha256').update(dataDir).digest('hex').slice(0, 12);
  const home = join(await shelter(account, shelters), name);
  await mkdir(home, { recursive: true });
  await chmod(home, 0o755);
  await writeFile(join(home, 'belongs-to'), `${dataDir}\n`);
  return home;
}

/** For root only: a folder outside the data folder that no other user can have created. */
export async function shelter(account: Account, shelters: string[]): Promise<string> {
  for (const path of shelters) {
    try {
      makeFolder(path);
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
