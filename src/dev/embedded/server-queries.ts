import { setTimeout as sleep } from 'node:timers/promises';
import { type Client, DatabaseError } from 'pg';
import { DatabaseClient } from '../../platform/database/client';
import { OperatorError } from '../../platform/errors/operator-error';

/** The number of connections of the app's role; 0 if the server doesn't respond. */
export async function countConnections(url: string): Promise<number> {
  try {
    const { rows } = await connected(url, (client) =>
      client.query<{ count: number }>(
        `SELECT count(*)::int AS count FROM pg_stat_activity WHERE usename = current_user AND pid <> pg_backend_pid()`,
      ),
    );
    return rows[0]!.count;
  } catch {
    return 0;
  }
}

/** Creates the role and the database of that URL. False: the server has been stopped or killed, or doesn't respond. */
export async function createDatabase(url: string, superuserPassword: string): Promise<boolean> {
  const { port, password } = new URL(url);
  const admin = `postgresql://postgres:${superuserPassword}@127.0.0.1:${port}/postgres`;
  try {
    await connected(admin, async (client) => {
      const { rows } = await client.query<Record<'role' | 'database', boolean>>(
        `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = 'gamewharf') AS role,
                EXISTS (SELECT FROM pg_database WHERE datname = 'gamewharf') AS database`,
      );
      const { role, database } = rows[0]!;
      if (!role) await client.query(`CREATE ROLE gamewharf LOGIN CREATEDB PASSWORD '${password}'`);
      // `gamewharf restore` needs it.
      await client.query('GRANT SET ON PARAMETER session_replication_role TO gamewharf');
      if (!database) await client.query('CREATE DATABASE gamewharf OWNER gamewharf');
    });
    return true;
  } catch (error) {
    if (!(error instanceof DatabaseError) || error.code?.startsWith('57P')) return false;
    if (!error.code?.startsWith('28')) throw error;
    throw new OperatorError(
      `PostgreSQL rejects the password in the file postgres-password of the data folder: restore it from a backup.`,
    );
  }
}

async function connected<T>(connectionString: string, work: (client: Client) => Promise<T>): Promise<T> {
  const client = new DatabaseClient({
    connectionString,
    ssl: false,
    connectionTimeoutMillis: 2_000,
    query_timeout: 5_000,
    // Also overrides PGOPTIONS.
    options: '-c statement_timeout=0',
  });
  try {
    await client.connect();
    return await work(client);
  } finally {
    // A server that hangs doesn't close the connection.
    await Promise.race([client.end().catch(() => undefined), sleep(500, undefined, { ref: false })]);
  }
}
