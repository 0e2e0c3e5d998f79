import { types } from 'node:util';
import { DatabaseError } from 'pg';
import { QueryFailedError } from 'typeorm';

/** The service isn't connected yet, lost its connection, or had no free one in time. */
export class NotConnected extends Error {}

/** There is no connection yet. Database waits for the first one, and logs that it does. */
export class NotStarted extends NotConnected {
  constructor() {
    super("The database isn't connected yet: hooks such as onModuleInit can't query it.");
  }
}

export class NoneFree extends NotConnected {
  constructor() {
    super('no connection was free in time');
  }
}

// The server rejects the user, its password or the name of the database, for example after the password was changed.
const REJECTED = /^(28|3D000)/;
// A retry may succeed: connection lost, server stopping or starting, out of connections, memory or disk, read-only
// standby, statement or lock timeout, deadlock, serialization failure.
const UNAVAILABLE = /^(08|53|57P0[1-5]|57014|55P03|25006|25P0[34]|40001|40P01|58)/;
const UNREACHABLE = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'ENOTFOUND',
  'EAI_AGAIN',
  'EHOSTUNREACH',
  'ENOENT',
]);
// These errors have no code. TypeORM releases the connection of a transaction as soon as it is lost.
const LOST_CONNECTION =
  /Driver not Connected|timeout exceeded when trying to connect|^timeout expired$|Query read timeout|Connection terminated|encountered a connection error|Client was closed|Cannot use a pool after calling end|query runner (was )?already released/i;

// The last message of a server before it closes the connection.
const CLOSING_SQLSTATE = /^(08|57P0)/;

/** Whether the connection is lost or doesn't respond, so that no further statement can be sent on it. */
export function isConnectionLost(error: unknown): boolean {
  const { code, message } = findCause(error);
  if (typeof code === 'string' && (UNREACHABLE.has(code) || CLOSING_SQLSTATE.test(code))) return true;
  return LOST_CONNECTION.test(message ?? '');
}

/** Whether the server rejects all connections until the operator changes its settings or those of the service. */
export function isConnectionRejected(error: unknown): boolean {
  const { code } = findCause(error);
  return typeof code === 'string' && REJECTED.test(code);
}

/** Whether no connection of the pool was free in time. */
export const isPoolExhausted = (error: unknown): boolean =>
  error instanceof NoneFree || /timeout exceeded when trying to connect/.test(findCause(error).message ?? '');

/** Whether the server rejected one statement, so that the connection can be used again. */
export const concernsOneStatement = (error: unknown): boolean =>
  error instanceof DatabaseError && !isConnectionLost(error);

/** Whether the server waited too long for a lock. */
export const isLockTimeout = (error: unknown): boolean => findCause(error).code === '55P03';

type Cause = Partial<Pick<DatabaseError, 'message' | 'constraint' | 'detail'>> & { code?: unknown };

const findCause = (error: unknown): Cause =>
  ((error instanceof QueryFailedError ? error.driverError : error) as object | undefined) ?? {};

/** The name of the constraint that a statement violated. */
export const violatedConstraint = (error: unknown): string | undefined => findCause(error).constraint;

const NOT_UNICODE = /^(22021|22P05)$/;

// isNativeError: jest runs tests in another realm, whose Error is another class.
const isError = (error: unknown): error is Error => types.isNativeError(error) || error instanceof Error;

/**
 * Whether an import has just taken the ID that the service drew for a row, so that a retry draws another.
 * Keys of other columns aren't drawn. The rest of the detail is in the server's language.
 */
const isIdTaken = (code: string, constraint = '', detail = '') =>
  code === '23505' && constraint.endsWith('_pkey') && detail.includes('(id)=(');

/** The type of a database error, or undefined for a bug or another error. */
export function classifyFault(error: unknown): 'unavailable' | 'not unicode' | undefined {
  if (!isError(error)) return undefined;
  if (error instanceof NotConnected) return 'unavailable';
  if ('errors' in error && Array.isArray(error.errors)) return error.errors.map(classifyFault).find(Boolean);
  const { code, message, constraint, detail } = findCause(error);
  if (typeof code === 'string') {
    if (
      UNREACHABLE.has(code) ||
      UNAVAILABLE.test(code) ||
      REJECTED.test(code) ||
      isIdTaken(code, constraint, detail)
    )
      return 'unavailable';
    if (NOT_UNICODE.test(code)) return 'not unicode';
  }
  return LOST_CONNECTION.test(message ?? '') ? 'unavailable' : undefined;
}
