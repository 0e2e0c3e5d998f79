import type { ClientBase } from 'pg';

export interface TemporaryTable {
  name: string;
  columns: { name: string; sql: string }[];
}

interface Join {
  table: string;
  on: string;
}

/** The temporary tables of an import's transaction. */
export class TemporaryTables {
  constructor(
    readonly client: ClientBase,
    private readonly rows = new Map<string, number>(),
  ) {}

  /** A copy for changes that may be rolled back. */
  copy(): TemporaryTables {
    return new TemporaryTables(this.client, new Map(this.rows));
  }

  query<Row extends object>(sql: string) {
    return this.client.query<Row>(sql);
  }

  /** Creates a table with the current rows of a query. Returns their number. */
  async materialize(table: TemporaryTable, sql: string): Promise<number> {
    const { rowCount } = await this.query(`CREATE TEMP TABLE ${table.name} ON COMMIT DROP AS ${sql}`);
    await this.setRowCount(table, rowCount ?? 0);
    return rowCount ?? 0;
  }

  async createEmpty({ name, columns }: TemporaryTable): Promise<void> {
    const defined = columns.map((column) => `${column.name} ${column.sql}`).join(', ');
    await this.query(`CREATE TEMP TABLE ${name} (${defined}) ON COMMIT DROP`);
    this.rows.set(name, 0);
  }

  /** Sets columns of the rows `s`, to expressions of a row `t` of a table that is joined with them. */
  async update({ name }: TemporaryTable, columns: Record<string, string>, join?: Join): Promise<void> {
    const assignments = Object.entries(columns).map(([column, value]) => `${column} = ${value}`);
    const from = join ? `FROM ${join.table} t WHERE ${join.on}` : '';
    await this.query(`UPDATE ${name} s SET ${assignments.join(', ')} ${from}`);
  }

  /**
   * Call it once the table has its rows. Autovacuum ignores temporary tables, and without statistics the planner
   * expects so many rows that it would scan the tables that are joined with them.
   */
  async setRowCount({ name }: TemporaryTable, rows: number, columns: string[] = []): Promise<void> {
    this.rows.set(name, rows);
    if (rows === 0) return;
    await this.query(`ANALYZE ${name} ${columns.length > 0 ? `(${columns.join(', ')})` : ''}`);
  }

  /** 0 for a table that doesn't exist. */
  rowCount({ name }: TemporaryTable): number {
    return this.rows.get(name) ?? 0;
  }
}
