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

/** Receives the rows of a stream while it is read. */
export interface Staging {
  /** The columns of a row in the text format of COPY. Those of one field may be in one text, separated by tabs. */
  stage(relation: Relation, row: (string | number)[]): void;
}

// Large compared with the cost of a round trip; there are about twenty such batches.
const BATCH_CHARACTERS = 256 * 1024;

/** Stages in temporary tables of the import's transaction. */
export class TableStaging implements Staging {
  private readonly tables: Map<Relation, { rows: number; pending: string }>;
  private copying: Promise<void> = Promise.resolve();

  constructor(
    private readonly temporary: TemporaryTables,
    types: RecordType[],
  ) {
    const relations = [...types.flatMap(({ records, deleted }) => [records, deleted]), ENTRIES, REJECTED_IDS];
    this.tables = new Map(relations.map((relation) => [relation, { rows: 0, pending: '' }]));
  }

  async create() {
    const tables = [...this.tables.keys()].map(({ name, columns }) => {
      const defined = columns.map((column) => `${column.name} ${column.sql}`).join(', ');
      return `CREATE TEMP TABLE ${name} (${defined}) ON COMMIT DROP`;
    });
    await this.client.query(tables.join('; '));
  }

  stage(relation: Relation, row: (string | number)[]): void {
    const table = this.tables.get(relation)!;
    table.rows++;
    table.pending += `${row.join('\t')}\n`;
  }

  /** Sends the batches of this size or more, while the next records are read. */
  async flush(atLeast = BATCH_CHARACTERS) {
    for (const [{ name }, table] of this.tables) {
      if (table.pending.length < atLeast) continue;
      const batch = Buffer.from(table.pending);
      table.pending = '';
      await this.copying;
      this.copying = this.copy(name, batch);
      // Awaited before the next statement; not an unhandled rejection until then.
      this.copying.catch(() => {});
    }
  }

  async finish() {
    await this.flush(1);
    await this.copying;
    // Autovacuum ignores temporary tables, and without statistics the merges are planned for empty tables.
    await this.client.query('SET LOCAL default_statistics_target = 10');
    for (const [relation, { rows }] of this.tables) {
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

  private async copy(table: string, batch: Buffer) {
    const copy = this.client.query(copyFrom(`COPY ${table} FROM STDIN`));
    copy.end(batch);
    await finished(copy);
  }
}
