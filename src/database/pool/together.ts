import pg, { type Connection, type Pool, Query, type QueryConfig } from 'pg';
import { serialize } from 'pg-protocol';
import { pgTypes } from '../pg-types';
import { concernsOneStatement } from '../sqlstates';

/** What pg's connection is beyond its types: pg's own Query uses it in the same way. */
interface Wire extends Connection {
  /** By name, the texts that the server has. */
  parsedStatements: Record<string, string>;
  /** By name, the texts that are on their way to it. */
  submittedNamedStatements: Record<string, string>;
  _send(messages: Buffer): boolean;
}

interface Field {
  name: string;
  dataTypeID: number;
  format: 'text' | 'binary';
}

export type Row = Record<string, unknown>;

/** How the rows of one statement are read. */
class Columns {
  private readonly names: string[];
  private readonly parsers: ((text: string) => unknown)[];
  private readonly empty: Row = {};

  constructor(fields: Field[]) {
    this.names = fields.map(({ name }) => name);
    this.parsers = fields.map(({ dataTypeID, format }) => pgTypes.getTypeParser(dataTypeID, format));
    for (const name of this.names) this.empty[name] = null;
  }

  rowOf(values: (string | null)[]): Row {
    // A copy of a whole row keeps its shape; a row that grows column by column changes it with each.
    const row = { ...this.empty };
    for (let i = 0; i < values.length; i++) {
      const value = values[i];
      if (value != null) row[this.names[i]!] = this.parsers[i]!(value);
    }
    return row;
  }
}

// Of a prepared statement they never change: the server would refuse to run it.
const columnsOn = new WeakMap<Wire, Map<string, Columns>>();

function columnsOf(connection: Wire): Map<string, Columns> {
  let columns = columnsOn.get(connection);
  if (!columns) columnsOn.set(connection, (columns = new Map()));
  return columns;
}

const { prepareValue } = (pg as unknown as { utils: { prepareValue: (value: unknown) => unknown } }).utils;

const SYNC = serialize.sync();
const EXECUTE = serialize.execute();
const DESCRIBE = serialize.describe({ type: 'P', name: '' });

export interface Told {
  /** The rows of each statement that was run, in their order; those of a transaction count once all is done. */
  answered(rows: Row[]): void;
  /** Once, at the end; and why not all were run. */
  done(error: Error | undefined): void;
}

/**
 * Statements that are sent as one: one write, one Sync and with it one transaction of the server's, one answer; and columns
 * are described once a connection. For pg it is one query, whose handlers it calls for every message; `name` and `text` are
 * those of the statement whose answer is coming, by which pg knows what is prepared.
 *
 * The first that fails ends the transaction: those behind it are not run.
 */
class Together extends Query {
  declare name: string | undefined;
  declare text: string;
  declare callback: (error?: Error) => void;
  told: Told | undefined;
  private answered = 0;
  private readonly columns: (Columns | undefined)[];
  private found: Row[] = [];
  private connection: Wire | undefined;

  constructor(
    private readonly queries: QueryConfig[],
    told: Told,
  ) {
    super({ text: '' });
    this.told = told;
    this.columns = new Array<Columns | undefined>(queries.length).fill(undefined);
    this.expectNext();
  }

  // @ts-expect-error pg's types call it a property, of a connection without insides.
  override submit(connection: Wire): unknown {
    this.connection = connection;
    try {
      connection._send(this.messagesFor(connection));
    } catch (error) {
      // A value that cannot be written: pg hands it to handleError.
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
    this.columns[this.answered] = columns;
    if (this.name) columnsOf(this.connection!).set(this.name, columns);
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.found.push(this.columns[this.answered]!.rowOf(fields));
  }

  handleCommandComplete(): void {
    const { found } = this;
    this.found = [];
    this.answered++;
    this.expectNext();
    this.told?.answered(found);
  }

  handleReadyForQuery(): void {
    this.callback();
  }

  handleError(error: Error): void {
    const { submittedNamedStatements } = this.connection ?? {};
    if (submittedNamedStatements)
      for (const { name } of this.queries.slice(this.answered))
        if (name) delete submittedNamedStatements[name];
    this.callback(error);
  }

  private expectNext(): void {
    const next = this.queries[this.answered];
    this.name = next?.name;
    this.text = next?.text ?? '';
  }
}

/** Runs the queries in one transaction and one write to the socket; the rows of each, once all is committed. */
export function inTransaction(pool: Pool, queries: QueryConfig[]): Promise<unknown[][]> {
  return new Promise((resolve, reject) => {
    const rows: unknown[][] = [];
    sendTogether(pool, queries, {
      answered: (some) => void rows.push(some),
      done: (error) => (error ? reject(error) : resolve(rows)),
    });
  });
}

/**
 * On one connection of the pool, which is back in it when all is done; a connection that is lost is not. Nothing that the pool
 * had in its queue leads to what was answered: V8 lets a queue that has grown old keep alive whatever once stood in it.
 */
export function sendTogether(pool: Pool, queries: QueryConfig[], told: Told): void {
  let waiting: Told | undefined = told;
  pool.connect((refused, client, release) => {
    const whom = waiting!;
    waiting = undefined;
    if (refused) {
      whom.done(refused);
      return;
    }
    const together = new Together(queries, whom);
    together.callback = (error) => {
      const { told } = together;
      // After a timeout pg goes on to fail the query with its connection.
      if (!told) return;
      together.told = undefined;
      release(error !== undefined && !concernsOneStatement(error));
      told.done(error);
    };
    client!.query(together as never);
  });
}
