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

/** Without a name where a pooler in between does not track prepared statements. */
export const queryOf = ({ name, text }: Statement, values: unknown[], prepared: boolean): QueryConfig =>
  prepared ? { name, text, values } : { text, values };
