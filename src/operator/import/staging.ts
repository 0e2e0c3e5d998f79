import { finished } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import type { Relation, TemporaryTables } from '../../platform/database/relations';
import { ENTRIES } from './record-types/collection';
import type { RecordType } from './record-types/record-type';

/** IDs of records with a problem, so that references to them aren't reported as well. */
export const REJECTED_IDS: Relation = {
  name: 'import_rejected',
  columns: [
    { name: 'type', sql: 'text' },
    { name: 'id', sql: 'bigint' },
  ],
};

export interface StagedRecord {
  type: RecordType;
  line: number;
  /** The record's fields, as bits. */
  present: number;
  /** For a field with several columns: all values in one, separated by tabs. */
  cells: string[];
}

// Large compared with the cost of a round trip; there are about twenty such batches.
const BATCH_CHARACTERS = 256 * 1024;

/** Receives the records of a stream while they are read, in the text format of COPY. */
export interface Staging {
  add(record: StagedRecord): void;
  addDeleted(type: RecordType, line: number, key: string): void;
  addEntry(line: number, collection: number, rank: number, present: number, cells: string[]): void;
  addRejected(type: RecordType, id: number): void;
}

class StagingTable {
  rows = 0;
  pending = '';

  constructor(readonly relation: Relation) {}

  add(row: string) {
    this.rows++;
    this.pending += row;
  }
}

/** Stages in temporary tables of the import's transaction. */
export class TableStaging implements Staging {
  private readonly entries = new StagingTable(ENTRIES);
  private readonly rejected = new StagingTable(REJECTED_IDS);
  private readonly records: Map<RecordType, StagingTable>;
  private readonly deleted: Map<RecordType, StagingTable>;
  private copying: Promise<void> = Promise.resolve();

  constructor(
    private readonly temporary: TemporaryTables,
    types: RecordType[],
  ) {
    this.records = new Map(types.map((type) => [type, new StagingTable(type.records)]));
    this.deleted = new Map(types.map((type) => [type, new StagingTable(type.deleted)]));
  }

  async create() {
    const tables = this.tables.map(({ relation: { name, columns } }) => {
      const defined = columns.map((column) => `${column.name} ${column.sql}`).join(', ');
      return `CREATE TEMP TABLE ${name} (${defined}) ON COMMIT DROP`;
    });
    await this.client.query(tables.join('; '));
  }

  add({ type, line, present, cells }: StagedRecord) {
    this.records.get(type)!.add(`${line}\t${present}\t${cells.join('\t')}\n`);
  }

  addDeleted(type: RecordType, line: number, key: string) {
    this.deleted.get(type)!.add(`${line}\t${key}\n`);
  }

  addEntry(line: number, collection: number, rank: number, present: number, cells: string[]) {
    this.entries.add(`${line}\t${collection}\t${rank}\t${present}\t${cells.join('\t')}\n`);
  }

  addRejected(type: RecordType, id: number) {
    this.rejected.add(`${type.name}\t${id}\n`);
  }

  /** Sends the full batches of all tables, while the next ones are read. */
  async flushFull() {
    for (const table of this.tables) if (table.pending.length >= BATCH_CHARACTERS) await this.flush(table);
  }

  async finish() {
    for (const table of this.tables) if (table.pending) await this.flush(table);
    await this.copying;
    // Autovacuum ignores temporary tables, and without statistics the merges are planned for empty tables.
    await this.client.query('SET LOCAL default_statistics_target = 10');
    for (const { rows, relation } of this.tables) {
      this.temporary.count(relation, rows);
      if (!rows) continue;
      const ids = relation.columns.filter(({ name, sql }) => sql === 'bigint' || name === 'key_hash');
      await this.client.query(`ANALYZE ${relation.name} (${ids.map(({ name }) => name).join(', ')})`);
    }
  }

  /** Waits until the connection is free for other statements. */
  idle() {
    return this.copying;
  }

  private get client() {
    return this.temporary.client;
  }

  private get tables() {
    return [...this.records.values(), ...this.deleted.values(), this.entries, this.rejected];
  }

  private async flush(table: StagingTable) {
    const batch = Buffer.from(table.pending);
    table.pending = '';
    await this.copying;
    this.copying = this.copy(table.relation.name, batch);
    // Awaited before the next statement; not an unhandled rejection until then.
    this.copying.catch(() => {});
  }

  private async copy(table: string, batch: Buffer) {
    const copy = this.client.query(copyFrom(`COPY ${table} FROM STDIN`));
    copy.end(batch);
    await finished(copy);
  }
}
