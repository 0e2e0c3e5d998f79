import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, type ClientBase, type ClientConfig, DatabaseError } from 'pg';
import type { Settings } from '../../platform/config/settings';
import { DatabaseClient } from '../../platform/database/client';
import { pgTypes } from '../../platform/database/pg-types';
import { isLockTimeout } from '../../platform/database/sqlstates';
import { applyRecords } from './apply-records';
import { readLines } from './ndjson';
import { stageWithPasswords } from './passwords';
import { Problems, StoreChanged } from './problems';
import { RecordReader } from './record-reader';
import { recordTypes } from './record-types';
import type { RecordType } from './record-types/record-type';
import { Staging } from './staging';
import { type ImportSummary, summarize } from './summary';
import { TemporaryTables } from './temporary-tables';
import { listTables } from './write-records';

/** Enough for a collection of a hundred thousand games. */
export const MAX_LINE_BYTES = 16 * 1024 * 1024;
const PASSWORD_BATCH = 256;
/** An import with more new records updates the statistics of the tables. */
const MIN_NEW_TO_ANALYZE = 10_000;
/** The advisory lock of imports: one at a time. */
const IMPORT_LOCK = 7_305_808;
/** Attempts to apply the records, because concurrent writes may interfere. */
const MAX_IMPORT_ATTEMPTS = 6;
// The server's deadlock_timeout is 1 s. A shorter lock timeout prevents a deadlock from canceling a large
// import.
const SMALL_IMPORT_LOCK_TIMEOUT_MS = 400;

export type Progress =
  | { phase: 'waiting' }
  | { phase: 'reading'; bytes: number; records: number }
  | { phase: 'checking'; records: number }
  | { phase: 'writing'; records: number; table: string; written: number };

/** Where an import waits: behind all other large imports of the store, or only briefly for a locked row. */
export type ImportQueue = 'small' | 'large';

export interface ImportOptions {
  /** The pepper of API keys. */
  pepper: Buffer;
  previousPeppers?: string[];
  queue?: ImportQueue;
  /** False: records that would let the client act as a user are rejected. */
  mayImportCredentials?: boolean;
  /** Wraps the work that follows the last chunk. */
  idempotency?: (client: ClientBase, work: () => Promise<ImportSummary>) => Promise<ImportSummary>;
  progress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export async function connectTo({ DATABASE_URL }: Pick<Settings, 'DATABASE_URL'>): Promise<Client> {
  const client = new DatabaseClient(connectionOptions(DATABASE_URL));
  await client.connect();
  return client;
}

export const connectionOptions = (DATABASE_URL: string | undefined): ClientConfig => ({
  connectionString: DATABASE_URL,
  types: pgTypes,
  application_name: 'gamewharf import',
  connectionTimeoutMillis: 5000,
  keepAlive: true,
});

/** Imports a stream on a separate connection. */
export async function importRecords(
  connect: () => Promise<Client>,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<ImportSummary> {
  options.signal?.throwIfAborted();
  const client = await connect();
  try {
    return await importOn(client, connect, source, options);
  } finally {
    await client.end().catch(() => {});
  }
}

/**
 * Imports a stream in one transaction, without timeouts of statements. Rejects with ImportProblems if records
 * are invalid. `connect` is for a second connection, which cancels a statement.
 */
export async function importOn(
  client: ClientBase,
  connect: () => Promise<Client>,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<ImportSummary> {
  const { signal, queue = 'large' } = options;
  signal?.throwIfAborted();
  let pid: number | undefined;
  let cancelled: Promise<void> | undefined;
  const cancel = () => void (cancelled = cancelStatement(connect, pid));
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    await client.query('BEGIN');
    pid = await prepareTransaction(client, queue);
    const summary = await transfer(client, source, options);
    signal?.removeEventListener('abort', cancel);
    signal?.throwIfAborted();
    await client.query('COMMIT');
    return summary;
  } catch (error) {
    // A late cancellation could affect the next transaction of the connection.
    await cancelled;
    // If the connection is lost, the server rolls back on its own.
    await client.query('ROLLBACK').catch(() => {});
    if (signal?.aborted) throw signal.reason;
    // After the checks, a constraint fails only because of a concurrent write.
    throw isConflict(error) ? new StoreChanged() : error;
  } finally {
    signal?.removeEventListener('abort', cancel);
  }
}

async function cancelStatement(connect: () => Promise<Client>, pid: number | undefined) {
  if (pid === undefined) return;
  const client = await connect().catch(() => undefined);
  await client?.query('SELECT pg_cancel_backend($1)', [pid]).catch(() => {});
  await client?.end().catch(() => {});
}

/** Returns the ID of the server process. A client behind a pooler knows it only within a transaction. */
async function prepareTransaction(client: ClientBase, queue: ImportQueue): Promise<number> {
  // Timeouts are for requests, JIT compilation isn't worthwhile for statements that run once, and few statistics are
  // enough for temporary tables.
  const { rows } = await client.query<{ pid: number }>(
    `SELECT pg_backend_pid() AS pid, set_config(name, CASE name WHEN 'jit' THEN 'off' WHEN 'work_mem' THEN '64MB'
       WHEN 'default_statistics_target' THEN '10' WHEN 'lock_timeout' THEN $1 ELSE '0' END, true)
     FROM pg_settings WHERE name IN ('jit', 'work_mem', 'default_statistics_target', 'statement_timeout',
       'lock_timeout', 'idle_in_transaction_session_timeout', 'transaction_timeout')`,
    [queue === 'small' ? String(SMALL_IMPORT_LOCK_TIMEOUT_MS) : '0'],
  );
  return rows[0]!.pid;
}

async function transfer(
  client: ClientBase,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<ImportSummary> {
  const {
    pepper,
    previousPeppers,
    queue = 'large',
    mayImportCredentials,
    progress = () => {},
    signal,
  } = options;
  if (queue === 'large') await waitForLargeImports(client, progress);

  const types = recordTypes(pepper, previousPeppers);
  const staged = new TemporaryTables(client);
  const staging = new Staging(staged);
  const problems = new Problems();
  const reader = new RecordReader(types, staging, problems, mayImportCredentials);
  await stage(client, source, reader, staging, progress, signal);

  const apply = async () => {
    const { records } = reader;
    const tables = staged.copy();
    progress({ phase: 'checking', records });
    let written = 0;
    await applyRecords(tables, types, reader.partial, problems.copy(), (type) => {
      progress({ phase: 'writing', table: type.table, records, written });
      written += tables.rowCount(type.records);
    });
    const summary = summarize(types, tables);
    const created = Object.values(summary).reduce((sum, counts) => sum + counts.new, 0);
    if (created >= MIN_NEW_TO_ANALYZE) {
      const presentTypes = types.filter((type) => tables.rowCount(type.records));
      await analyze(client, presentTypes);
    }
    return summary;
  };
  const { idempotency } = options;
  return untilUndisturbed(client, () => (idempotency ? idempotency(client, apply) : apply()), signal);
}

async function waitForLargeImports(client: ClientBase, progress: (progress: Progress) => void) {
  const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS locked', [
    IMPORT_LOCK,
  ]);
  if (rows[0]!.locked) return;
  progress({ phase: 'waiting' });
  await client.query('SELECT pg_advisory_xact_lock($1)', [IMPORT_LOCK]);
}

/** Repeats the work after conflicts with concurrent writes. Its locks are released in between. */
async function untilUndisturbed<Result>(
  client: ClientBase,
  work: () => Promise<Result>,
  signal: AbortSignal | undefined,
): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    await client.query('SAVEPOINT attempt');
    try {
      return await work();
    } catch (error) {
      if (attempt === MAX_IMPORT_ATTEMPTS || !(isConflict(error) || isLockTimeout(error))) throw error;
      await client.query('ROLLBACK TO SAVEPOINT attempt');
      await sleep(2 ** attempt * 5 * (0.5 + Math.random()), undefined, { signal });
    }
  }
}

