import { Client, type ClientConfig } from 'pg';
import { connectionProblem } from './reachable';

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

/** Works on a connection of its own, which the signal closes. */
export async function withClient<T>(
  config: ClientConfig,
  work: (client: Client) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  signal?.throwIfAborted();
  const client = new DatabaseClient(config);
  await client.connect().catch((error: unknown) => {
    throw connectionProblem(config.connectionString, error) ?? error;
  });
  const close = () => void client.end();
  signal?.addEventListener('abort', close);
  try {
    return await work(client);
  } finally {
    signal?.removeEventListener('abort', close);
    await client.end();
  }
}
