import { execFile } from 'node:child_process';
import { readFile, realpath, stat } from 'node:fs/promises';
import { dirname } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../operator-error';

export interface Account {
  name: string;
  uid: number;
  gid: number;
}

export const isRoot = () => process.geteuid?.() === 0;

/** PostgreSQL refuses to run as root: the account that runs it instead, or undefined where we run it ourselves. */
export async function serverAccount(names: string[]): Promise<Account | undefined> {
  if (!isRoot()) return undefined;
  for (const name of names) {
    const account = (await fromPasswd(name)) ?? (await fromDirectory(name));
    if (account && account.uid !== 0) return account;
  }
  throw new OperatorError(
    `PostgreSQL does not run as root, and this machine has no account named ${names.join(' or ')} to run it as: ` +
      'start Gamewharf as an ordinary account, or set DATABASE_URL to a PostgreSQL server.',
  );
}

async function fromPasswd(name: string): Promise<Account | undefined> {
  const passwd = await readFile('/etc/passwd', 'utf8').catch(() => '');
  const [, , uid, gid] =
    passwd
      .split('\n')
      .find((line) => line.startsWith(`${name}:`))
      ?.split(':') ?? [];
  return uid && gid ? { name, uid: Number(uid), gid: Number(gid) } : undefined;
}

// Accounts that /etc/passwd does not list: LDAP, macOS.
async function fromDirectory(name: string): Promise<Account | undefined> {
  const id = async (flag: string) => Number((await promisify(execFile)('id', [flag, name])).stdout.trim());
  try {
    return { name, uid: await id('-u'), gid: await id('-g') };
  } catch {
    return undefined;
  }
}

/** Whether the account may walk to this folder: every folder above it, and itself, lets it pass. */
export async function canReach(account: Account, folder: string): Promise<boolean> {
  for (let path = await realpath(folder); ; path = dirname(path)) {
    const { uid, gid, mode } = await stat(path);
    const pass = uid === account.uid ? 0o100 : gid === account.gid ? 0o010 : 0o001;
    if (!(mode & pass)) return false;
    if (path === dirname(path)) return true;
  }
}
