import { createHash } from 'node:crypto';
import type { Writable } from 'node:stream';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { createGzip } from 'node:zlib';
import { type Client, escapeIdentifier } from 'pg';
import { to as copyTo } from 'pg-copy-streams';
import type { Settings } from '../../config/settings';
import { withClient } from '../with-client';
import { END_OF_TABLE, FORMAT, type Header, type Table, type Trailer } from './backup-file';

// The header of the backup contains the migrations instead.
const OMITTED_TABLES = ['migrations'];

// Partitions are read through their table, so that a store with other partitions can read the backup.
const TABLES_WITH_COLUMNS = `
  SELECT c.relname AS table, array_agg(a.attname ORDER BY a.attnum)::text[] AS columns
  FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  WHERE c.relnamespace = 'public'::regnamespace AND c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relname <> ALL ($1)
  GROUP BY c.relname ORDER BY c.relname`;
const SEQUENCES = `
  SELECT quote_ident(sequencename) AS sequence, last_value::text FROM pg_sequences
  WHERE schemaname = 'public' AND last_value IS NOT NULL ORDER BY sequencename`;

export const fingerprint = (pepper: string) =>
  createHash('sha256').update(`gamewharf pepper ${pepper}`).digest('hex').slice(0, 16);

/** Writes all rows as of one moment, during other reads and writes. Returns the number of rows of each table. */
export async function backUp(
  { DATABASE_URL, API_KEY_PEPPER }: Pick<Settings, 'DATABASE_URL' | 'API_KEY_PEPPER'>,
  secrets: Record<string, string>,
  target: Writable,
  signal?: AbortSignal,
): Promise<Trailer['rows']> {
  const config = { connectionString: DATABASE_URL, application_name: 'gamewharf backup' };
  const write = async (client: Client) => {
    await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY');
    const migrations = await client.query<{ name: string }>('SELECT name FROM migrations ORDER BY id');
    const header: Header = {
      gamewharf_backup: FORMAT,
      created_at: new Date().toISOString(),
      migrations: migrations.rows.map(({ name }) => name),
      secrets,
      pepper: API_KEY_PEPPER && fingerprint(API_KEY_PEPPER),
    };
    const trailer: Trailer = { rows: {}, sequences: {} };
    // Standard output stays open.
    const end = target !== process.stdout;
    await pipeline(Readable.from(generateParts(client, header, trailer)), createGzip({ level: 1 }), target, {
      signal,
      end,
    });
    return trailer.rows;
  };
  return withClient(config, write, signal);
}

const line = (value: Header | Table | Trailer) => `${JSON.stringify(value)}\n`;

async function* generateParts(
  client: Client,
  header: Header,
  trailer: Trailer,
): AsyncGenerator<Buffer | string> {
  yield line(header);
  const tables = await client.query<Table>(TABLES_WITH_COLUMNS, [OMITTED_TABLES]);
  for (const { table, columns } of tables.rows) {
    yield line({ table, columns });
    // A query and not the table: a partitioned table cannot be copied directly.
    const rows = client.query(
      copyTo(
        `COPY (SELECT ${columns.map(escapeIdentifier).join(', ')} FROM ${escapeIdentifier(table)}) TO STDOUT`,
      ),
    );
    yield* rows as AsyncIterable<Buffer>;
    trailer.rows[table] = rows.rowCount;
    yield END_OF_TABLE;
  }
  // Sequences are not part of a snapshot: read last, they are ahead of all rows.
  const sequences = await client.query<{ sequence: string; last_value: string }>(SEQUENCES);
  for (const { sequence, last_value } of sequences.rows) trailer.sequences[sequence] = last_value;
  yield line(trailer);
}