/** A concurrent write changed what the checks found: a unique value, a reference, or the order of locks. */
const isConflict = (error: unknown) =>
  error instanceof StoreChanged || (error instanceof DatabaseError && /^(23|40)/.test(error.code ?? ''));

async function stage(
  client: ClientBase,
  source: AsyncIterable<Buffer>,
  reader: RecordReader,
  staging: Staging,
  progress: (progress: Progress) => void,
  signal?: AbortSignal,
) {
  let bytes = 0;
  const counted = async function* () {
    for await (const chunk of signal ? untilAborted(source, signal) : source) {
      bytes += chunk.length;
      yield chunk;
    }
  };
  const stagePasswords = async () => {
    await staging.idle();
    await stageWithPasswords(client, reader.withPassword, staging, signal);
  };
  for await (const lines of readLines(counted(), MAX_LINE_BYTES)) {
    for (const line of lines) {
      reader.read(line);
      if (reader.withPassword.length >= PASSWORD_BATCH) await stagePasswords();
    }
    await staging.flush();
    progress({ phase: 'reading', bytes, records: reader.records });
  }
  if (reader.withPassword.length) await stagePasswords();
  await staging.finish();
}

/** Ends when the signal is aborted, even while the source, such as a terminal, sends nothing. */
export async function* untilAborted(
  source: AsyncIterable<Buffer>,
  signal: AbortSignal,
): AsyncGenerator<Buffer> {
  const chunks = source[Symbol.asyncIterator]();
  for (;;) {
    const { done, value } = await new Promise<IteratorResult<Buffer>>((resolve, reject) => {
      const abort = () => reject(signal.reason);
      signal.addEventListener('abort', abort, { once: true });
      if (signal.aborted) abort();
      chunks
        .next()
        .then(resolve, reject)
        .finally(() => signal.removeEventListener('abort', abort));
    });
    if (done) return;
    yield value;
  }
}

/** Until autovacuum runs, requests would be planned with the statistics of the old tables. */
async function analyze(client: ClientBase, types: RecordType[]) {
  await client.query('SET LOCAL default_statistics_target TO DEFAULT');
  for (const table of new Set(types.flatMap(listTables))) await client.query(`ANALYZE ${table}`);
}
