import type { ClientBase, QueryConfig, QueryResult, QueryResultRow } from 'pg';
import { queryOf } from './pool/pipeline';

export interface Relation {
  name: string;
  columns: { name: string; sql: string }[];
}

/** Rows that statements refer to like tables. The same statements run on temporary tables and on rows sent along. */
export interface Relations {
  query<Row extends object>(sql: string): Promise<{ rows: Row[] }>;
  /** Stores the current rows of a query for later statements. Returns their number. */
  keep(relation: Relation, sql: string): Promise<number>;
  /** Creates an empty relation. */
  keepNone(relation: Relation): Promise<void>;
  /** A SQL source of the rows of a query that depends only on given rows, and their maximum number. */
  derive(relation: Relation, sql: string): Promise<{ from: string; rows: number }>;
  /** Sets columns of the rows `s`, to expressions of a row `t` of a table that is joined with them. */
  update(relation: Relation, columns: Record<string, string>, join?: Join): Promise<void>;
  rowsOf(relation: Relation): number;
  /** There are so few rows that the number of statements determines the cost. */
  readonly isSmall: boolean;
}

/** Sends a statement in a transaction, without waiting for those sent before. */
export type Send = <Row extends QueryResultRow>(query: QueryConfig) => Promise<QueryResult<Row>>;

interface Join {
  table: string;
  on: string;
}

/** Relations as temporary tables of the transaction: for any number of rows. */
export class TemporaryTables implements Relations {
  readonly isSmall = false;
  private readonly rows = new Map<string, number>();

  constructor(readonly client: ClientBase) {}

  query<Row extends object>(sql: string) {
    return this.client.query<Row>(sql);
  }

  async keep(relation: Relation, sql: string): Promise<number> {
    const { name } = relation;
    const { rowCount } = await this.query(`CREATE TEMP TABLE ${name} ON COMMIT DROP AS ${sql}`);
    // Autovacuum ignores temporary tables, and without statistics the statements are planned for empty ones.
    await this.query(`ANALYZE ${name}`);
    const rows = rowCount ?? 0;
    this.count(relation, rows);
    return rows;
  }

  async keepNone(relation: Relation) {
    const defined = relation.columns.map((column) => `${column.name} ${column.sql}`).join(', ');
    await this.query(`CREATE TEMP TABLE ${relation.name} (${defined}) ON COMMIT DROP`);
    this.count(relation, 0);
  }

  async derive(relation: Relation, sql: string) {
    return { from: relation.name, rows: await this.keep(relation, sql) };
  }

  async update({ name }: Relation, columns: Record<string, string>, join?: Join): Promise<void> {
    const assignments = Object.entries(columns).map(([column, value]) => `${column} = ${value}`);
    const from = join ? `FROM ${join.table} t WHERE ${join.on}` : '';
    await this.query(`UPDATE ${name} s SET ${assignments.join(', ')} ${from}`);
  }

  count({ name }: Relation, rows: number): void {
    this.rows.set(name, rows);
  }

  rowsOf({ name }: Relation): number {
    return this.rows.get(name) ?? 0;
  }
}

/** The text of each column, in order; omitted ones at the end are null. */
export type JsonRow = readonly (string | null)[];

interface Given {
  relation: Relation;
  rows: number;
  json: string;
}

/** A statement with the relations that it refers to. */
interface JsonStatement {
  name: string;
  text: string;
  names: string[];
}

/** Number of cached statements, which connections keep. */
const MAX_STATEMENTS = 1000;

/** The statements that an app has sent, by their SQL. */
export type JsonStatements = Map<string, JsonStatement>;

/** Relations as JSON parameters of each statement: for a few rows, without a row in the catalog. */
export class JsonRelations implements Relations {
  readonly isSmall = true;
  private readonly given = new Map<string, Given>();

  constructor(
    private readonly send: Send,
    /** Whether the connection keeps prepared statements. */
    private readonly keepsPrepared: boolean,
    private readonly known: JsonStatements,
  ) {}

  give(relation: Relation, rows: readonly JsonRow[]): void {
    this.given.set(relation.name, { relation, rows: rows.length, json: jsonOf(relation, rows) });
  }

  query<Row extends object>(sql: string) {
    const statement = this.known.get(sql) ?? this.statementOf(sql);
    const values = statement.names.map((name) => this.given.get(name)!.json);
    return this.send<Row>(queryOf(statement, values, this.keepsPrepared));
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

  rowsOf({ name }: Relation): number {
    return this.given.get(name)?.rows ?? 0;
  }

  jsonOf({ name }: Relation): string {
    return this.given.get(name)!.json;
  }

  private statementOf(sql: string): JsonStatement {
    const isKept = this.keepsPrepared && this.known.size < MAX_STATEMENTS;
    const names = [...new Set(sql.match(/\w+/g))].filter((word) => this.given.has(word));
    // Without a name no connection keeps it.
    const statement = {
      name: isKept ? `given_rows_${this.known.size}` : '',
      text: this.textOf(sql, names),
      names,
    };
    if (isKept) this.known.set(sql, statement);
    return statement;
  }

  private textOf(sql: string, names: string[]): string {
    if (names.length === 0) return sql;
    const tables = names.map((name, i) => {
      const defined = this.given.get(name)!.relation.columns.map((column) => `${column.name} ${column.sql}`);
      return `${name} AS MATERIALIZED (SELECT * FROM json_to_recordset($${i + 1}::json) AS given (${defined.join(', ')}))`;
    });
    const [, own = '', rest] = /^\s*(WITH\s)?([^]*)$/.exec(sql)!;
    return `WITH ${tables.join(', ')}${own ? ', ' : ' '}${rest}`;
  }
}

function jsonOf({ columns }: Relation, rows: readonly JsonRow[]): string {
  const objects = rows.map((row) => {
    let json = '';
    for (const [i, value] of row.entries())
      if (value !== null) json += `${json && ','}"${columns[i]!.name}":${JSON.stringify(value)}`;
    return `{${json}}`;
  });
  return `[${objects.join(',')}]`;
}
