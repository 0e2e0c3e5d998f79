import { setTimeout as sleep } from 'node:timers/promises';
import { DatabaseError } from 'pg';
import { DatabaseClient } from '../../platform/database/client';
import { OperatorError } from '../../platform/errors/operator-error';
import { signalled } from './server';

// Advisory locks, which the server releases when their process ends. Each user of the server holds USER (shared), and stops
// the server only if it gets USER exclusively. The service of a data folder holds SERVICE.
const LOCKS = 0x67776866;
const SERVICE = 1;
const USER = 2;

/** The administrative connection to the embedded server. It holds the locks; when it ends, the server has ended. */
export class ServerSession {
  onLost: () => void = () => undefined;
  lost = false;

  private constructor(
    private readonly client: DatabaseClient,
    readonly port: number,
  ) {
    const lose = () => {
      if (this.lost) return;
      this.lost = true;
      this.onLost();
    };
    client.on('error', lose).on('end', lose);
  }

  /** Undefined: the server does not accept connections at the moment. */
  static async connect(port: number, password: string, name: string): Promise<ServerSession | undefined> {
    const client = new DatabaseClient({
      host: '127.0.0.1',
      port,
      user: 'postgres',
      password,
      database: 'postgres',
      ssl: false,
      application_name: name.slice(0, 63),
      connectionTimeoutMillis: 2_000,
      query_timeout: 5_000,
      // Also overrides PGOPTIONS.
      options: '-c statement_timeout=0 -c idle_session_timeout=0',
    });
    const session = new ServerSession(client, port);
    try {
      await client.connect();
      return session;
    } catch (error) {
      await session.close();
      if (error instanceof DatabaseError && error.code?.startsWith('28'))
        throw new OperatorError(
          `The PostgreSQL on port ${port} rejects the stored password. Restore postgres-password from a backup.`,
        );
      return undefined;
    }
  }

  /** Registers as the service of the data folder, or returns the name of the process that is registered. */
  async becomeService(): Promise<true | string> {
    if (await this.lockSoon(SERVICE)) return true;
    return (await this.others(SERVICE))[0] ?? 'another process';
  }

  /** False if another process is stopping the server. */
  async register(): Promise<boolean> {
    return this.lock('pg_try_advisory_lock_shared', USER);
  }

  /** The names of the other processes that use the server. */
  async others(lock = USER): Promise<string[]> {
    const rows = await this.rows<{ name: string }>(
      `SELECT a.application_name AS name FROM pg_locks l JOIN pg_stat_activity a USING (pid)
       WHERE l.locktype = 'advisory' AND l.classid = $1 AND l.objid = $2 AND l.granted AND pid <> pg_backend_pid()`,
      [LOCKS, lock],
    );
    return rows.map(({ name }) => name);
  }

  /** True for the last user, which must stop the server; no other process can join any longer. */
  async unregister(): Promise<boolean> {
    await this.lock('pg_advisory_unlock_shared', USER);
    return this.lockSoon(USER, async () => (await this.others()).some(isRunning));
  }

  /** The role and the database of the app. */
  async provide(role: string, password: string): Promise<void> {
    const [found] = await this.rows<{ role: boolean; database: boolean }>(
      `SELECT EXISTS (SELECT FROM pg_roles WHERE rolname = $1) AS role,
              EXISTS (SELECT FROM pg_database WHERE datname = $1) AS database`,
      [role],
    );
    if (!found?.role)
      await this.rows(`CREATE ROLE ${role} LOGIN CREATEDB PASSWORD ${this.client.escapeLiteral(password)}`);
    // For `gamewharf restore`.
    await this.rows(`GRANT SET ON PARAMETER session_replication_role TO ${role}`);
    if (!found?.database) await this.rows(`CREATE DATABASE ${role} OWNER ${role}`);
  }

  async close(): Promise<void> {
    this.onLost = () => undefined;
    await Promise.race([this.client.end().catch(() => undefined), sleep(500, undefined, { ref: false })]);
  }

  /** Retries: the connection of a killed process may still exist for a moment. */
  private async lockSoon(key: number, isInUse?: () => Promise<boolean>): Promise<boolean> {
    for (let attempt = 0; attempt < 8; attempt += 1, await sleep(50)) {
      if (await this.lock('pg_try_advisory_lock', key)) return true;
      if (await isInUse?.()) return false;
    }
    return false;
  }

  private async lock(call: string, key: number): Promise<boolean> {
    const [row] = await this.rows<{ done: boolean }>(`SELECT ${call}($1, $2) AS done`, [LOCKS, key]);
    return row?.done === true;
  }

  private async rows<T>(sql: string, values?: unknown[]): Promise<T[]> {
    return (await this.client.query(sql, values)).rows as T[];
  }
}

/** The name of a session begins with its process ID. */
const isRunning = (name: string): boolean => signalled(Number(/^process (\d+)/.exec(name)?.[1]), 0);
