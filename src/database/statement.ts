import type { QueryConfig } from 'pg';

/** A statement that is prepared once a connection and then run by its name. */
export interface Statement {
  name: string;
  text: string;
  /** It reads many rows: nothing is to wait behind it on one connection. */
  alone?: true;
}

export const statement = (name: string, text: string): Statement => ({ name, text });
export const longStatement = (name: string, text: string): Statement => ({ name, text, alone: true });

/** Without a name where a pooler in between does not track prepared statements. */
export const queryOf = ({ name, text }: Statement, values: unknown[], prepared: boolean): QueryConfig =>
  prepared ? { name, text, values } : { text, values };
