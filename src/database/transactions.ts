import type { Pool, PoolClient, QueryConfig, QueryResult, QueryResultRow } from 'pg';
import { type Gathering, inOneWrite } from './gathering';
import { isSilent } from './sqlstates';
import { queryOf, type Statement } from './statement';

/** What runs statements: the pool, each on its own, or a transaction. */
export interface Statements {
  rows<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row[]>;
  row<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row | undefined>;
}

/** Where traces are written: what a statement, or a transaction of several, is run within. */
export type Around = <T>(name: string, work: () => Promise<T>) => Promise<T>;

interface Asked {
  query: QueryConfig;
  resolve: (rows: never[]) => void;
  reject: (error: unknown) => void;
}

/** Gathers statements and sends them as one transaction, without waiting for an answer in between. */
export class Flight implements Statements {
  private asked: Asked[] | undefined = [];

  constructor(
    private readonly prepared: boolean,
    private readonly around: Around | undefined,
  ) {}

  rows<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row[]> {
    if (!this.asked) throw new Error('this transaction has left: ask for all its statements before waiting');
    const { asked } = this;
    const answer = unwatched(
      new Promise<Row[]>((resolve, reject) => {
        const query = queryOf(statement, values, this.prepared);
        asked.push({ query, resolve: resolve as (rows: never[]) => void, reject });
      }),
    );
    return this.around ? unwatched(this.around(statement.name, () => answer)) : answer;
  }

  row<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row | undefined> {
    return unwatched(this.rows<Row>(statement, values).then((rows) => rows[0]));
  }

  /** Answers every statement once all is committed, or fails every one with the error of the first that failed. */
  async leave(pool: Pool, gathering: Gathering): Promise<void> {
    const asked = this.asked!;
    this.asked = undefined;
    if (asked.length === 0) return;
    try {
      const queries = asked.map(({ query }) => query);
      const answers =
        queries.length === 1 ? [await gathering.rows(queries[0]!, true)] : await inTransaction(pool, queries);
      asked.forEach(({ resolve }, i) => resolve(answers[i] as never[]));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }
}

/** In one transaction and one write; what each statement answers. */
export function inTransaction(pool: Pool, queries: QueryConfig[]): Promise<unknown[][]> {
  return withClient(pool, async (client) => {
    const answers = await Promise.allSettled(
      inOneWrite(client, () => [
        client.query('BEGIN'),
        ...queries.map((query) => client.query(query)),
        // After a failure the server takes this for a ROLLBACK.
        client.query('COMMIT'),
      ]),
    );
    const failed = answers.find((answer) => answer.status === 'rejected');
    if (!failed)
      return answers.slice(1, -1).map((answer) => (answer as PromiseFulfilledResult<QueryResult>).value.rows);
    if (answers.at(-1)!.status === 'rejected') throw new Lost(failed.reason);
    throw failed.reason;
  });
}

/** Runs `work` in a transaction, one statement after the other. */
export function inDialogue<Result>(
  pool: Pool,
  prepared: boolean,
  around: Around | undefined,
  work: (db: Statements) => Promise<Result>,
): Promise<Result> {
  return withClient(pool, async (client) => {
    try {
      await client.query('BEGIN');
      const result = await work(new Dialogue(client, prepared, around));
      await client.query('COMMIT');
      return result;
    } catch (error) {
      // A connection that hangs would let its ROLLBACK wait too.
      if (isSilent(error)) throw new Lost(error);
      await client.query('ROLLBACK').catch(() => {
        throw new Lost(error);
      });
      throw error;
    }
  });
}

/** The connection cannot be used again; the cause is what the caller is told. */
class Lost extends Error {
  constructor(override readonly cause: unknown) {
    super('connection lost');
  }
}

async function withClient<Result>(
  pool: Pool,
  work: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  // A connection that breaks while it is ours fails the statements that wait on it, and must not end the process too.
  const ignore = () => undefined;
  client.on('error', ignore);
  let lost = false;
  try {
    return await work(client);
  } catch (error) {
    lost = error instanceof Lost;
    throw error instanceof Lost ? error.cause : error;
  } finally {
    client.off('error', ignore);
    client.release(lost);
  }
}

/** A transaction that may wait for any of its statements; all after one that failed fail with its error. */
class Dialogue implements Statements {
  private failed: unknown;

  constructor(
    private readonly client: PoolClient,
    private readonly prepared: boolean,
    private readonly around: Around | undefined,
  ) {}

  rows<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row[]> {
    const ask = () =>
      this.client.query<Row>(queryOf(statement, values, this.prepared)).then(
        ({ rows }) => rows,
        (error: unknown) => {
          throw (this.failed ??= error);
        },
      );
    return unwatched(this.around ? this.around(statement.name, ask) : ask());
  }

  row<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row | undefined> {
    return unwatched(this.rows<Row>(statement, values).then((rows) => rows[0]));
  }
}

/** A statement whose answer nobody waits for fails with the rest of its transaction, and that is enough. */
function unwatched<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
