import pg, { type Connection, type Pool, Query, type QueryConfig } from 'pg';
import { serialize } from 'pg-protocol';
import { pgTypes } from '../pg-types';
import { concernsOneStatement, NotConnected } from '../sqlstates';
import type { Statement } from '../statement';

/** Without a name if a pooler in between does not track prepared statements. */
export const queryOf = (
  { name, text }: Pick<Statement, 'name' | 'text'>,
  values: unknown[],
  prepared: boolean,
): QueryConfig => (prepared ? { name, text, values } : { text, values });

/** The part of pg's connection that its types omit, as pg's own Query uses it. */
interface Wire extends Connection {
  /** By name, the texts of the statements that the server has prepared. */
  parsedStatements: Record<string, string>;
  /** By name, the texts that were sent but are not prepared yet. */
  submittedNamedStatements: Record<string, string>;
  _send(messages: Buffer): boolean;
}

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

  rowOf(values: (string | null)[]): Row {
    // A copy keeps its hidden class; adding columns one by one changes it with each.
    const row = { ...this.empty };
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (value != null) row[this.names[i]!] = this.parsers[i]!(value);
    }
    return row;
  }
}

// The columns of a prepared statement never change: the server would reject it.
const columnsOn = new WeakMap<Wire, Map<string, Columns>>();

function columnsOf(connection: Wire): Map<string, Columns> {
  let columns = columnsOn.get(connection);
  if (!columns) columnsOn.set(connection, (columns = new Map()));
  return columns;
}

/** Left out of pg's types. */
interface Utils {
  utils: { prepareValue(this: void, value: unknown): unknown };
}
const { prepareValue } = (pg as typeof pg & Utils).utils;

const SYNC = serialize.sync();
const EXECUTE = serialize.execute();
const DESCRIBE = serialize.describe({ type: 'P', name: '' });

/** Receives the results of a pipeline. */
interface PipelineListener {
  /** Called with the rows of each statement, in their order. */
  onRows(rows: Row[]): void;
  /** Called once at the end, with the error if any. */
  onEnd(error: Error | undefined): void;
}

/**
 * Several statements as one query of pg: one write to the socket and one Sync, so one transaction. pg calls the
 * handlers for every message; `name` and `text` are those of the statement whose result comes next. This is the only
 * file that uses pg's internals. At 32 connections, a statement with one row takes 16 µs of CPU time here and 43 µs in
 * pg's own pipeline mode, and eight statements take 190 to 330 µs instead of 660 to 905 µs.
 */
class PipelineQuery extends Query {
  declare name: string | undefined;
  declare text: string;
  declare callback: (error?: Error) => void;
  listener: PipelineListener | undefined;
  private finished = 0;
  private readonly columns: (Columns | undefined)[];
  private found: Row[] = [];
  private connection: Wire | undefined;

  constructor(
    private readonly queries: QueryConfig[],
    listener: PipelineListener,
  ) {
    super({ text: '' });
    this.listener = listener;
    this.columns = new Array<Columns | undefined>(queries.length).fill(undefined);
    this.expectNext();
  }

  // @ts-expect-error pg's types declare a property, and a connection without its private fields.
  override submit(connection: Wire): unknown {
    this.connection = connection;
    try {
      connection._send(this.messagesFor(connection));
    } catch (error) {
      // A value could not be serialized: pg passes the returned error to handleError.
      return error;
    }
    return undefined;
  }

  private messagesFor(connection: Wire): Buffer {
    const known = columnsOf(connection);
    const messages: Buffer[] = [];
    for (let i = 0; i < this.queries.length; i++) {
      const { name, text, values } = this.queries[i]!;
      if (!name) messages.push(serialize.parse({ text }));
      else if (!connection.parsedStatements[name] && !connection.submittedNamedStatements[name]) {
        connection.submittedNamedStatements[name] = text;
        messages.push(serialize.parse({ name, text }));
      }
      messages.push(serialize.bind({ statement: name, values, valueMapper: prepareValue }));
      const columns = name === undefined ? undefined : known.get(name);
      this.columns[i] = columns;
      if (!columns) messages.push(DESCRIBE);
      messages.push(EXECUTE);
    }
    messages.push(SYNC);
    return Buffer.concat(messages);
  }

  handleRowDescription({ fields }: { fields: Field[] }): void {
    const columns = new Columns(fields);
    this.columns[this.finished] = columns;
    if (this.name) columnsOf(this.connection!).set(this.name, columns);
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.found.push(this.columns[this.finished]!.rowOf(fields));
  }

  handleCommandComplete(): void {
    const { found } = this;
    this.found = [];
    this.finished++;
    this.expectNext();
    this.listener?.onRows(found);
  }

  handleReadyForQuery(): void {
    this.callback();
  }

  handleError(error: Error): void {
    const { submittedNamedStatements } = this.connection ?? {};
    if (submittedNamedStatements)
      for (const { name } of this.queries.slice(this.finished))
        if (name) delete submittedNamedStatements[name];
    this.callback(error);
  }

  private expectNext(): void {
    const next = this.queries[this.finished];
    this.name = next?.name;
    this.text = next?.text ?? '';
  }
}

/** Runs the queries in one transaction and one write to the socket; returns the rows of each after the commit. */
export function inTransaction(pool: Pool, queries: QueryConfig[]): Promise<unknown[][]> {
  return new Promise((resolve, reject) => {
    const rows: unknown[][] = [];
    sendPipeline(pool, queries, {
      onRows: (some) => void rows.push(some),
      onEnd: (error) => (error ? reject(error) : resolve(rows)),
    });
  });
}

export const noneFree = () => new NotConnected('no connection was free in time');

/**
 * Sends the queries on one connection of the pool. A lost connection does not return to it. `waited`: how long the
 * queries have already waited, because the pool only counts its own waiting time.
 */
export function sendPipeline(
  pool: Pool,
  queries: QueryConfig[],
  listener: PipelineListener,
  waited = 0,
): void {
  // The pool's queue may retain this callback for long, but not what the listener references.
  let waiting: PipelineListener | undefined = listener;
  const giveUp = () => {
    const rejected = waiting!;
    waiting = undefined;
    rejected.onEnd(noneFree());
  };
  const timer = waited > 0 ? setTimeout(giveUp, pool.options.connectionTimeoutMillis! - waited) : undefined;
  pool.connect((error, client, release) => {
    clearTimeout(timer);
    const served = waiting;
    waiting = undefined;
    // Already rejected: the pool gave up as well, or assigns a connection too late.
    if (!served) return client && release();
    if (error) {
      served.onEnd(error);
      return;
    }
    const query = new PipelineQuery(queries, served);
    query.callback = (error) => {
      const { listener } = query;
      // After a timeout pg fails the query once more, with its connection.
      if (!listener) return;
      query.listener = undefined;
      release(error !== undefined && !concernsOneStatement(error));
      listener.onEnd(error);
    };
    client!.query(query as never);
  });
}
