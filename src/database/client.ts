import { Client, Pool, type PoolConfig } from 'pg';

/**
 * A client that has an error listener from the start. A lost connection fails the statements that wait for it; without a
 * listener its `error` event would end the process as well. pg-pool's own listener is taken off while a client is in use.
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
