import { execFile } from 'node:child_process';
import { readdir, rm } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { OperatorError } from '../../platform/config/operator-error';
import type { Account } from './account';
import { program } from './binaries';

export const INIT_PREFIX = 'postgres.init-';

export interface InitPlan {
  native: string;
  account: Account | undefined;
  /** The server's own. They also apply while its data is created. */
  settings: Record<string, string>;
  signal: AbortSignal;
}

export async function initdb(
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
    await promisify(execFile)(program(native, 'initdb'), given, {
      uid: account?.uid,
      gid: account?.gid,
      cwd: '/',
      env: serverEnvironment(),
      signal,
    });
  } catch (error) {
    if (signal.aborted) throw error;
    const { stderr = '', message } = error as Error & { stderr?: string };
    const reason = stderr.split('\n').find((line) => /error:/i.test(line)) ?? message.split('\n')[0];
    throw new OperatorError(
      `PostgreSQL could not create its data in ${dirname(dirname(data))} (${reason}): ` +
        'set DATA_DIR to another folder, or DATABASE_URL to a PostgreSQL server.',
    );
  }
}

/** The environment of the server: no secrets, and no variables that change its settings. */
export const serverEnvironment = (): NodeJS.ProcessEnv => ({ PATH: process.env.PATH, LC_ALL: 'C' });

/** Removes the files of a start that was killed. */
export async function removeLeftovers(home: string): Promise<void> {
  for (const name of await readdir(home))
    if (name.startsWith(INIT_PREFIX)) await removeWork(join(home, name));
}

/** May fail while an initdb of a killed parent still writes here; the next start tries again. */
export async function removeWork(path: string): Promise<void> {
  await rm(path, { recursive: true, force: true, maxRetries: 10, retryDelay: 50 }).catch(() => undefined);
}
