import {
  createReadStream,
  createWriteStream,
  existsSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { once } from 'node:events';
import { type AddressInfo, createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Readable } from 'node:stream';
import { gunzipSync, gzipSync } from 'node:zlib';
import { Command } from 'commander';
import { Client } from 'pg';
import { DataSource } from 'typeorm';
import { OperatorError } from '../../src/platform/errors/operator-error';
import { backUp } from '../../src/platform/database/backup/backup';
import { BackupReader } from '../../src/platform/database/backup/backup-file';
import { restore } from '../../src/platform/database/backup/restore';
import { dataSourceOptions } from '../../src/platform/database/data-source';
import { addCommands } from '../../src/commands/program';
import { toNdjson } from '../../src/dev/demo/demo-file';
import type { JsonObject } from '../../src/operator/import/record-types/fields';
import { connectTo, importRecords } from '../../src/operator/import/import-records';
import { gracefulStop } from '../../src/platform/operations/graceful-stop';
import {
  administer,
  cloneDatabase,
  dropDatabase,
  type TestDatabase,
  withDatabase,
} from '../support/database';
import { largeDemoRecords } from '../support/large-demo';
import { type Actor } from '../support/actor';
import { databaseUrl, openApp, PEPPER, useStore } from '../support/app';
import { actors, make } from '../support/make';

useStore();

const STORE = {
  users: 5_000,
  games: 10_000,
  purchases: 40_000,
  download_keys: 20_000,
  collections: 1_000,
  collection_size: 10,
  large_collection: 2_000,
  api_keys: 0,
  builds: 25_000,
};

let folder: string;
let file: string;
let other: TestDatabase;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gamewharf-backup-'));
  file = join(folder, 'store.gz');
  other = await cloneDatabase();
});
afterAll(async () => {
  await other.drop();
  await rm(folder, { recursive: true });
});

const here = () => ({ DATABASE_URL: databaseUrl(), API_KEY_PEPPER: PEPPER });
const there = () => ({ DATABASE_URL: other.url, API_KEY_PEPPER: PEPPER });
const quiet = { replace: false, say: () => undefined };
const read = (bytes: Buffer) => new BackupReader(Readable.from([bytes]));

async function queryRows<T extends object>(url: string, sql: string): Promise<T[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  const { rows } = await client.query<T>(sql);
  await client.end();
  return rows;
}

/** The digest of each table's rows, in any order. */
async function digestTables(url: string): Promise<Record<string, string>> {
  const tables = await queryRows<{ name: string }>(
    url,
    `SELECT relname AS name FROM pg_class WHERE relnamespace = 'public'::regnamespace AND relkind = 'r'
     AND relname <> 'migrations' ORDER BY 1`,
  );
  const digests: Record<string, string> = {};
  for (const { name } of tables) {
    const [row] = await queryRows<{ digest: string }>(
      url,
      `SELECT count(*) || ' ' || coalesce(sum(hashtextextended(t::text, 0)::numeric), 0) AS digest FROM ${name} t`,
    );
    digests[name] = row!.digest;
  }
  return digests;
}

