import { randomBytes } from 'node:crypto';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { type Client, escapeIdentifier } from 'pg';
import { from as copyFrom } from 'pg-copy-streams';
import { OperatorError } from '../../errors/operator-error';
import type { Settings } from '../../config/settings';
import { asBaseline, migrationNames, runOnly } from '../baseline';
import { withClient } from '../with-client';
import { migrate, newMigrator } from '../migrate';
import { fingerprint } from './backup';
import type { BackupReader, Header, Trailer } from './backup-file';

type StoreSettings = Pick<Settings, 'DATABASE_URL' | 'API_KEY_PEPPER'>;

/**
 * Replaces the store with a backup. The backup is restored into a new database next to the old one, which is dropped
 * when the new one is complete: a failed restore changes nothing.
 */
export async function restore(
  settings: StoreSettings,
  backup: BackupReader,
  { replace, say, signal }: { replace: boolean; say: (line: string) => void; signal?: AbortSignal },
): Promise<Header & { webhooks: number }> {
  const header = await backup.header();
  const { API_KEY_PEPPER } = settings;
  if (header.pepper && API_KEY_PEPPER && header.pepper !== fingerprint(API_KEY_PEPPER))
    throw new OperatorError(
      'The backup was created with another API_KEY_PEPPER. Its API keys work only with that pepper: set API_KEY_PEPPER to it.',
    );
  const name = parseDatabaseName(settings);
  const beside = `${name.slice(0, 40)}_restore_${randomBytes(4).toString('hex')}`;
  await onDatabase(settings, async (client) => requireReplaceable(client, replace));
  await requirePrivileges(settings);
  // An operator may have added tables and extensions to template1.
  await administer(settings, (client) =>
    client.query(`CREATE DATABASE ${escapeIdentifier(beside)} TEMPLATE template0`),
  );
  let webhooks = 0;
  try {
    const target = { DATABASE_URL: withDatabase(settings, beside) };
    await migrateTo(target, header.migrations);
    await onDatabase(target, (client) => load(client, backup), signal);
    await migrate(target, say);
    const analyze = async (client: Client) => {
      await client.query('ANALYZE');
      webhooks = (await client.query('SELECT FROM webhooks WHERE ended_at IS NULL')).rowCount!;
    };
    await onDatabase(target, analyze, signal);
    // This isn't interruptible: between its statements, there is no store.
    await administer(settings, (client) => swap(client, name, beside, say));
  } catch (error) {
    await administer(settings, (client) =>
      client.query(`DROP DATABASE IF EXISTS ${escapeIdentifier(beside)} WITH (FORCE)`),
    );
    throw error;
  }
  return { ...header, webhooks };
}

async function requireReplaceable(client: Client, replace: boolean): Promise<void> {
  const { rows } = await client.query<{ users: string | null; others: boolean }>(
    `SELECT to_regclass('public.users') AS users, EXISTS (
       SELECT FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'
     ) AS others`,
  );
  if (rows[0]!.others)
    throw new OperatorError('The database is in use. Stop the service and all other clients first.');
  if (!rows[0]!.users || replace) return;
  const found = await client.query('SELECT FROM users LIMIT 1');
  if (found.rowCount)
    throw new OperatorError(
      'The database already contains a store. To replace it with the backup, add --replace.',
    );
}

async function requirePrivileges(settings: StoreSettings): Promise<void> {
  const { rows } = await administer(settings, (client) =>
    client.query<{ role: string; may: boolean }>(
      `SELECT rolname AS role, rolsuper OR rolcreatedb
         AND has_parameter_privilege('session_replication_role', 'SET') AS may
       FROM pg_roles WHERE rolname = current_user`,
    ),
  );
  const { role, may } = rows[0]!;
  if (!may)
    throw new OperatorError(
      `A restore needs permission to create databases and to set session_replication_role, which ${role} doesn't have. ` +
        'As a superuser, grant it until the restore is complete: ' +
        `ALTER ROLE ${role} CREATEDB; GRANT SET ON PARAMETER session_replication_role TO ${role}; ` +
        'or use pg_dump and pg_restore. Nothing was changed.',
    );
}

/** Migrates an empty database to the schema of the backup. */
async function migrateTo(target: Pick<Settings, 'DATABASE_URL'>, names: string[]): Promise<void> {
  const source = newMigrator(target);
  await source.initialize();
  try {
    const known = migrationNames(source);
    const applied = asBaseline(names, known);
    const unknown = applied.filter((name) => !known.includes(name));
    if (unknown.length > 0)
      throw new OperatorError(
        `The backup was created by a newer version (its migration ${unknown[0]} is unknown). Install that version first.`,
      );
    await runOnly(source, applied);
  } finally {
    await source.destroy();
  }
}

/** One transaction without foreign keys and triggers, which were satisfied when the backup was created. */
async function load(client: Client, backup: BackupReader): Promise<void> {
  await client.query('BEGIN');
  await client.query('SET LOCAL session_replication_role = replica');
  const rows: Trailer['rows'] = {};
  for (;;) {
    const part = await backup.next();
    if (!('table' in part)) {
      await finish(client, part, rows);
      return void (await client.query('COMMIT'));
    }
    const table = escapeIdentifier(part.table);
    // Migrations may have written rows.
    await client.query(`DELETE FROM ${table}`);
    const target = client.query(
      copyFrom(`COPY ${table} (${part.columns.map(escapeIdentifier).join(', ')}) FROM STDIN`),
    );
    await pipeline(Readable.from(backup.rows()), target);
    rows[part.table] = target.rowCount;
  }
}

async function finish(client: Client, trailer: Trailer, rows: Trailer['rows']): Promise<void> {
  for (const [table, count] of Object.entries(trailer.rows))
    if (rows[table] !== count) throw new OperatorError('The backup is damaged or incomplete.');
  for (const [sequence, value] of Object.entries(trailer.sequences))
    await client.query('SELECT setval($1, $2)', [sequence, value]);
}

async function swap(
  client: Client,
  name: string,
  beside: string,
  say: (line: string) => void,
): Promise<void> {
  const [current, restored, old] = [name, beside, `${beside}_old`].map(escapeIdentifier);
  await client.query(`ALTER DATABASE ${current} RENAME TO ${old}`);
  try {
    await client.query(`ALTER DATABASE ${restored} RENAME TO ${current}`);
  } catch (error) {
    await client.query(`ALTER DATABASE ${old} RENAME TO ${current}`);
    throw error;
  }
  // The store is already replaced, so this isn't an error of the restore.
  await client
    .query(`DROP DATABASE ${old}`)
    .catch(({ message }: Error) =>
      say(
        `The previous store remains in the database ${beside}_old, which could not be deleted (${message}). Drop it.`,
      ),
    );
}

const parseDatabaseName = ({ DATABASE_URL }: StoreSettings) =>
  decodeURIComponent(new URL(DATABASE_URL!).pathname.slice(1));

function withDatabase({ DATABASE_URL }: StoreSettings, name: string): string {
  const url = new URL(DATABASE_URL!);
  url.pathname = `/${encodeURIComponent(name)}`;
  return url.href;
}

/** Works on another database of the server: a connection cannot rename or drop its own. */
const administer = <T>(settings: StoreSettings, work: (client: Client) => Promise<T>) =>
  onDatabase({ DATABASE_URL: withDatabase(settings, 'postgres') }, work);

const onDatabase = <T>(
  { DATABASE_URL }: Pick<Settings, 'DATABASE_URL'>,
  work: (client: Client) => Promise<T>,
  signal?: AbortSignal,
) => withClient({ connectionString: DATABASE_URL, application_name: 'gamewharf restore' }, work, signal);
