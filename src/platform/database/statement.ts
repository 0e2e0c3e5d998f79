/** A statement that is prepared once per connection and then run by its name. */
export interface Statement<Row = unknown> {
  /** Never set; only for the type of the rows. */
  row?: Row;
  name: string;
  text: string;
  /** How it shares connections: see the three functions below. */
  group: 'small' | 'long' | 'alone';
}

/** A statement with its own connection, such as a write. */
export const statement = <Row>(name: string, text: string): Statement<Row> => ({
  name,
  text,
  group: 'alone',
});

/**
 * A small read, which is sent in a batch with others. It must change and lock nothing: if another one of its batch
 * fails, the server rolls it back.
 */
export const read = <Row>(name: string, text: string): Statement<Row> => ({ name, text, group: 'small' });

/** A read of many rows: it has its own connection, and all of them together use at most half of the pool. */
export const longRead = <Row>(name: string, text: string): Statement<Row> => ({ name, text, group: 'long' });

/** The columns of a row of `table` in a statement. */
export const columnsOf = (table: string, columns: readonly string[]) =>
  columns.map((column) => `${table}.${column}`).join(', ');

/** A statement with its values. */
export interface BoundStatement<Row = unknown> {
  statement: Statement<Row>;
  values: unknown[];
}

export const bind = <Row>(statement: Statement<Row>, values: unknown[]): BoundStatement<Row> => ({
  statement,
  values,
});

/** The rows that one of several statements returned. */
export type RowsOf = <Row>(statement: Statement<Row>) => Row[];

/** Finds the rows of a statement among those of all, which are in the order of the statements. */
export function rowsByStatement(statements: readonly BoundStatement[], rows: readonly unknown[][]): RowsOf {
  return <Row>(wanted: Statement<Row>) =>
    rows[statements.findIndex(({ statement }) => statement === wanted)] as Row[];
}

/** The row that a write locks first. Writes of different tables never share a transaction. */
export interface RowLock {
  /** The table of the row. */
  of: string;
  /** The ID of the row, which also orders the locks. */
  id: number;
}

/**
 * One transaction whose statements are sent at once, because none needs the rows of another, and the result of its
 * rows.
 */
export interface Write<Result> {
  statements: BoundStatement[];
  /** May run after COMMIT, so it may throw only if the statements changed nothing. */
  result: (rowsOf: RowsOf) => Result;
  /** Writes with the same lock run one after the other, and may share a transaction. */
  lock?: RowLock;
}