describe('a store of 100,000 records during writes', () => {
  const acknowledged: number[] = [];
  const later: number[] = [];
  let owner: Actor;
  let rows: Record<string, number>;
  let header: Awaited<ReturnType<typeof restore>>;

  beforeAll(async () => {
    await importRecords(() => connectTo(here()), Readable.from(toNdjson(largeDemoRecords(STORE))), {
      pepper: Buffer.from(PEPPER),
    });
    ({ owner } = await actors());
    await backUpDuringWrites();
    header = await restore(there(), new BackupReader(createReadStream(file)), quiet);
  });

  async function backUpDuringWrites() {
    const game = await make.game({ owner });
    let target = acknowledged;
    let over = false;
    const writer = async () => {
      let author = owner;
      for (let n = 1; !over; n++) {
        // An account can have 1,000 collections, and the slower the backup, the more are created.
        if (n % 300 === 0) author = await make.user();
        const { status, body } = await author.post('/collections', {
          title: 'Under writes',
          game_id: game.id,
        });
        // Only acknowledged writes count; a busy machine may reject some.
        if (status === 200) target.push((body as { collection: { id: number } }).collection.id);
      }
    };
    const writers = [writer(), writer(), writer()];
    while (acknowledged.length < 10) await new Promise(setImmediate);
    const before = acknowledged.length;
    rows = await backUp(here(), { 'api-key-pepper': 'kept' }, createWriteStream(file, { mode: 0o600 }));
    target = later;
    while (later.length < 10) await new Promise(setImmediate);
    over = true;
    await Promise.all(writers);
    acknowledged.length = before;
  }

  test('is backed up as of one moment', () => {
    expect(rows).toMatchObject({ builds: 25_000, download_keys: 20_000, purchases: 40_000 });
    expect(statSync(file).mode & 0o777).toBe(0o600);
  });

  test('is restored with everything acknowledged before and nothing incomplete', async () => {
    expect(header.secrets).toEqual({ 'api-key-pepper': 'kept' });
    const found = await queryRows<{ id: number; games_count: string; entries: string }>(
      other.url,
      `SELECT c.id::int, c.games_count, (SELECT count(*) FROM collection_games WHERE collection_id = c.id) AS entries
       FROM collections c WHERE title = 'Under writes'`,
    );
    const ids = found.map(({ id }) => id);
    expect(ids).toEqual(expect.arrayContaining(acknowledged));
    // The last ones were written after the backup had ended.
    expect(ids).not.toContain(later.at(-1));
    expect(found.filter(({ games_count, entries }) => games_count !== entries)).toEqual([]);
  });

  test('works: keys are accepted, and new IDs are unused', async () => {
    const restored = await openApp({ DATABASE_URL: other.url });
    const get = (path: string, init?: RequestInit) =>
      restored
        .getUrl()
        .then((url) =>
          fetch(`${url}${path}`, { ...init, headers: { Authorization: `Bearer ${owner.key}` } }),
        );
    expect(await (await get('/profile')).json()).toMatchObject({ user: { id: owner.id } });
    expect((await get('/collections?title=Restored', { method: 'POST' })).status).toBe(200);
    await gracefulStop(restored);
  });

  test('has the same rows when it is restored again', async () => {
    const again = await backUpAgain();
    const before = await digestTables(other.url);
    await restore(there(), new BackupReader(createReadStream(again)), { ...quiet, replace: true });
    expect(await digestTables(other.url)).toEqual(before);
    expect(Object.keys(before).length).toBeGreaterThan(20);
  });

  async function backUpAgain(): Promise<string> {
    const again = join(folder, 'again.gz');
    if (!existsSync(again)) await backUp(there(), {}, createWriteStream(again));
    return again;
  }

  test('is restored although the previous database can’t be deleted, and says so', async () => {
    const name = new URL(other.url).pathname.slice(1);
    const lines: string[] = [];
    const again = await backUpAgain();
    const before = await digestTables(other.url);
    // PostgreSQL doesn't drop a template.
    await administer((client) => client.query(`ALTER DATABASE ${name} IS_TEMPLATE true`));
    await restore(there(), new BackupReader(createReadStream(again)), {
      replace: true,
      say: (line) => lines.push(line),
    });
    expect(await digestTables(other.url)).toEqual(before);
    const [, old = ''] = /remains in the database (\w+),.*cannot drop a template database/.exec(
      lines.at(-1)!,
    )!;
    await administer(async (client) => {
      await client.query(`ALTER DATABASE ${old} IS_TEMPLATE false`);
      await client.query(`DROP DATABASE ${old}`);
    });
  });
});

/** Backs up a small store of version 0.1. */
async function backUpOldStore(target: string): Promise<void> {
  const name = `gamewharf_old_${process.pid}`;
  await administer((client) => client.query(`CREATE DATABASE ${name}`));
  const url = withDatabase(other.url, name);
  const source = new DataSource(dataSourceOptions({ DATABASE_URL: url, DATABASE_POOL_SIZE: 1 }));
  await source.initialize();
  const baseline = source.migrations.filter(({ name }) => name!.slice(-14) < '20261125');
  source.migrations.splice(0, Infinity, ...baseline);
  await source.runMigrations();
  await source.query(`
    DELETE FROM migrations;
    INSERT INTO migrations (timestamp, name)
    VALUES (0, 'Users20260101000100'), (1, 'ForeignKeysByIndex20261124700000')`);
  await source.query(`INSERT INTO users (id, username) VALUES (7, 'early')`);
  await source.query(`INSERT INTO games (id, user_id, slug, title) VALUES (8, 7, 'early', 'Early')`);
  await source.destroy();
  await backUp({ DATABASE_URL: url, API_KEY_PEPPER: PEPPER }, {}, createWriteStream(target));
  await dropDatabase(name);
}

