/** A statement that is prepared once a connection and then run by its name. */
export interface Statement<Row = unknown> {
  /** Never set: the type of the rows that the statement answers. */
  row?: Row;
  name: string;
  text: string;
  /** How it shares connections: see the three functions that make one. */
  group: 'small' | 'long' | 'alone';
}

/** A statement that has a connection to itself, such as a write. */
export const statement = <Row>(name: string, text: string): Statement<Row> => ({
  name,
  text,
  group: 'alone',
});

/**
 * A small read, which is sent in a batch with others. It must change and lock nothing: where another one of its batch fails,
 * the server undoes what it did.
 */
export const read = <Row>(name: string, text: string): Statement<Row> => ({ name, text, group: 'small' });

/** A read of many rows: it has a connection to itself, and all of them together have at most half of the pool. */
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

/** The rows of each of several statements. */
export type RowsOf<Statements extends BoundStatement[]> = {
  [I in keyof Statements]: Statements[I] extends BoundStatement<infer Row> ? Row[] : never;
};

/** The row that a write locks first. Writes of different tables never share a transaction. */
export interface RowLock {
  /** The table of the row. */
  of: string;
  /** The id of the row, and its place in the order of all locks. */
  id: number;
}

/** One transaction whose statements are sent at once, as none needs the rows of another; and the result that its rows make. */
export interface Write<Result> {
  statements: BoundStatement[];
  /** Called with the rows of each statement. It may be after COMMIT: a refusal is for statements that changed nothing. */
  result: (rows: unknown[][]) => Result;
  /** Writes with the same lock follow each other, and may share a transaction. */
  lock?: RowLock;
}

export const write = <Statements extends BoundStatement[], Result>(
  statements: [...Statements],
  result: (rows: RowsOf<Statements>) => Result,
  lock?: RowLock,
): Write<Result> => ({ statements, result: (rows) => result(rows as RowsOf<Statements>), lock });
