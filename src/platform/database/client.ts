import { Client, Pool, type PoolConfig } from 'pg';

/**
 * A client with an error listener: without one the `error` event of a lost connection ends the process. pg-pool removes
 * its own listener while a client is in use.
 */
export class DatabaseClient extends Client {
  constructor(...[config]: ConstructorParameters<typeof Client>) {
    super(config);
    this.on('error', () => undefined);
  }
}

/** A pool that replaces lost connections. */
export function newPool(config: PoolConfig): Pool {
  const pool = new Pool({ ...config, Client: DatabaseClient });
  pool.on('error', () => undefined);
  return pool;
}
