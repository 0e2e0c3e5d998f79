import type { ClientBase } from 'pg';
import { type ClientPipeline, queryOf } from './pool/pipeline';

export interface Relation {
  name: string;
  columns: { name: string; sql: string }[];
}

/** Rows that statements name as if they were tables. The same statements run over temporary tables and over rows that are sent along. */
export interface Relations {
  query<Row extends object>(sql: string): Promise<{ rows: Row[] }>;
  /** Stores the rows that a query finds now, for later statements. Returns their number. */
  keep(relation: Relation, sql: string): Promise<number>;
  /** Makes a relation without rows. */
  keepNone(relation: Relation): Promise<void>;
  /** Something to select the rows of a query from that depends on given rows alone, and at most how many they are. */
  derive(relation: Relation, sql: string): Promise<{ from: string; rows: number }>;
  /** Sets columns of the rows `s`, to expressions of a row `t` of a table that is joined with them. */
  update(relation: Relation, columns: Record<string, string>, join?: Join): Promise<void>;
  rowsOf(name: string): number;
  /** There are so few rows that statements cost more than what they do. */
  readonly few: boolean;
}

interface Join {
  table: string;
  on: string;
}

/** Relations as temporary tables of the transaction: for any number of rows. */
export class TemporaryTables implements Relations {
  readonly few = false;
  private readonly rows = new Map<string, number>();

  constructor(readonly client: ClientBase) {}

  query<Row extends object>(sql: string) {
    return this.client.query<Row>(sql);
  }

  async keep({ name }: Relation, sql: string): Promise<number> {
    const { rowCount } = await this.query(`CREATE TEMP TABLE ${name} ON COMMIT DROP AS ${sql}`);
    // Autovacuum ignores temporary tables, and without statistics the statements are planned for empty ones.
    await this.query(`ANALYZE ${name}`);
    const rows = rowCount ?? 0;
    this.count(name, rows);
    return rows;
  }

  async keepNone({ name, columns }: Relation) {
    const defined = columns.map((column) => `${column.name} ${column.sql}`).join(', ');
    await this.query(`CREATE TEMP TABLE ${name} (${defined}) ON COMMIT DROP`);
    this.count(name, 0);
  }

  async derive(relation: Relation, sql: string) {
    return { from: relation.name, rows: await this.keep(relation, sql) };
  }

  async update({ name }: Relation, columns: Record<string, string>, join?: Join): Promise<void> {
    const assignments = Object.entries(columns).map(([column, value]) => `${column} = ${value}`);
    const from = join ? `FROM ${join.table} t WHERE ${join.on}` : '';
    await this.query(`UPDATE ${name} s SET ${assignments.join(', ')} ${from}`);
  }

  count(name: string, rows: number): void {
    this.rows.set(name, rows);
  }

  rowsOf(name: string): number {
    return this.rows.get(name) ?? 0;
  }
}

interface Prepared {
  name: string;
  text: string;
  relations: string[];
}

/** Statements that no connection keeps are remembered up to this number. */
const MAX_REMEMBERED = 1000;

/** Relations as parameters of each statement, in JSON: for a few rows, without a row in the catalogue. */
export class GivenRows implements Relations {
  readonly few = true;
  // By the statement's own text. Those of one type of record are few. Those of several have a text for each mixture of types.
  private static readonly prepared = new Map<string, Prepared>();
  private readonly given = new Map<string, { relation: Relation; json: string; rows: number }>();

  constructor(
    private readonly pipeline: ClientPipeline,
    /** Whether the connection keeps prepared statements. */
    private readonly keepsPrepared: boolean,
  ) {}

  /** `rows`: objects, or their JSON. Columns that they leave out are null. */
  give(relation: Relation, rows: readonly (object | string)[]): this {
    const json = `[${rows.map((row) => (typeof row === 'string' ? row : JSON.stringify(row))).join(',')}]`;
    this.given.set(relation.name, { relation, json, rows: rows.length });
    return this;
  }

  async query<Row extends object>(sql: string) {
    const { name, text, relations } = this.preparedFor(sql);
    const values = relations.map((relation) => this.given.get(relation)!.json);
    const rows = await this.pipeline.rows(queryOf({ name, text }, values, this.keepsPrepared));
    return { rows: rows as Row[] };
  }

  async keep(relation: Relation, sql: string): Promise<number> {
    const { rows } = await this.query<{ json: string; rows: number }>(
      `SELECT coalesce(json_agg(kept), '[]')::text AS json, count(*)::int AS rows FROM (${sql}) kept`,
    );
    this.given.set(relation.name, { relation, ...rows[0]! });
    return rows[0]!.rows;
  }

  keepNone(relation: Relation) {
    this.give(relation, []);
    return Promise.resolve();
  }

  derive(_: Relation, sql: string) {
    return Promise.resolve({ from: `(${sql})`, rows: Infinity });
  }

  async update(relation: Relation, columns: Record<string, string>, join?: Join): Promise<void> {
    const values = relation.columns.map(({ name }) => {
      const value = columns[name];
      if (value === undefined) return `s.${name}`;
      return `${join ? `CASE WHEN t.ctid IS NULL THEN s.${name} ELSE ${value} END` : value} AS ${name}`;
    });
    const joined = join ? `LEFT JOIN ${join.table} t ON ${join.on}` : '';
    await this.keep(relation, `SELECT ${values.join(', ')} FROM ${relation.name} s ${joined}`);
  }

  rowsOf(name: string): number {
    return this.given.get(name)?.rows ?? 0;
  }

  jsonOf(name: string): string {
    return this.given.get(name)!.json;
  }

  private preparedFor(sql: string): Prepared {
    const { prepared } = GivenRows;
    const known = prepared.get(sql);
    if (known) return known;
    const relations = [...new Set(sql.match(/\w+/g))].filter((word) => this.given.has(word));
    const tables = relations.map((name, index) => {
      const columns = this.given.get(name)!.relation.columns.map((column) => `${column.name} ${column.sql}`);
      return `${name} AS MATERIALIZED (SELECT * FROM json_to_recordset($${index + 1}::json) AS given (${columns.join(', ')}))`;
    });
    const [, own = '', rest] = /^\s*(WITH\s)?([^]*)$/.exec(sql)!;
    const text = tables.length ? `WITH ${tables.join(', ')}${own ? ', ' : ' '}${rest}` : sql;
    const made = { name: `given_rows_${prepared.size}`, text, relations };
    if (this.keepsPrepared || prepared.size < MAX_REMEMBERED) prepared.set(sql, made);
    return made;
  }
}
