import type { Writable } from 'node:stream';
import { Client, type ClientBase, Pool, type PoolConfig } from 'pg';

/**
 * A client with an error listener: without one the `error` event of a lost connection ends the process. pg-pool removes its
 * own listener while a client is in use.
 */
export class DatabaseClient extends Client {
  constructor(...[config]: ConstructorParameters<typeof Client>) {
    super(config);
    this.on('error', () => undefined);
  }
}

/** A pool of such clients. */
export function newPool(config: PoolConfig): Pool {
  const pool = new Pool({ ...config, Client: DatabaseClient });
  // The pool has already removed the idle client.
  pool.on('error', () => undefined);
  return pool;
}

/** The queries until the end of this turn of the event loop leave in one write: pg makes a system call for each. */
export function sendTogether(client: Pick<ClientBase, 'query'>): void {
  const { stream } = (client as unknown as { connection: { stream: Writable } }).connection;
  stream.cork();
  setImmediate(() => stream.uncork());
}
