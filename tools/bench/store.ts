import { createReadStream, createWriteStream, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { Client } from 'pg';
import { createdSecret } from '../../src/platform/config/stored-secrets';
import { type EmbeddedPostgres, openEmbeddedPostgres } from '../../src/dev/embedded/embedded-postgres';
import { migrate } from '../../src/platform/database/migrate';
import { toNdjson } from '../../src/dev/demo/demo-file';
import { connectTo, importRecords } from '../../src/operator/import/import-records';
import { type LargeDemoOptions, largeDemoRecords } from '../../test/support/large-demo';
import { addBundles } from './bundles';
import { addPlayers } from './players';
import { addPushedBuilds, addUploads } from './uploads';

export const SEED = 1;

const CHUNKS = { highWaterMark: 256 * 1024 };

/** The contents of a store of scale 1; every developer has a key and 20 games. */
const FULL = {
  users: 100_000,
  games: 200_000,
  purchases: 1_000_000,
  download_keys: 500_000,
  collections: 10_000,
  collection_size: 100,
  large_collection: 100_000,
  builds: 1_000_000,
  api_keys: 10_000,
};

// The record of a collection is one line, which may be at most 16 MiB long.
const LARGEST_COLLECTION = 500_000;

export type StoreSize = Required<Pick<LargeDemoOptions, keyof typeof FULL>>;

export function scaledSize(scale: number): StoreSize {
  const of = (count: number) => Math.round(count * scale);
  return {
    users: of(FULL.users),
    games: of(FULL.games),
    purchases: of(FULL.purchases),
    download_keys: of(FULL.download_keys),
    collections: of(FULL.collections),
    collection_size: FULL.collection_size,
    large_collection: Math.min(of(FULL.large_collection), LARGEST_COLLECTION),
    builds: of(FULL.builds),
    api_keys: of(FULL.api_keys),
  };
}

export interface Store {
  folder: string;
  url: string;
  pepper: string;
  size: StoreSize;
  version: string;
  bytes: number;
  /** Whether the server uses huge pages; null if it doesn't report that. */
  huge_pages: string | null;
  import?: { records: number; seconds: number };
  stop(): Promise<void>;
}

const MEMORY = Math.round(totalmem() / 2 ** 20);

// Large enough for all pages of a store, up to the largest share of memory that PostgreSQL's manual recommends.
const sharedBuffersMb = (scale: number) => Math.round(Math.min(MEMORY * 0.4, 2048 * Math.max(1, scale)));

// Settings that an operator would change; durability keeps its defaults.
export const postgresFor = (scale: number) => ({
  shared_buffers: `${sharedBuffersMb(scale)}MB`,
  effective_cache_size: `${Math.round((MEMORY * 3) / 4)}MB`,
  // With a lower limit, a large import writes most index pages to the WAL in full, again after each
  // checkpoint.
  max_wal_size: `${Math.round(4 * Math.min(4, Math.max(1, scale)))}GB`,
  random_page_cost: '1.1',
  max_connections: '200',
  jit: 'off',
});

const opened = new Set<EmbeddedPostgres>();

/** Stops the databases, so that none survives a run that is killed. */
function stopAll(): void {
  void Promise.allSettled([...opened].map((server) => server.stop())).then(() => process.exit(1));
}

/** The store of that scale on its own PostgreSQL: imported at the first run, reused later. */
export async function openStore(scale: number, say: (line: string) => void): Promise<Store> {
  const folder = join('.bench', `store-${scale}`);
  mkdirSync(folder, { recursive: true });
  const server = await openEmbeddedPostgres({
    dataDir: folder,
    mode: 'serve',
    log: say,
    settings: postgresFor(scale),
  });
  if (opened.size === 0) process.once('SIGINT', stopAll).once('SIGTERM', stopAll);
  opened.add(server);
  const pepper = createdSecret(folder, 'api-key-pepper');
  const size = scaledSize(scale);
  try {
    await migrate({ DATABASE_URL: server.url }, say);
    const made = await fill(server.url, folder, size, pepper, say);
    const client = await connectTo({ DATABASE_URL: server.url });
    const { rows } = await client.query<Pick<Store, 'version' | 'bytes' | 'huge_pages'>>(
      `SELECT current_setting('server_version') AS version, pg_database_size(current_database()) AS bytes,
              current_setting('huge_pages_status', true) AS huge_pages`,
    );
    await client.end();
    await prewarm(server.url, folder);
    return { folder, url: server.url, pepper, size, ...rows[0]!, import: made, stop: () => server.stop() };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/**
 * Loads the whole store into PostgreSQL's cache, which is empty after a start and full after hours of
 * service. The indexes are loaded last, so that they stay cached.
 */
async function prewarm(url: string, folder: string): Promise<void> {
  const ofAdmin = new URL(url);
  ofAdmin.username = 'postgres';
  ofAdmin.password = readFileSync(join(folder, 'postgres-password'), 'utf8').trim();
  const client = await connectTo({ DATABASE_URL: ofAdmin.href });
  try {
    await client.query('CREATE EXTENSION IF NOT EXISTS pg_prewarm');
    await client.query(
      `SELECT pg_prewarm(oid) FROM (
         SELECT oid FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'i')
         ORDER BY relkind = 'i', pg_relation_size(oid) DESC) relations`,
    );
  } finally {
    await client.end();
  }
}

/** A store that an older version created lacks what later ones add. */
export async function fill(
  url: string,
  folder: string,
  size: StoreSize,
  pepper: string,
  say: (line: string) => void,
): Promise<Store['import']> {
  const made = await importDemo(url, folder, size, pepper, say);
  await addPlayers(url, { ...size, seed: SEED }, pepper, say);
  await addUploads(url, size.download_keys, say);
  await addBundles(url, size, pepper, say);
  await addPushedBuilds(url, say);
  return made;
}

async function importDemo(
  url: string,
  folder: string,
  size: StoreSize,
  pepper: string,
  say: (line: string) => void,
): Promise<Store['import']> {
  const note = join(folder, 'import.json');
  const client = await connectTo({ DATABASE_URL: url });
  try {
    if (await isFilled(client)) return JSON.parse(readFileSync(note, 'utf8')) as Store['import'];
    let records = 0;
    let logged = Date.now();
    const counted = function* () {
      for (const record of largeDemoRecords({ ...size, seed: SEED })) {
        records++;
        yield record;
      }
    };
    say('creating the store (once)');
    // The records are written to a file first, so that the time of the import excludes generating them.
    const file = join(folder, 'records.ndjson');
    await pipeline(Readable.from(toNdjson(counted())), createWriteStream(file));
    const start = performance.now();
    await importRecords(() => connectTo({ DATABASE_URL: url }), createReadStream(file, CHUNKS), {
      pepper: Buffer.from(pepper),
      progress(progress) {
        if (Date.now() - logged < 5000) return;
        logged = Date.now();
        say(`  ${Object.values(progress).join(' ')}`);
      },
    });
    const made = { records, seconds: (performance.now() - start) / 1000 };
    say(`imported ${records} records in ${made.seconds.toFixed(1)} s`);
    rmSync(file);
    await client.query('VACUUM (ANALYZE)');
    await client.query('CHECKPOINT').catch(() => undefined);
    writeFileSync(note, JSON.stringify(made));
    return made;
  } finally {
    await client.end();
  }
}

async function isFilled(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ filled: boolean }>('SELECT EXISTS (SELECT FROM users) AS filled');
  return rows[0]!.filled;
}
