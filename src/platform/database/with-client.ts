import type { Client, ClientConfig } from 'pg';
import { DatabaseClient } from './client';
import { connectionProblem } from './reachable';

// pg waits forever for a server that accepts the connection but doesn't respond.
export const CONNECT_TIMEOUT_MS = 5_000;

/** Works on a separate connection, which the signal closes. */
export async function withClient<T>(
  config: ClientConfig,
  work: (client: Client) => Promise<T>,
  signal?: AbortSignal,
): Promise<T> {
  signal?.throwIfAborted();
  const client = await connectClient(config);
  const close = () => void client.end();
  signal?.addEventListener('abort', close);
  try {
    return await work(client);
  } finally {
    signal?.removeEventListener('abort', close);
    await client.end();
  }
}

/** The caller ends the client. */
export async function connectClient(config: ClientConfig): Promise<Client> {
  let client: Client | undefined;
  try {
    client = new DatabaseClient({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, ...config });
    await client.connect();
    return client;
  } catch (error) {
    // pg leaves the connection open if it doesn't have the password that the server requests.
    void client?.end();
    throw connectionProblem(config.connectionString, error) ?? error;
  }
}
