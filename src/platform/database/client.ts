import { Client, type ClientConfig } from 'pg';

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

/** Works on a connection of its own. */
export async function withClient<T>(config: ClientConfig, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new DatabaseClient(config);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
