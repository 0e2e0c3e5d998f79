import pg, { type ClientBase, type Connection, Query } from 'pg';
import { serialize } from 'pg-protocol';
import { pgTypes } from '../pg-types';
import type { BoundStatement } from '../statement';

interface Field {
  name: string;
  dataTypeID: number;
  format: 'text' | 'binary';
}

type Row = Record<string, unknown>;

/** How the rows of one statement are read. */
class Columns {
  private readonly names: string[];
  private readonly parsers: ((text: string) => unknown)[];
  private readonly empty: Row;

  constructor(fields: Field[]) {
    this.names = fields.map(({ name }) => name);
    this.parsers = fields.map(({ dataTypeID, format }) => pgTypes.getTypeParser(dataTypeID, format));
    this.empty = Object.fromEntries(this.names.map((name) => [name, null]));
  }

  read(values: (string | null)[]): Row {
    // A copy keeps its hidden class; adding columns one by one changes it with each.
    const row = { ...this.empty };
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (value != null) row[this.names[i]!] = this.parsers[i]!(value);
    }
    return row;
  }
}

const NO_COLUMNS = new Columns([]);

/** The columns of the statements that are prepared on a connection, by name. They never change. */
const preparedOn = new WeakMap<Connection, Map<string, Columns>>();

function columnsPreparedOn(connection: Connection): Map<string, Columns> {
  let columns = preparedOn.get(connection);
  if (!columns) preparedOn.set(connection, (columns = new Map()));
  return columns;
}

/** The function that pg's types omit. */
interface Utils {
  utils: { prepareValue(this: void, value: unknown): unknown };
}
const { prepareValue } = (pg as typeof pg & Utils).utils;

const SYNC = serialize.sync();
const EXECUTE = serialize.execute();
const DESCRIBE = serialize.describe({ type: 'P', name: '' });

interface Listener {
  /** Called with the rows of each statement, in their order. */
  onRows(rows: Row[]): void;
  /** Called once at the end, with the error if any. */
  onEnd(error: Error | undefined): void;
}

/** Several statements as one query of pg, which calls the handlers for every message of the server. */
class Pipeline extends Query {
  declare callback: (error?: Error) => void;
  private finished = 0;
  private found: Row[] = [];
  private readonly columns: (Columns | undefined)[] = [];
  private prepared: Map<string, Columns> | undefined;

  constructor(
    private readonly statements: readonly BoundStatement[],
    private readonly isPrepared: boolean,
    private listener: Listener | undefined,
  ) {
    super({ text: '' });
    // pg calls it once more after a timeout, with the connection's error.
    this.callback = (error) => {
      const { listener } = this;
      this.listener = undefined;
      listener?.onEnd(error);
    };
  }

  // @ts-expect-error pg's types declare a property.
  override submit(connection: Connection): unknown {
    this.prepared = columnsPreparedOn(connection);
    try {
      const messages = Buffer.concat(this.messages(this.prepared));
      if (connection.stream.writable) connection.stream.write(messages);
    } catch (error) {
      // A value could not be serialized: pg passes the returned error to handleError.
      return error;
    }
    return undefined;
  }

  private messages(prepared: Map<string, Columns>): Buffer[] {
    const messages: Buffer[] = [];
    const parsed = new Set<string>();
    for (const { statement, values } of this.statements) {
      const { text } = statement;
      const name = this.isPrepared ? statement.name : '';
      const columns = prepared.get(name);
      this.columns.push(columns);
      if (!name) messages.push(serialize.parse({ text }));
      else if (!columns && !parsed.has(name)) {
        // An earlier pipeline may have prepared it before it failed. Closing an unknown name isn't an error.
        messages.push(serialize.close({ type: 'S', name }), serialize.parse({ name, text }));
        parsed.add(name);
      }
      messages.push(serialize.bind({ statement: name, values, valueMapper: prepareValue }));
      if (!columns) messages.push(DESCRIBE);
      messages.push(EXECUTE);
    }
    messages.push(SYNC);
    return messages;
  }

  handleRowDescription({ fields }: { fields: Field[] }): void {
    this.columns[this.finished] = new Columns(fields);
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.found.push(this.columns[this.finished]!.read(fields));
  }

  handleCommandComplete(): void {
    const { found, finished } = this;
    const { name } = this.statements[finished]!.statement;
    if (this.isPrepared) this.prepared!.set(name, this.columns[finished] ?? NO_COLUMNS);
    this.found = [];
    this.finished++;
    this.listener?.onRows(found);
  }

  handleReadyForQuery(): void {
    this.callback();
  }

  handleError(error: Error & { statement?: string }): void {
    error.statement ??= this.statements[this.finished]?.statement.name;
    this.callback(error);
  }
}

/**
 * Sends the statements with one write to the socket and one Sync: the server runs them as one transaction,
 * unless one is open, and responds with one write. An error has the name of its statement. This is the only
 * file that uses pg's internals, for the reasons in docs/contributing/decisions/performance.md.
 *
 * `isPrepared`: false if a pooler in between does not track prepared statements.
 */
export function sendPipeline(
  client: ClientBase,
  statements: readonly BoundStatement[],
  isPrepared: boolean,
  listener: Listener,
): void {
  client.query(new Pipeline(statements, isPrepared, listener) as never);
}

/** The rows of each statement. */
export function sendTogether(
  client: ClientBase,
  statements: readonly BoundStatement[],
  isPrepared: boolean,
): Promise<unknown[][]> {
  return new Promise((resolve, reject) => {
    const rows: unknown[][] = [];
    sendPipeline(client, statements, isPrepared, {
      onRows: (some) => void rows.push(some),
      onEnd: (error) => (error ? reject(error) : resolve(rows)),
    });
  });
}