describe('a backup of 0.1', () => {
  let small: string;
  beforeAll(async () => {
    small = join(folder, 'small.gz');
    await backUpOldStore(small);
  });

  test('is migrated to this version', async () => {
    // What an operator has added to template1 isn't part of the store.
    const template1 = withDatabase(process.env.TEST_SUPERUSER_URL!, 'template1');
    await queryRows(template1, 'CREATE TABLE of_the_operator (id bigint)');
    try {
      await restore(there(), read(readFileSync(small)), { ...quiet, replace: true });
    } finally {
      await queryRows(template1, 'DROP TABLE of_the_operator');
    }
    expect(await queryRows(other.url, `SELECT to_regclass('of_the_operator') AS found`)).toEqual([
      { found: null },
    ]);
    expect(await queryRows(other.url, 'SELECT id::int, owner_name FROM games')).toEqual([
      { id: 8, owner_name: 'early' },
    ]);
    const pending = new DataSource(dataSourceOptions({ ...there(), DATABASE_POOL_SIZE: 1 }));
    await pending.initialize();
    expect(await pending.showMigrations()).toBe(false);
    await pending.destroy();
  });

  describe('a restore is rejected and changes nothing if', () => {
    let untouched: Record<string, string>;
    beforeAll(async () => {
      await restore(there(), new BackupReader(createReadStream(small)), { ...quiet, replace: true });
      untouched = await digestTables(other.url);
    });
    afterEach(async () => expect(await digestTables(other.url)).toEqual(untouched));

    test('the store is not empty', () =>
      expect(restore(there(), new BackupReader(createReadStream(small)), quiet)).rejects.toThrow(
        'The database already contains a store. To replace it with the backup, add --replace.',
      ));

    test('the store is in use', async () => {
      const client = new Client({ connectionString: other.url });
      await client.connect();
      await expect(
        restore(there(), new BackupReader(createReadStream(small)), { ...quiet, replace: true }),
      ).rejects.toThrow('The database is in use');
      await client.end();
    });

    test.each(['NOCREATEDB', 'CREATEDB'])('the role lacks permissions (%s)', async (right) => {
      const role = `gamewharf_owner_${process.pid}`;
      const superuser = process.env.TEST_SUPERUSER_URL!;
      await queryRows(superuser, `CREATE ROLE ${role} LOGIN PASSWORD 'x' ${right}`);
      const DATABASE_URL = Object.assign(new URL(other.url), { username: role, password: 'x' }).href;
      try {
        const rejected = restore({ ...there(), DATABASE_URL }, new BackupReader(createReadStream(small)), {
          ...quiet,
          replace: true,
        });
        await expect(rejected).rejects.toThrow(`ALTER ROLE ${role} CREATEDB; GRANT SET ON PARAMETER`);
        await expect(rejected).rejects.toBeInstanceOf(OperatorError);
      } finally {
        await queryRows(superuser, `DROP ROLE ${role}`);
      }
    });

    test('the pepper is different', () =>
      expect(
        restore({ ...there(), API_KEY_PEPPER: 'another one' }, new BackupReader(createReadStream(small)), {
          ...quiet,
          replace: true,
        }),
      ).rejects.toThrow('another API_KEY_PEPPER'));

    test.each([
      ['cut off', (bytes: Buffer) => bytes.subarray(0, bytes.length - 100)],
      [
        'damaged',
        (bytes: Buffer) => {
          const middle = Math.floor(bytes.length / 2);
          return Buffer.concat([bytes.subarray(0, middle), Buffer.alloc(50), bytes.subarray(middle + 50)]);
        },
      ],
      ['not a backup', () => gzipSync('{"type":"user","id":1}\n')],
      ['not gzip', () => Buffer.from('PGDMP')],
      [
        'missing a row',
        (bytes: Buffer) =>
          gzipSync(
            gunzipSync(bytes)
              .toString('latin1')
              .replace(/"users":(\d+)/, '"users":1$1'),
            { level: 1 },
          ),
      ],
      [
        'from a newer version',
        (bytes: Buffer) =>
          gzipSync(gunzipSync(bytes).toString('latin1').replace('"migrations":[', '"migrations":["Newer1",')),
      ],
      [
        'older than the baseline',
        (bytes: Buffer) =>
          gzipSync(
            gunzipSync(bytes).toString('latin1').replace('ForeignKeysByIndex20261124700000', 'Early1'),
          ),
      ],
    ])('for a file that is %s', async (_, change) => {
      await expect(
        restore(there(), read(change(readFileSync(small))), { ...quiet, replace: true }),
      ).rejects.toThrow(
        /damaged or incomplete|isn't a backup that this version can read|created by a newer version|schema is older/,
      );
      const left = await administer((client) =>
        client.query('SELECT FROM pg_database WHERE starts_with(datname, $1)', [
          `${new URL(other.url).pathname.slice(1)}_restore_`,
        ]),
      );
      expect(left.rows).toEqual([]);
    });
  });
});

