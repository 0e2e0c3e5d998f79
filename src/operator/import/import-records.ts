import { type Client, type ClientBase, type ClientConfig, DatabaseError } from 'pg';
import type { Settings } from '../../platform/config/settings';
import { DatabaseClient } from '../../platform/database/client';
import { pgTypes } from '../../platform/database/pg-types';
import { TemporaryTables } from '../../platform/database/relations';
import { merge } from './merge';
import { linesOf } from './ndjson';
import { stageWithPasswords } from './passwords';
import { Problems, StoreChanged } from './problems';
import { RecordReader } from './record-reader';
import { recordTypes } from './record-types';
import type { RecordType } from './record-types/record-type';
import { TableStaging } from './staging';
import { type ImportSummary, summaryOf } from './summary';
import { tablesOf } from './write-records';

/** Bytes: enough for a collection of a hundred thousand games. */
export const MAX_LINE = 16 * 1024 * 1024;
const PASSWORD_BATCH = 256;
/** From this number of new records on, the statistics of the tables are updated. */
const MIN_NEW_TO_ANALYZE = 10_000;
/** The advisory lock of imports: one at a time. */
const IMPORT_LOCK = 7_305_808;
/** Attempts to merge, because concurrent writes may interfere. */
const MAX_ATTEMPTS = 3;

export type Progress =
  | { phase: 'waiting' }
  | { phase: 'reading'; bytes: number; records: number }
  | { phase: 'checking'; records: number }
  | { phase: 'writing'; records: number; table: string; written: number };

export interface ImportOptions {
  /** The pepper of API keys. */
  pepper: Buffer;
  /** False: records that would let the client act as a user are rejected. */
  mayImportCredentials?: boolean;
  /** Wraps the merge, which follows the last chunk. */
  once?: (client: ClientBase, merge: () => Promise<ImportSummary>) => Promise<ImportSummary>;
  progress?: (progress: Progress) => void;
  signal?: AbortSignal;
}

export async function connectTo(
  { DATABASE_URL }: Pick<Settings, 'DATABASE_URL'>,
  options: ClientConfig = {},
): Promise<Client> {
  const client = new DatabaseClient({
    connectionString: DATABASE_URL,
    types: pgTypes,
    application_name: 'gamewharf import',
    connectionTimeoutMillis: 5000,
    keepAlive: true,
    ...options,
  });
  await client.connect();
  return client;
}

/** Imports a stream in one transaction, on a connection without timeouts. Rejects with ImportProblems if records are invalid. */
export async function importRecords(
  connect: () => Promise<Client>,
  source: AsyncIterable<Buffer>,
  options: ImportOptions,
): Promise<ImportSummary> {
  const { signal } = options;
  signal?.throwIfAborted();
  const client = await connect();
  let pid: number | undefined;
  const cancel = () => void cancelStatement(connect, pid);
  signal?.addEventListener('abort', cancel, { once: true });
  try {
    await client.query('BEGIN');
    // In the transaction, because behind a pooler the client does not know the server's process.
    pid = (await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')).rows[0]!.pid;
    const summary = await transfer(client, source, options);
    signal?.removeEventListener('abort', cancel);
    signal?.throwIfAborted();
    await client.query('COMMIT');
    return summary;
  } catch (error) {
    // Fails on a lost connection, for which the server rolls back on its own.
    await client.query('ROLLBACK').catch(() => {});
    if (signal?.aborted) throw signal.reason;
    // After the checks, a constraint fails only because of a concurrent write.
    throw isConflict(error) ? new StoreChanged() : error;
  } finally {
    signal?.removeEventListener('abort', cancel);
    await client.end().catch(() => {});
  }
}

async function cancelStatement(connect: () => Promise<Client>, pid: number | undefined) {
  if (pid === undefined) return;
  const client = await connect().catch(() => undefined);
  await client?.query('SELECT pg_cancel_backend($1)', [pid]).catch(() => {});
  await client?.end().catch(() => {});
}

async function transfer(
  client: ClientBase,
  source: AsyncIterable<Buffer>,
  { pepper, mayImportCredentials, once, progress = () => {}, signal }: ImportOptions,
): Promise<ImportSummary> {
  await prepareSession(client);
  const { rows } = await client.query<{ locked: boolean }>('SELECT pg_try_advisory_xact_lock($1) AS locked', [
    IMPORT_LOCK,
  ]);
  if (!rows[0]!.locked) {
    progress({ phase: 'waiting' });
    await client.query('SELECT pg_advisory_xact_lock($1)', [IMPORT_LOCK]);
  }

  const types = recordTypes(pepper);
  const relations = new TemporaryTables(client);
  const staging = new TableStaging(relations, types);
  const problems = new Problems();
  await staging.create();
  const reader = new RecordReader(types, staging, problems, mayImportCredentials);
  await stage(client, source, reader, staging, progress, signal);

  const mergeStaged = async () => {
    const { records } = reader;
    for (let attempt = 1; ; attempt++) {
      await client.query('SAVEPOINT merge');
      try {
        progress({ phase: 'checking', records });
        let written = 0;
        await merge(relations, types, reader.partial, problems, {
          onWrite: (type) => {
            progress({ phase: 'writing', table: type.table, records, written });
            written += relations.rowsOf(type.records);
          },
        });
        break;
      } catch (error) {
        if (attempt === MAX_ATTEMPTS || !isConflict(error)) throw error;
        signal?.throwIfAborted();
        await client.query('ROLLBACK TO SAVEPOINT merge');
      }
    }
    const given = types.filter((type) => relations.rowsOf(type.records));
    const summary = summaryOf(types, (relation) => relations.rowsOf(relation));
    const created = Object.values(summary).reduce((sum, counts) => sum + counts.new, 0);
    if (created >= MIN_NEW_TO_ANALYZE) await analyze(client, given);
    return summary;
  };
  return once ? once(client, mergeStaged) : mergeStaged();
}

/** A concurrent write changed what the checks found: a unique value, a reference, or the order of locks. */
export const isConflict = (error: unknown) =>
  error instanceof StoreChanged || (error instanceof DatabaseError && /^(23|40)/.test(error.code ?? ''));

async function prepareSession(client: ClientBase) {
  // Timeouts are for requests, and JIT compilation isn't worthwhile for statements that run once.
  await client.query(`
    SELECT set_config(name, CASE name WHEN 'jit' THEN 'off' WHEN 'work_mem' THEN '64MB' ELSE '0' END, true)
    FROM pg_settings WHERE name IN ('jit', 'work_mem', 'statement_timeout', 'lock_timeout',
      'idle_in_transaction_session_timeout', 'transaction_timeout')`);
}

async function stage(
  client: ClientBase,
  source: AsyncIterable<Buffer>,
  reader: RecordReader,
  staging: TableStaging,
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
  for await (const lines of linesOf(counted(), MAX_LINE)) {
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

/** Ends when the signal is aborted, even if the source sends nothing, like a terminal. */
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
  for (const table of new Set(types.flatMap(tablesOf))) await client.query(`ANALYZE ${table}`);
}
