import type { Pool, PoolClient, QueryConfig, QueryResult, QueryResultRow } from 'pg';
import { queryOf, type Statement } from './statement';

/** What runs statements: the pool, each on its own, or a transaction. */
export interface Statements {
  rows<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row[]>;
  row<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row | undefined>;
}

interface Asked {
  query: QueryConfig;
  resolve: (rows: never[]) => void;
  reject: (error: unknown) => void;
}

/** Gathers statements and sends them as one transaction, without waiting for an answer in between. */
export class Flight implements Statements {
  private asked: Asked[] | undefined = [];

  constructor(private readonly prepared: boolean) {}

  rows<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row[]> {
    if (!this.asked) throw new Error('this transaction has left: ask for all its statements before waiting');
    const { asked } = this;
    return unwatched(
      new Promise<Row[]>((resolve, reject) => {
        const query = queryOf(statement, values, this.prepared);
        asked.push({ query, resolve: resolve as (rows: never[]) => void, reject });
      }),
    );
  }

  row<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row | undefined> {
    return unwatched(this.rows<Row>(statement, values).then((rows) => rows[0]));
  }

  /** Answers every statement once all is committed, or fails every one with the error of the first that failed. */
  async leave(pool: Pool): Promise<void> {
    const asked = this.asked!;
    this.asked = undefined;
    if (asked.length === 0) return;
    try {
      const answers =
        asked.length === 1
          ? [await pool.query(asked[0]!.query)]
          : await inTransaction(
              pool,
              asked.map(({ query }) => query),
            );
      asked.forEach(({ resolve }, i) => resolve(answers[i]!.rows as never[]));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
  }
}

async function inTransaction(pool: Pool, queries: QueryConfig[]): Promise<QueryResult[]> {
  const client = await pool.connect();
  const answers = await Promise.allSettled([
    client.query('BEGIN'),
    ...queries.map((query) => client.query(query)),
    // After a failure the server takes this for a ROLLBACK.
    client.query('COMMIT'),
  ]);
  const failed = answers.find((answer) => answer.status === 'rejected');
  const lost = answers.at(-1)!.status === 'rejected';
  client.release(lost);
  if (failed) throw failed.reason;
  return answers.slice(1, -1).map((answer) => (answer as PromiseFulfilledResult<QueryResult>).value);
}

/** A transaction that may wait for any of its statements; all after one that failed fail with its error. */
export class Dialogue implements Statements {
  private failed: unknown;

  constructor(
    private readonly client: PoolClient,
    private readonly prepared: boolean,
  ) {}

  rows<Row extends QueryResultRow>(statement: Statement, values: unknown[]): Promise<Row[]> {
    return unwatched(
      this.client.query<Row>(queryOf(statement, values, this.prepared)).then(
        ({ rows }) => rows,
        (error: unknown) => {
          throw (this.failed ??= error);
        },
      ),
    );
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