describe('the backup and restore commands', () => {
  const before = process.env.DATABASE_URL;
  beforeAll(() => void (process.env.DATABASE_URL = other.url));
  afterAll(() => {
    if (before === undefined) delete process.env.DATABASE_URL;
    else process.env.DATABASE_URL = before;
  });

  async function run(...words: string[]): Promise<string> {
    const out = jest.spyOn(console, 'log').mockImplementation();
    const program = new Command().exitOverride();
    addCommands(program, () => Promise.resolve(), words);
    try {
      await program.parseAsync(words, { from: 'user' });
      return out.mock.calls.flat().join('\n');
    } finally {
      out.mockRestore();
    }
  }

  test('write a file that only its owner can read, and read it', async () => {
    const mine = join(folder, 'mine.gz');
    const before = await digestTables(other.url);
    const listeners = process.listenerCount('SIGTERM');
    expect(await run('backup', mine)).toMatch(/^Backed up \d+ rows from \d+ tables to .*mine\.gz\.$/);
    expect(statSync(mine).mode & 0o777).toBe(0o600);
    expect(await run('restore', mine, '--replace')).toMatch(/^Restored the store as of \d{4}-/);
    expect(await digestTables(other.url)).toEqual(before);
    expect(process.listenerCount('SIGTERM')).toBe(listeners);
  });

  test('replace a symbolic link instead of writing to its target', async () => {
    const [target, link] = [join(folder, 'target'), join(folder, 'link.gz')];
    writeFileSync(target, 'as before');
    symlinkSync(target, link);
    await expect(run('backup', link)).rejects.toThrow('link.gz already exists. Use --overwrite');
    await run('backup', link, '--overwrite');
    expect(readFileSync(target, 'utf8')).toBe('as before');
    expect(lstatSync(link).isFile()).toBe(true);
  });

  test('warn that a copy contains the webhooks of its store', async () => {
    const mine = join(folder, 'with-webhooks.gz');
    const restored = async () => {
      await run('backup', mine, '--overwrite');
      return (await run('restore', mine, '--replace')).split('\n').slice(1);
    };
    expect(await restored()).toEqual([]);
    await queryRows(
      other.url,
      `INSERT INTO webhooks (url, events, secret, ended_at) SELECT 'https://example.com/' || i, '{purchase.completed}', '\\x00', 
         CASE WHEN i = 1 THEN now() END FROM generate_series(1, 2) i`,
    );
    expect(await restored()).toEqual([
      'It has 1 webhook. If this is a copy of a live store, remove it before you start the service: `gamewharf webhooks remove --all`.',
    ]);
    await queryRows(other.url, 'DELETE FROM webhooks');
  });

  test('report that the game files of a local folder are not included', async () => {
    const mine = join(folder, 'with-files.gz');
    const add = (...records: JsonObject[]) =>
      importRecords(() => connectTo(there()), Readable.from(toNdjson(records)), {
        pepper: Buffer.from(PEPPER),
      });
    const id = 900_001;
    const upload = (n: number, key: string) => ({
      type: 'upload',
      id: id + n,
      game_id: id,
      filename: 'game.zip',
      file: { key, size: 1 },
    });
    await add(
      { type: 'user', id, username: 'with-files' },
      { type: 'game', id, user_id: id, slug: 'with-files', title: 'With files' },
      upload(1, 'a.zip'),
    );
    expect(await run('backup', mine)).not.toContain('not included');
    process.env.FILES_DIR = join(folder, 'files');
    try {
      const included = `game file in ${process.env.FILES_DIR} is not included.`;
      expect(await run('backup', mine, '--overwrite')).toContain(`\n1 ${included} Copy that folder, too.`);
      await add(upload(2, 'b.zip'), upload(3, 'b.zip'));
      await run('backup', mine, '--overwrite');
      expect(await run('restore', mine, '--replace')).toContain(
        `\n2 game files in ${process.env.FILES_DIR} are not included. Copy the files of the original store to that folder.`,
      );
    } finally {
      delete process.env.FILES_DIR;
      await queryRows(other.url, 'DELETE FROM uploads');
    }
  });

  test('work over standard output and input', async () => {
    const { stdin, stdout } = process;
    const bytes: Buffer[] = [];
    const said = jest.spyOn(console, 'error').mockImplementation();
    const instead = (name: 'stdin' | 'stdout', value: unknown) =>
      Object.defineProperty(process, name, { value, configurable: true });
    const before = await digestTables(other.url);
    try {
      const output = new PassThrough().on('data', (chunk: Buffer) => bytes.push(chunk));
      instead('stdout', output);
      expect(await run('backup', '-')).toBe('');
      expect(output.writableEnded).toBe(false);
      expect(said.mock.calls.flat()).toEqual([
        expect.stringMatching(/^Backed up \d+ rows from \d+ tables\.$/),
      ]);
      instead('stdin', Readable.from([Buffer.concat(bytes)]));
      expect(await run('restore', '-', '--replace')).toMatch(/^Restored the store as of /);
      instead('stdout', Object.assign(new PassThrough(), { isTTY: true }));
      await expect(run('backup', '-')).rejects.toThrow('Standard output is a terminal');
    } finally {
      instead('stdin', stdin);
      instead('stdout', stdout);
      said.mockRestore();
    }
    expect(existsSync('-')).toBe(false);
    expect(await digestTables(other.url)).toEqual(before);
  });

  test('report errors of the database as such', async () => {
    const backup = join(folder, 'unreachable.gz');
    await run('backup', backup);
    const { DATABASE_URL } = process.env;
    process.env.DATABASE_URL = `postgres:///store?host=${folder}`;
    try {
      const problem =
        "The database at localhost:5432 can't be reached (ENOENT): start it, or change DATABASE_URL.";
      await expect(run('restore', backup)).rejects.toThrow(problem);
      await expect(run('backup', join(folder, 'never.gz'))).rejects.toThrow(problem);
    } finally {
      process.env.DATABASE_URL = DATABASE_URL;
    }
    const server = createServer((socket) => socket.once('data', () => socket.resetAndDestroy())).listen(
      0,
      '127.0.0.1',
    );
    await once(server, 'listening');
    process.env.DATABASE_URL = `postgres://somebody@127.0.0.1:${(server.address() as AddressInfo).port}/store`;
    try {
      await expect(run('backup', join(folder, 'never.gz'))).rejects.toThrow(
        /^The database at 127\.0\.0\.1:\d+ can't be reached \(ECONNRESET\)/,
      );
    } finally {
      server.close();
      process.env.DATABASE_URL = DATABASE_URL;
    }
    expect(readdirSync(folder).filter((name) => name.startsWith('never'))).toEqual([]);
  });

  test('report errors in a file', async () => {
    const missing = join(folder, 'missing', 'x');
    await expect(run('restore', missing)).rejects.toThrow(`File ${missing} doesn't exist.`);
    await expect(run('backup', missing)).rejects.toThrow(`${missing} cannot be used (ENOENT).`);
    await expect(run('restore', folder, '--replace')).rejects.toThrow(`${folder} cannot be used (EISDIR).`);
    const taken = join(folder, 'taken');
    mkdirSync(taken);
    await expect(run('backup', taken, '--overwrite')).rejects.toThrow(`${taken} cannot be used (`);
    expect(readdirSync(folder).filter((name) => name.startsWith('taken'))).toEqual(['taken']);
  });
});
