import { createHash } from 'node:crypto';
import { chmod, lstat, mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { OperatorError } from '../../platform/config/operator-error';
import { Account, canReach, letPass } from './account';
import { DataFolder } from './data-folder';

/** A folder that the account can reach: the data folder, or one named after it in a shelter. */
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

/** For root only: a folder outside the data folder that no other user can have created. */
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
