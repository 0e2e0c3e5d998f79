import type { QueryConfig } from 'pg';

/** A statement that is prepared once a connection and then run by its name. */
export interface Statement<Row = unknown> {
  /** Never set: the type of the rows that the statement answers. */
  row?: Row;
  name: string;
  text: string;
  /** It shares its transaction with no other: it writes, or it reads so much that nothing is to wait behind it. */
  alone: boolean;
  /** It reads so much that others like it are not to take all connections. */
  long: boolean;
}

const READS = /^\s*SELECT\b/;

/** What begins with SELECT must do nothing but read: it may be taken back and run again with others. */
export const statement = <Row>(name: string, text: string): Statement<Row> => ({
  name,
  text,
  alone: !READS.test(text),
  long: false,
});
export const longStatement = <Row>(name: string, text: string): Statement<Row> => ({
  name,
  text,
  alone: true,
  long: true,
});

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

/** One transaction whose statements are sent at once, as none needs the rows of another; and the result that its rows make. */
export interface Write<Result> {
  statements: BoundStatement[];
  /** Called with the rows of each statement. It may be after COMMIT: a refusal is for statements that changed nothing. */
  result: (rows: unknown[][]) => Result;
}

export const write = <Statements extends BoundStatement[], Result>(
  statements: [...Statements],
  result: (rows: RowsOf<Statements>) => Result,
): Write<Result> => ({ statements, result: (rows) => result(rows as RowsOf<Statements>) });

/** Without a name where a pooler in between does not track prepared statements. */
export const queryOf = ({ name, text }: Statement, values: unknown[], prepared: boolean): QueryConfig =>
  prepared ? { name, text, values } : { text, values };
