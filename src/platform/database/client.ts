import { Client } from 'pg';

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
