/** A statement that is prepared once per connection and then run by its name. */
export interface Statement<Row = unknown> {
  /** Never set; only for the type of the rows. */
  row?: Row;
  name: string;
  text: string;
  /** Names of the parameters, in the order of their numbers. */
  parameters: readonly string[];
  /** How it shares connections: see the three functions below. */
  group: 'small' | 'long' | 'own connection';
  /** Limits the concurrent statements of a client or on a row: a word and a value, such as `user $user_id`. */
  concurrencyKey?: string;
}

/** The values of a statement's parameters, such as `$user_id`, by name. */
export type Values = Readonly<Record<string, unknown>>;

/** A statement with its own connection, such as a write. `concurrencyKey`: the row that it locks. */
export const statement = <Row>(name: string, text: string, concurrencyKey?: string): Statement<Row> =>
  declare(name, text, 'own connection', concurrencyKey);

/**
 * A small read, which is sent in a batch with others. It must change and lock nothing: if another one of its batch
 * fails, the server rolls it back.
 */
export const read = <Row>(name: string, text: string): Statement<Row> => declare(name, text, 'small');

/**
 * A read of many rows: it has its own connection, and all of them together use at most half of the pool.
 * `concurrencyKey`: the client that requests them.
 */
export const longRead = <Row>(name: string, text: string, concurrencyKey?: string): Statement<Row> =>
  declare(name, text, 'long', concurrencyKey);

function declare<Row>(
  name: string,
  text: string,
  group: Statement['group'],
  concurrencyKey?: string,
): Statement<Row> {
  const parameters: string[] = [];
  const numbered = (sql: string) =>
    sql.replace(/\$([a-z]\w*)/g, (_, parameter: string) => {
      if (!parameters.includes(parameter)) parameters.push(parameter);
      return `$${parameters.indexOf(parameter) + 1}`;
    });
  if (/\$\d/.test(text)) throw new Error(`${name} has a parameter without a name.`);
  return {
    name,
    text: numbered(text),
    parameters,
    group,
    concurrencyKey: concurrencyKey && numbered(concurrencyKey),
  };
}

/** The columns of a row of `table` in a statement. */
export const prefixColumns = (table: string, columns: readonly string[]) =>
  columns.map((column) => `${table}.${column}`).join(', ');

/** A statement with its values. */
export interface BoundStatement<Row = unknown> {
  statement: Statement<Row>;
  values: unknown[];
}

export const bind = <Row>(statement: Statement<Row>, values: Values): BoundStatement<Row> => ({
  statement,
  values: statement.parameters.map((parameter) => {
    if (!Object.hasOwn(values, parameter))
      throw new Error(`${statement.name} has no value for $${parameter}.`);
    return values[parameter];
  }),
});

/** The rows that one of several statements returned. */
export type RowsByStatement = <Row>(statement: Statement<Row>) => Row[];

/** Finds the rows of a statement among those of all, which are in the order of the statements. */
export function rowsByStatement(
  statements: readonly BoundStatement[],
  rows: readonly unknown[][],
): RowsByStatement {
  return <Row>(wanted: Statement<Row>) =>
    rows[statements.findIndex(({ statement }) => statement === wanted)] as Row[];
}

/** The concurrency key with its value, such as `user 7`. */
export const bindConcurrencyKey = ({
  statement: { concurrencyKey },
  values,
}: BoundStatement): string | undefined =>
  concurrencyKey?.replace(/\$(\d+)/, (_, n: string) => String(values[Number(n) - 1]));
