// Starts the production build on its own database, checks it like a deployed service, and stops it.
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';

const root = dirname(dirname(dirname(fileURLToPath(import.meta.url))));
const built = (file) => join(root, 'dist', 'src', file);
const load = createRequire(import.meta.url);
const { openEmbeddedPostgres } = load(built('dev/embedded/embedded-postgres.js'));
const { freePort } = load(built('dev/embedded/server.js'));

const key = randomBytes(20).toString('hex');
const records = [
  {
    type: 'user',
    id: 1,
    username: 'staging',
    developer: true,
    emails: [{ email: 'staging@example.com', verified: true }],
  },
  { type: 'api_key', key, user_id: 1 },
  ...[1, 2, 3].map((id) => ({
    type: 'game',
    id,
    user_id: 1,
    slug: `game-${id}`,
    title: `Game ${id}`,
    published_at: '2024-05-06T07:08:09Z',
  })),
  { type: 'build', id: 1, game_id: 1, channel_name: 'windows', user_version: '1.2.0' },
];

const folder = mkdtempSync(join(tmpdir(), 'gamewharf-staging-'));
chmodSync(folder, 0o755);
let server;
let database;
try {
  database = await openEmbeddedPostgres({ dataDir: folder, mode: 'serve', log: () => {} });
  const port = await freePort();
  const environment = {
    ...process.env,
    NODE_ENV: 'production',
    DATABASE_URL: database.url,
    DATA_DIR: folder,
    HOST: '127.0.0.1',
    PORT: String(port),
    METRICS_PORT: String(await freePort()),
    PUBLIC_URL: `http://127.0.0.1:${port}`,
    DRAIN_SECONDS: '1',
    API_KEY_PEPPER: randomBytes(32).toString('hex'),
    OPERATOR_TOKEN: randomBytes(20).toString('hex'),
  };
  command(environment, ['migrate']);
  command(environment, ['import', '-'], records.map((record) => JSON.stringify(record)).join('\n'));
  server = spawn(process.execPath, [built('main.js')], {
    env: environment,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  server.stdout.resume();
  const url = `http://127.0.0.1:${port}`;
  await ready(url, environment.METRICS_PORT);
  const checks = spawn(process.execPath, [join(root, 'tools', 'staging', 'run.mjs'), '--url', url], {
    env: { ...environment, STAGING_API_KEY: key, STAGING_OPERATOR_TOKEN: environment.OPERATOR_TOKEN },
    stdio: 'inherit',
  });
  const [failures] = await once(checks, 'exit');
  process.exitCode = failures ?? 1;
  const ended = once(server, 'exit');
  server.kill('SIGTERM');
  const [code, signal] = await ended;
  if (code !== 0) {
    console.error(`After a SIGTERM the service exited with ${code ?? signal} instead of 0.`);
    process.exitCode = 1;
  }
} finally {
  if (server && server.exitCode === null) server.kill('SIGKILL');
  await database?.stop();
  if (database) rmSync(database.dataDir, { recursive: true, force: true });
  rmSync(folder, { recursive: true, force: true });
}

function command(env, args, input) {
  const { status, stderr } = spawnSync(process.execPath, [built('cli.js'), ...args], {
    env,
    input,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`gamewharf ${args[0]} failed: ${stderr}`);
}

async function ready(url, metricsPort) {
  for (let attempt = 0; attempt < 300; attempt++) {
    const { ok } = await fetch(`${url}/health/ready`).catch(() => ({ ok: false }));
    if (ok) {
      const metrics = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
      if (!metrics.includes('gamewharf_http_in_flight'))
        throw new Error('The metrics port serves no metrics.');
      return;
    }
    await sleep(100);
  }
  throw new Error('The service did not become ready within 30 seconds.');
}
