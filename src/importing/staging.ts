import { finished } from 'node:stream/promises';
import type { ClientBase } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { ENTRY_FIELDS, type RecordType } from './record-types';

// Large compared with the cost of a round trip; there are nine such batches.
const BATCH_CHARACTERS = 256 * 1024;

interface Column {
  name: string;
  sql: string;
}

class StagingTable {
  rows = 0;
  pending = '';

  constructor(
    readonly name: string,
    readonly columns: Column[],
  ) {}
}

/** The records of the stream, in temporary tables of the import's transaction. */
export class Staging {
  readonly entries = new StagingTable('import_collection_games', [
    { name: 'line', sql: 'bigint' },
    { name: 'collection_id', sql: 'bigint' },
    { name: 'rank', sql: 'integer' },
    { name: 'present', sql: 'integer' },
    ...ENTRY_FIELDS.flatMap((field) => field.columns),
  ]);
  /** Ids of records with a problem, so that references to them are no further problems. */
  readonly refused = new StagingTable('import_refused', [
    { name: 'type', sql: 'text' },
    { name: 'id', sql: 'bigint' },
  ]);
  private readonly records: Map<RecordType, StagingTable>;
  private copying: Promise<void> = Promise.resolve();

  constructor(
    private readonly client: ClientBase,
    types: RecordType[],
  ) {
    this.records = new Map(
      types.map((type) => [
        type,
        new StagingTable(`import_${type.table}`, [
          { name: 'line', sql: 'bigint' },
          { name: 'present', sql: 'integer' },
          ...type.fields.flatMap((field) => field.columns),
        ]),
      ]),
    );
  }

  async create() {
    const columns = (table: StagingTable) =>
      table.columns.map(({ name, sql }) => `${name} ${sql}`).join(', ');
    const tables = this.tables.map(
      (table) => `CREATE TEMP TABLE ${table.name} (${columns(table)}) ON COMMIT DROP`,
    );
    await this.client.query(tables.join('; '));
  }

  add(type: RecordType, line: number, present: number, cells: string[]) {
    const table = this.records.get(type)!;
    table.rows++;
    table.pending += `${line}\t${present}\t${cells.join('\t')}\n`;
  }

  addEntry(line: number, collection: number, rank: number, present: number, cells: string[]) {
    this.entries.rows++;
    this.entries.pending += `${line}\t${collection}\t${rank}\t${present}\t${cells.join('\t')}\n`;
  }

  addRefused(type: RecordType, id: number) {
    this.refused.rows++;
    this.refused.pending += `${type.name}\t${id}\n`;
  }

  /** The number of records. */
  get rows() {
    let rows = 0;
    for (const table of this.records.values()) rows += table.rows;
    return rows;
  }

  rowsOf(type: RecordType) {
    return this.records.get(type)!.rows;
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
    for (const table of this.tables) {
      if (!table.rows) continue;
      const ids = table.columns.filter(({ name, sql }) => sql === 'bigint' || name === 'key_hash');
      await this.client.query(`ANALYZE ${table.name} (${ids.map(({ name }) => name).join(', ')})`);
    }
  }

  /** Waits until the connection is free for other statements. */
  idle() {
    return this.copying;
  }

  private get tables() {
    return [...this.records.values(), this.entries, this.refused];
  }

  private async flush(table: StagingTable) {
    const batch = Buffer.from(table.pending);
    table.pending = '';
    await this.copying;
    this.copying = this.copy(table.name, batch);
    // Awaited before the next statement; not an unhandled rejection until then.
    this.copying.catch(() => {});
  }

  private async copy(table: string, batch: Buffer) {
    const copy = this.client.query(copyFrom(`COPY ${table} FROM STDIN`));
    copy.end(batch);
    await finished(copy);
  }
}
