import type { Pool, PoolClient, QueryConfig } from 'pg';
import { isConnectionLost } from '../sqlstates';
import { queryOf, type Statement } from '../statement';
import { sendTogether } from './together';

/** What runs statements: the pool, each on its own, or a transaction. */
export interface Statements {
  rows<Row>(statement: Statement<Row>, values: unknown[]): Promise<Row[]>;
  row<Row>(statement: Statement<Row>, values: unknown[]): Promise<Row | undefined>;
}

/** Where traces are written: what a statement, or a transaction of several, is run within. */
export type Around = <T>(name: string, work: () => Promise<T>) => Promise<T>;

interface Asked {
  query: QueryConfig;
  resolve: (rows: never[]) => void;
  reject: (error: unknown) => void;
}

/** Gathers the statements of one transaction, none of which waits for the answer of another. */
export class Flight implements Statements {
  private asked: Asked[] = [];
  private closed = false;

  constructor(
    private readonly prepared: boolean,
    private readonly around: Around | undefined,
  ) {}

  rows<Row>(statement: Statement<Row>, values: unknown[]): Promise<Row[]> {
    if (this.closed) throw new Error('this transaction has left: ask for all its statements before waiting');
    const answer = unwatched(
      new Promise<Row[]>((resolve, reject) => {
        const query = queryOf(statement, values, this.prepared);
        this.asked.push({ query, resolve: resolve as (rows: never[]) => void, reject });
      }),
    );
    return this.around ? unwatched(this.around(statement.name, () => answer)) : answer;
  }

  row<Row>(statement: Statement<Row>, values: unknown[]): Promise<Row | undefined> {
    return unwatched(this.rows(statement, values).then((rows) => rows[0]));
  }

  close(): QueryConfig[] {
    this.closed = true;
    return this.asked.map(({ query }) => query);
  }

  /** All is committed. */
  answer(rows: unknown[][]): void {
    this.asked.forEach(({ resolve }, i) => resolve(rows[i] as never[]));
  }

  /** Nothing was done; or, where the connection was lost, nobody knows. */
  fail(error: unknown): void {
    for (const { reject } of this.asked) reject(error);
  }
}

/** In one transaction and one write; what each statement answers, once all is committed. */
export function inTransaction(pool: Pool, queries: QueryConfig[]): Promise<unknown[][]> {
  return new Promise((resolve, reject) => {
    const answers: unknown[][] = [];
    sendTogether(pool, queries, {
      answered: (rows) => void answers.push(rows),
      done: (error) => (error ? reject(error) : resolve(answers)),
    });
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
      if (isConnectionLost(error)) throw new Lost(error);
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
  let lost = false;
  try {
    return await work(client);
  } catch (error) {
    lost = error instanceof Lost;
    throw error instanceof Lost ? error.cause : error;
  } finally {
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

  rows<Row>(statement: Statement<Row>, values: unknown[]): Promise<Row[]> {
    const ask = () =>
      this.client.query(queryOf(statement, values, this.prepared)).then(
        ({ rows }) => rows as Row[],
        (error: unknown) => {
          throw (this.failed ??= error);
        },
      );
    return unwatched(this.around ? this.around(statement.name, ask) : ask());
  }

  row<Row>(statement: Statement<Row>, values: unknown[]): Promise<Row | undefined> {
    return unwatched(this.rows(statement, values).then((rows) => rows[0]));
  }
}

/** A statement whose answer nobody waits for fails with the rest of its transaction, and that is enough. */
function unwatched<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined);
  return promise;
}
