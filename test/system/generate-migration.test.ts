import { spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import { cloneDatabase } from '../support/database';

const folder = mkdtempSync(join(tmpdir(), 'gamewharf-migration-'));
let database: Awaited<ReturnType<typeof cloneDatabase>>;

beforeAll(async () => {
  const names = ['src', 'migrations', 'tools/scripts', 'test/support/swc.json', '.prettierrc'];
  for (const name of [...names, 'nest-cli.json', 'package.json', 'package-lock.json'])
    cpSync(name, join(folder, name), { recursive: true });
  symlinkSync(join(process.cwd(), 'node_modules'), join(folder, 'node_modules'));
  database = await cloneDatabase();
});
afterAll(async () => {
  rmSync(folder, { recursive: true });
  await database.drop();
});

function generate(name: string, url: string | undefined) {
  const { status, stdout, stderr } = spawnSync('npm', ['run', '--silent', 'migration:generate', '--', name], {
    cwd: folder,
    env: { ...process.env, DATABASE_URL: url, DATA_DIR: undefined },
    encoding: 'utf8',
  });
  return { status, printed: stdout + stderr };
}

test('migration:generate writes a migration for the difference of the entities and the database', async () => {
  const client = new Client({ connectionString: database.direct_url ?? database.url });
  await client.connect();
  await client.query('ALTER TABLE builds DROP COLUMN user_version');
  await client.end();
  const before = readdirSync(join(folder, 'migrations'));
  expect(generate('versions', database.url)).toMatchObject({ status: 0 });
  const created = readdirSync(join(folder, 'migrations')).filter((name) => !before.includes(name));
  expect(created).toEqual([expect.stringMatching(/^\d{14}-versions\.ts$/)]);
  const text = readFileSync(join(folder, 'migrations', created[0]!), 'utf8');
  expect(text).toMatch(/ALTER TABLE "builds"\s+ADD "user_version" text/);
  expect(new Set(text.match(/ALTER TABLE\s+"\w+"/g))).toEqual(new Set(['ALTER TABLE "builds"']));
  // The highest number runs last.
  expect([...before.filter((name) => name.endsWith('.ts')), created[0]!].toSorted().at(-1)).toBe(created[0]);
});

test('migration:generate says what it needs', () => {
  expect(generate('', undefined)).toMatchObject({
    status: 1,
    printed: expect.stringContaining('Usage: npm run migration:generate -- NAME'),
  });
  expect(generate('versions', undefined)).toMatchObject({
    status: 1,
    printed: expect.stringContaining('Set DATABASE_URL, or start the service'),
  });
});
