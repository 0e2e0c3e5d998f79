// `npm run migration:generate -- NAME`: writes a migration from the database to the entities. The database is that of
// DATABASE_URL, or of the running `npm start`. docs/contributing/add-a-resource.md
import { execFileSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import process from 'node:process';
import { fileURLToPath } from 'node:url';

process.chdir(path.resolve(path.dirname(fileURLToPath(import.meta.url)), '..', '..'));

const [name] = process.argv.slice(2);
if (!/^[a-z][a-z-]*$/.test(name ?? '')) fail('Usage: npm run migration:generate -- NAME, such as wishlists.');
const file = path.join(process.env.DATA_DIR ?? '.data', 'database-url');
const url = process.env.DATABASE_URL ?? (existsSync(file) ? readFileSync(file, 'utf8').trim() : undefined);
if (!url) fail('Set DATABASE_URL, or start the service in another terminal: npm start.');

// The time, as in the other migrations, or the next number: TypeORM's own has fewer digits, so it would be the first.
const now = Number(new Date().toISOString().replace(/\D/g, '').slice(0, 14));
const numbers = readdirSync('migrations').map((one) => Number.parseInt(one, 10) || 0);
const number = String(Math.max(now, ...numbers.map((one) => one + 1)));
const run = (script, ...words) =>
  execFileSync(process.execPath, [path.join('node_modules', script), ...words], {
    env: { ...process.env, DATABASE_URL: url },
    stdio: 'inherit',
  });
try {
  const source = 'dist/src/platform/database/data-source.cli.js';
  run('typeorm/cli.js', 'migration:generate', `migrations/${name}`, '-d', source, '-t', number, '--pretty');
  const created = readdirSync('migrations').find((one) => one.startsWith(number));
  run('prettier/bin/prettier.cjs', '--write', path.join('migrations', created));
} catch {
  // The command has printed why.
  process.exitCode = 1;
}

function fail(text) {
  console.error(text);
  process.exit(1);
}
