import { finished } from 'node:stream/promises';
import { from as copyFrom } from 'pg-copy-streams';
import { COLLECTION_RECORD, IMPORTED_ENTRIES } from './record-types/collection';
import type { TemporaryTable, TemporaryTables } from './temporary-tables';

/** IDs of records with a problem, so that references to them aren't reported as well. */
export const REJECTED_IDS: TemporaryTable = {
  name: 'import_rejected',
  columns: [
    { name: 'type', sql: 'text' },
    { name: 'id', sql: 'bigint' },
  ],
};

/** The columns of a row, in the text format of COPY. */
export type StagedRow = (string | number)[];

interface Staged {
  rows: number;
  isCreated: boolean;
  pending: string;
}

// A batch is large compared with the cost of a round trip. About twenty tables can each have a pending one.
const BATCH_CHARACTERS = 256 * 1024;

/** Copies the rows of a stream to temporary tables while it is read. Creates only the tables of types that occur. */
export class Staging {
  private readonly staged = new Map<TemporaryTable, Staged>();
  private copying: Promise<void> = Promise.resolve();

  constructor(private readonly tables: TemporaryTables) {}

  stage(table: TemporaryTable, row: StagedRow): void {
    const staged = this.stagedTo(table);
    staged.rows++;
    staged.pending += `${row.join('\t')}\n`;
  }

  /** Sends the batches of this size or more, while the next records are read. */
  async flush(atLeast = BATCH_CHARACTERS) {
    for (const [table, staged] of this.staged) {
      if (staged.pending.length < atLeast) continue;
      const batch = Buffer.from(staged.pending);
      staged.pending = '';
      await this.copying;
      await this.create(table, staged);
      this.copying = this.copy(table, batch);
      // The promise is awaited before the next statement. Until then, a rejection must not count as
      // unhandled.
      this.copying.catch(() => {});
    }
  }

  async finish() {
    // The statements for collections read the table of entries, even if no collection has entries.
    if (this.staged.has(COLLECTION_RECORD.records)) this.stagedTo(IMPORTED_ENTRIES);
    await this.flush(1);
    await this.copying;
    for (const [table, staged] of this.staged) {
      await this.create(table, staged);
      const ids = table.columns.filter(({ name, sql }) => sql === 'bigint' || name === 'key_hash');
      await this.tables.setRowCount(
        table,
        staged.rows,
        ids.map(({ name }) => name),
      );
    }
  }

  /** Waits until the connection is free for other statements. */
  idle() {
    return this.copying;
  }

  private stagedTo(table: TemporaryTable): Staged {
    let staged = this.staged.get(table);
    if (!staged) this.staged.set(table, (staged = { rows: 0, isCreated: false, pending: '' }));
    return staged;
  }

  private async create(table: TemporaryTable, staged: Staged) {
    if (staged.isCreated) return;
    staged.isCreated = true;
    await this.tables.createEmpty(table);
  }

  private async copy({ name }: TemporaryTable, batch: Buffer) {
    const copy = this.tables.client.query(copyFrom(`COPY ${name} FROM STDIN`));
    copy.end(batch);
    await finished(copy);
  }
}
