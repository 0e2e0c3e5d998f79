import type { ClientBase, Pool } from 'pg';
import { OperatorError } from '../errors/operator-error';
import { classifyFault, isConnectionLost, isLockTimeout } from './sqlstates';

const MIN_VERSION = 15;
// Node's error codes for bad certificates and for servers that do not speak TLS.
const TLS = /TLS|SSL|CERT|SIGNATURE|INVALID_CA|EPROTO/;
const NO_TLS = /does not support SSL|SSL connection/;

/** What the operator can do about a failed connection, or undefined for an unknown problem. */
export function connectionProblem(url: string | undefined, error: unknown): OperatorError | undefined {
  const { hostname, port, pathname, username } = new URL(url ?? 'postgres://localhost');
  const where = `${hostname || 'localhost'}:${port || 5432}`;
  const cause = ((error as { driverError?: unknown }).driverError ?? error) as NodeJS.ErrnoException;
  const { code } = cause;
  if (code?.startsWith('28'))
    return new OperatorError(
      `The database at ${where} rejects ${username || 'this user'}: check the user and password in DATABASE_URL.`,
    );
  if (/^SASL: .* password must be /.test(cause.message))
    return new OperatorError(`The database at ${where} requires a password: add it to DATABASE_URL.`);
  if (code === '3D000')
    return new OperatorError(
      `There is no database ${pathname.slice(1)} at ${where}: create it, or change DATABASE_URL.`,
    );
  if (cause.syscall === 'open')
    return new OperatorError(
      `The file ${cause.path} in DATABASE_URL can't be read (${code}): create it, or change DATABASE_URL.`,
    );
  if ((code && TLS.test(code)) || NO_TLS.test(cause.message))
    return new OperatorError(
      `Can't connect to the database at ${where} over TLS (${code === 'EPROTO' ? code : cause.message}): check its certificate, and sslmode and sslrootcert in DATABASE_URL.`,
    );
  if (classifyFault(error) === 'unavailable')
    return new OperatorError(
      `The database at ${where} can't be reached (${code ?? 'no response'}): start it, or change DATABASE_URL.`,
    );
  return undefined;
}

/** The error of a command that may succeed when it is run again, or undefined for another error. */
export function temporaryProblem(error: unknown): OperatorError | undefined {
  if (isLockTimeout(error))
    return new OperatorError(
      'Another transaction, such as an import, has locked the same records: run the command again when it has ended.',
    );
  if (!isConnectionLost(error)) return undefined;
  const { code, message } = error as NodeJS.ErrnoException;
  return new OperatorError(
    `The connection to the database was lost (${code ?? message}). Uncommitted changes were rolled back: run the command again.`,
  );
}

/** Rejects an unsupported version of PostgreSQL. */
export async function requireSupportedServer(client: Pick<ClientBase | Pool, 'query'>): Promise<void> {
  const { rows } = await client.query<{ server_version_num: string }>('SHOW server_version_num');
  const major = Math.floor(Number(rows[0]!.server_version_num) / 10_000);
  if (major < MIN_VERSION)
    throw new OperatorError(`The database is PostgreSQL ${major}: use version ${MIN_VERSION} or newer.`);
}
