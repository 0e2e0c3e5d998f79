import type { ClientBase, QueryConfig, QueryResult, QueryResultRow } from 'pg';
import { queryOf } from './pool/pipeline';
import type { Statement } from './statement';

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
  readonly few: boolean;
}

/** Sends a statement in a transaction, without waiting for those sent before. */
export type Send = <Row extends QueryResultRow>(query: QueryConfig) => Promise<QueryResult<Row>>;

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
export type GivenRow = readonly (string | null)[];

/** The SQL of a relation in a statement. */
type Source = { form: 'none' } | { form: 'row'; row: GivenRow } | { form: 'json'; json: string };

interface Given {
  relation: Relation;
  rows: number;
  source: Source;
}

/** Number of cached statements, which connections keep. */
const MAX_STATEMENTS = 1000;

/** What an app has found out about statements with given rows. */
export class GivenStatements {
  /** By text: the relations in it. */
  readonly names = new Map<string, string[]>();
  /** By text, and the form of each relation in it. */
  readonly prepared = new Map<string, Pick<Statement, 'name' | 'text'>>();
}

const NO_ROWS: Source = { form: 'none' };

/** Relations as parameters of each statement: for a few rows, without a row in the catalog. */
export class GivenRows implements Relations {
  readonly few = true;
  private readonly given = new Map<string, Given>();

  constructor(
    private readonly send: Send,
    /** Whether the connection keeps prepared statements. */
    private readonly keepsPrepared: boolean,
    private readonly known: GivenStatements,
  ) {}

  give(relation: Relation, rows: readonly GivenRow[]): void {
    this.given.set(relation.name, { relation, rows: rows.length, source: sourceOf(relation, rows) });
  }

  query<Row extends object>(sql: string) {
    const all = this.namesIn(sql).map((name) => this.given.get(name)!);
    const found = this.keepsPrepared ? this.prepared(sql, all) : { name: '', text: this.textOf(sql, all) };
    return this.send<Row>(queryOf(found, all.flatMap(valuesOf), this.keepsPrepared));
  }

  async keep(relation: Relation, sql: string): Promise<number> {
    const { rows } = await this.query<{ json: string; rows: number }>(
      `SELECT coalesce(json_agg(kept), '[]')::text AS json, count(*)::int AS rows FROM (${sql}) kept`,
    );
    const { json, rows: count } = rows[0]!;
    this.given.set(relation.name, {
      relation,
      rows: count,
      source: count === 0 ? NO_ROWS : { form: 'json', json },
    });
    return count;
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
    const { source } = this.given.get(name)!;
    return source.form === 'json' ? source.json : '[]';
  }

  private namesIn(sql: string): string[] {
    const known = this.known.names.get(sql);
    if (known) return known;
    const names = [...new Set(sql.match(/\w+/g))].filter((word) => this.given.has(word));
    if (this.keepsPrepared) this.known.names.set(sql, names);
    return names;
  }

  private prepared(sql: string, all: Given[]) {
    const { prepared } = this.known;
    const key = `${all.map(({ source }) => source.form).join(' ')} ${sql}`;
    const known = prepared.get(key);
    if (known) return known;
    const isKept = prepared.size < MAX_STATEMENTS;
    // Without a name no connection keeps it.
    const made = { name: isKept ? `given_rows_${prepared.size}` : '', text: this.textOf(sql, all) };
    if (isKept) prepared.set(key, made);
    return made;
  }

  private textOf(sql: string, all: Given[]): string {
    if (all.length === 0) return sql;
    let values = 0;
    const tables = all.map(({ relation: { name, columns }, source }) => {
      const nextValue = () => `$${++values}`;
      switch (source.form) {
        case 'none':
          return `${name} AS (SELECT ${columns.map((column) => `NULL::${column.sql} AS ${column.name}`).join(', ')} WHERE false)`;
        case 'row':
          return `${name} AS NOT MATERIALIZED (SELECT ${columns.map((column) => `${nextValue()}::${column.sql} AS ${column.name}`).join(', ')})`;
        case 'json': {
          const defined = columns.map((column) => `${column.name} ${column.sql}`).join(', ');
          return `${name} AS MATERIALIZED (SELECT * FROM json_to_recordset(${nextValue()}::json) AS given (${defined}))`;
        }
      }
    });
    const [, own = '', rest] = /^\s*(WITH\s)?([^]*)$/.exec(sql)!;
    return `WITH ${tables.join(', ')}${own ? ', ' : ' '}${rest}`;
  }
}

function sourceOf({ columns }: Relation, rows: readonly GivenRow[]): Source {
  if (rows.length === 0) return NO_ROWS;
  if (rows.length === 1) return { form: 'row', row: columns.map((_, i) => rows[0]![i] ?? null) };
  const objects = rows.map((row) => {
    let json = '';
    for (const [i, value] of row.entries())
      if (value !== null) json += `${json && ','}"${columns[i]!.name}":${JSON.stringify(value)}`;
    return `{${json}}`;
  });
  return { form: 'json', json: `[${objects.join(',')}]` };
}

function valuesOf({ source }: Given): readonly (string | null)[] {
  if (source.form === 'row') return source.row;
  return source.form === 'json' ? [source.json] : [];
}
