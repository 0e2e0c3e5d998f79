import { setImmediate as immediate } from 'node:timers/promises';
import type { ClientBase } from 'pg';
import type { RetryKey } from '../../idempotency/idempotency.service';
import {
  type JsonRow,
  JsonRelations,
  type JsonStatements,
  type Relation,
  type Send,
} from '../../platform/database/relations';
import { statement } from '../../platform/database/statement';
import { SENDER_BITS } from './checks';
import { untilAborted } from './import-records';
import { NULL } from './value-types';
import { merge } from './merge';
import { linesOf } from './ndjson';
import { stageWithPasswords } from './passwords';
import { Problems } from './problems';
import { RecordReader } from './record-reader';
import { ENTRIES } from './record-types/collection';
import type { RecordType } from './record-types/record-type';
import { REJECTED_IDS, type Staging } from './staging';
import { type ImportSummary, summaryOf } from './summary';

export const MAX_BYTES = 1024 * 1024;
export const MAX_RECORDS = 1000;
/**
 * In bytes. A longer line may take too long for the thread that serves requests, unless the whole stream is this short.
 */
export const MAX_LINE = 16 * 1024;
/** Milliseconds of reading before other requests run. */
const SLICE = 5;
/** The number of an import within the number of a line. */
const SENDER = 2 ** SENDER_BITS;

// Below the server's deadlock_timeout of 1 s, so that a deadlock never cancels an import of many records instead.
const LOCK_TIMEOUT_MS = 400;

/**
 * The first statement of each transaction. Statistics of given rows don't improve the plans, so each statement is
 * planned only once.
 */
export const SHORT_TRANSACTION = statement(
  'short_transaction',
  `SELECT set_config('lock_timeout', '${LOCK_TIMEOUT_MS}ms', true), set_config('plan_cache_mode', 'force_generic_plan', true)`,
);

const UNESCAPED: Record<string, string> = { n: '\n', r: '\r', t: '\t' };

/** A value in the text format of COPY as it is. */
function textOf(cell: string): string | null {
  if (cell === NULL) return null;
  if (!cell.includes('\\')) return cell;
  return cell.replace(/\\(.)/g, (_, character: string) => UNESCAPED[character] ?? character);
}

/** The records of a small import, as rows that are sent along with statements. */
export class SmallImport implements Staging {
  readonly problems = new Problems();
  readonly reader: RecordReader;
  /** The Idempotency-Key of the request, with the hash of its parameters. */
  once: { key: RetryKey; fingerprint: Buffer } | undefined;
  /** Lines with a record, in any order. */
  records = 0;
  bytes = 0;
  private readonly rows = new Map<Relation, JsonRow[]>();

  constructor(
    private readonly types: RecordType[],
    mayImportCredentials = true,
  ) {
    this.reader = new RecordReader(types, this, this.problems, mayImportCredentials);
  }

  stage(relation: Relation, row: (string | number)[]): void {
    const values = row.join('\t').split('\t').map(textOf);
    const rows = this.rows.get(relation);
    if (rows) rows.push(values);
    else this.rows.set(relation, [values]);
  }

  rowsOf(relation: Relation): readonly JsonRow[] {
    return this.rows.get(relation) ?? [];
  }

  /** Whether it needs its own transaction. */
  get isAlone(): boolean {
    return this.problems.count > 0 || this.once !== undefined;
  }

  /** Whether it needs its own connection: a record to delete may have many dependent rows, and a hash takes long. */
  get takesLong(): boolean {
    return this.types.some(({ deleted }) => this.rows.has(deleted)) || this.reader.withPassword.length > 0;
  }
}

/** Reads a stream that may be small. Returns undefined if it is not; then `chunks` contains its beginning. */
export async function readSmall(
  source: AsyncGenerator<Buffer>,
  chunks: Buffer[],
  types: RecordType[],
  mayImportCredentials: boolean,
  signal: AbortSignal,
): Promise<SmallImport | undefined> {
  const small = new SmallImport(types, mayImportCredentials);
  for await (const chunk of untilAborted(source, signal)) {
    chunks.push(chunk);
    small.bytes += chunk.length;
    if (small.bytes > MAX_BYTES) return undefined;
  }
  let until = performance.now() + SLICE;
  // With a final newline the stream is one batch of lines.
  const whole = [Buffer.concat([...chunks, Buffer.from('\n')])];
  for await (const lines of linesOf(whole, MAX_BYTES)) {
    if (small.bytes > MAX_LINE && lines.some(({ text }) => text.length > MAX_LINE)) return undefined;
    for (const line of lines) {
      small.reader.read(line);
      if (line.text.length > 2) small.records++;
      if (small.records > MAX_RECORDS) return undefined;
      if (performance.now() < until) continue;
      await immediate();
      until = performance.now() + SLICE;
    }
  }
  return small;
}

/** Shared by all small imports of a service. */
export interface Common {
  types: RecordType[];
  /** Whether connections keep prepared statements. */
  prepared: boolean;
  written: JsonStatements;
}

/**
 * Merges several imports in one transaction, as if they had arrived one after the other. Returns the summary of each.
 */
export async function mergeSmall(
  client: ClientBase,
  send: Send,
  imports: SmallImport[],
  problems: Problems,
  { types, prepared, written }: Common,
  commit?: () => Promise<unknown>,
): Promise<ImportSummary[]> {
  const { withPassword } = imports[0]!.reader;
  if (withPassword.length) await stageWithPasswords(client, withPassword, imports[0]!);
  const given = types.filter(({ records }) => imports.some((one) => one.rowsOf(records).length));
  // Statements over several types have too many variants to cache.
  const relations = new JsonRelations(send, prepared && given.length === 1, written);
  giveRows(relations, imports, types);
  const partial = new Set(imports.flatMap(({ reader }) => [...reader.partial]));
  await merge(relations, types, partial, problems, { commit });
  if (imports.length === 1) return [summaryOf(types, (relation) => relations.rowsOf(relation))];
  const kept = new Map(
    given
      .flatMap(({ stored, changed }) => [stored, changed])
      .map((relation) => [relation, rowsBySender(relations.jsonOf(relation), imports.length)]),
  );
  return imports.map((one, sender) =>
    summaryOf(given, (relation) => kept.get(relation)?.[sender] ?? one.rowsOf(relation).length),
  );
}

/** Marks the line of each row with its import. */
function giveRows(relations: JsonRelations, imports: SmallImport[], types: RecordType[]): void {
  const given = types
    .map(({ records, deleted }) => [records, deleted])
    .filter((both) => both.some((relation) => imports.some((one) => one.rowsOf(relation).length)))
    .flat();
  for (const relation of [...given, ENTRIES])
    relations.give(
      relation,
      imports.flatMap((one, sender) =>
        one.rowsOf(relation).map(([line, ...values]) => [String(sender * SENDER + Number(line)), ...values]),
      ),
    );
  relations.give(
    REJECTED_IDS,
    imports.flatMap((one) => one.rowsOf(REJECTED_IDS)),
  );
}

/** Number of rows of each import. */
function rowsBySender(json: string, senders: number): number[] {
  const counts = new Array<number>(senders).fill(0);
  for (const { line } of JSON.parse(json) as { line: number }[]) counts[Math.floor(line / SENDER)]!++;
  return counts;
}
