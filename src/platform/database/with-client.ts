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
  const client = new DatabaseClient({ connectionTimeoutMillis: CONNECT_TIMEOUT_MS, ...config });
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
