import { once } from 'node:events';
import { mkdtemp, chmod, readFile, rm } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Client, type Pool } from 'pg';
import { newApiKey } from '../../src/auth/keys/api-key';
import { TokensService } from '../../src/auth/jwt/tokens.service';
import { Database } from '../../src/platform/database/database';
import { read } from '../../src/platform/database/statement';
import { openEmbeddedPostgres } from '../../src/dev/embedded/embedded-postgres';
import { MetricsService } from '../../src/platform/operations/metrics.service';
import { MetricsRegistry } from '../../src/platform/observability/metrics-registry';
import { getPool } from '../support/pool';
import type { TestDatabase } from '../support/database';
import { sendRaw } from '../support/raw';
import { baseUrl, type Environment, logged, openApp, theApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { migrateTemplate } from '../support/template';
import { sleep, until } from '../support/time';

// Canaries consist of letters and digits, so that no URL or JSON encoding hides them.
const CANARIES = {
  unknown: 'c4n4ryUnknownKey0000000000000001',
  good: 'c4n4ryGoodKey0000000000000000002',
  narrow: 'c4n4ryNarrowKey00000000000000003',
  revoked: 'c4n4ryRevokedKey0000000000000004',
  jwt: 'c4n4ryHead0005.c4n4ryClaims0005.c4n4rySignature0005',
};
/** Credentials that the service creates, which can't contain chosen letters. */
const made: string[] = [];

const findTrace = (text: string) =>
  [
    text.search(/c4n4ry/i),
    ...made.flatMap((key) => key.split('.').slice(-2)).map((part) => text.indexOf(part)),
  ].find((at) => at >= 0);

let databaseLog = '';

/** A separate server that logs every statement with its parameters. */
async function verboseDatabase(): Promise<TestDatabase> {
  const folder = await mkdtemp(join(tmpdir(), 'gamewharf-canary-'));
  // Root runs the server as another account, which needs access here.
  await chmod(folder, 0o755);
  const server = await openEmbeddedPostgres({
    dataDir: folder,
    mode: 'serve',
    log: () => undefined,
    settings: {
      fsync: 'off',
      log_statement: 'all',
      log_min_duration_statement: '0',
      log_connections: 'on',
    },
  });
  // Our server omits values from its log, but another operator's may not: this sends what it would log to its client
  // too.
  const client = new Client({ connectionString: server.url });
  await client.connect();
  await client.query(`ALTER ROLE CURRENT_USER SET client_min_messages = 'log'`);
  await client.end();
  await migrateTemplate(server.url);
  databaseLog = join(folder, 'postgres.log');
  return {
    url: server.url,
    drop: async () => {
      await server.stop();
      await rm(server.dataDir, { recursive: true, force: true });
      await rm(folder, { recursive: true, force: true });
    },
  };
}

const environment: Environment = { LOG_LEVEL: 'trace', METRICS_PORT: '0' };
const traces: string[] = [];
let collector: Server;

/** Receives every trace immediately. */
async function collectTraces(): Promise<void> {
  collector = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      traces.push(`${req.url} ${JSON.stringify(req.headers)} ${Buffer.concat(chunks).toString()}`);
      res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  environment.OTEL_EXPORTER_OTLP_ENDPOINT = `http://127.0.0.1:${(collector.address() as AddressInfo).port}`;
  Object.assign(process.env, { OTEL_BSP_SCHEDULE_DELAY: '50', OTEL_BSP_MAX_QUEUE_SIZE: '100000' });
}

beforeAll(collectTraces);
useStore(environment, verboseDatabase);

let lenient: NestExpressApplication;
let bases: string[] = [];
const written: string[] = [];
const statements: string[] = [];
const responses: { what: string; text: string }[] = [];

beforeAll(async () => {
  for (const stream of [process.stdout, process.stderr])
    jest.spyOn(stream, 'write').mockImplementation((...[chunk]: unknown[]) => {
      written.push(String(chunk));
      return true;
    });
  for (const method of ['log', 'info', 'warn', 'error', 'debug'] as const)
    jest
      .spyOn(console, method)
      .mockImplementation((...parts: unknown[]) => void written.push(parts.join(' ')));
  lenient = await openApp({ ...environment, LENIENT_CLIENTS: 'true' });
  bases = [baseUrl(), await lenient.getUrl()];
  for (const app of [theApp(), lenient]) captureStatements(app);
  const owner = await make.user();
  await make.key({ owner, text: CANARIES.good });
  await make.key({ owner, text: CANARIES.narrow, scopes: ['game:view'] });
  const token = await theApp()
    .get(TokensService)
    .issue({ user_id: owner.id, game_id: 1, scopes: ['profile:me'], api_key_id: null });
  made.push(token.key, await make.key({ owner, text: newApiKey() }));
  const ended = await make.user();
  await make.key({ owner: ended, text: CANARIES.revoked });
  await sql('UPDATE api_keys SET revoked_at = now() WHERE user_id = $1', [ended.id]);
});

afterAll(async () => {
  jest.restoreAllMocks();
  collector.closeAllConnections();
  collector.close();
});

/** Captures every statement of the service with its parameters, as a database that logs everything would. */
function captureStatements(app: NestExpressApplication): void {
  const pool = getPool(app) as Pool & { _clients: Client[] };
  const listen = (client: Pick<Client, 'on'>) =>
    client.on('notice', ({ message, detail }) => statements.push(`${message} ${detail}`));
  pool._clients.forEach(listen);
  pool.on('connect', listen);
}

async function ask(method: string, path: string, headers: Record<string, string> = {}, body?: string) {
  for (const base of bases) {
    const response = await fetch(base + path, { method, headers, body, redirect: 'manual' });
    const shown = [...response.headers].map(([name, value]) => [
      name,
      value.replace(returnTo(path), '').replace(returnTo(path.replace(/\bapi_key=[^&]*&/, '')), ''),
    ]);
    const text = `${response.status} ${JSON.stringify(shown)} ${await response.text()}`;
    responses.push({ what: `${method} ${path.slice(0, 12)}`, text });
    if (isPage(path)) continue;
    expect(response.headers.get('referrer-policy')).toBe('no-referrer');
    expect(response.headers.get('location')).toBeNull();
  }
}

// Pages read no credential from a URL. A redirect to the sign-in page contains the original path, without `api_key`,
// unless the path contains a secret.
const isPage = (path: string) =>
  /^\/((user|login|logout|docs|developers|forgot-password|sign-up|setup|links|download)\b|\?|$)/.test(path);
const returnTo = (path: string) =>
  isPage(path) && !/^\/(links|download)\b/.test(path) ? encodeURIComponent(path) : '';

async function askRaw(bytes: string) {
  for (const base of bases) {
    const { status, headers, body } = await sendRaw(bytes, { base });
    responses.push({ what: bytes.slice(0, 30), text: `${status} ${JSON.stringify(headers)} ${body}` });
  }
}

/** Every route, documented or not, with `KEY` where the path contains a credential. */
function routes(): { method: string; path: string }[] {
  const { stack } = (theApp().getHttpAdapter().getInstance() as { router: { stack: Layer[] } }).router;
  return stack.flatMap(({ route }) =>
    Object.keys(route?.methods ?? {}).map((method) => ({
      method: method.toUpperCase(),
      path: route!.path.replace(':KEY', 'KEY').replace(/:\w+|\*\w+/g, '1'),
    })),
  );
}

interface Layer {
  route?: { path: string; methods: Record<string, boolean> };
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

type Asking = Parameters<typeof ask>;

/** Sends a credential in every valid and invalid way. */
async function exercise(method: string, path: string, credential: string) {
  const at = (key: string) => path.replace('KEY', key);
  const authorization = `Bearer ${credential}`;
  const json = { 'content-type': 'application/json', authorization };
  const asked: Asking[] = [
    [method, at('key'), { authorization }],
    [method, at('jwt'), { authorization }],
    [method, at('key'), { authorization: credential, referer: `http://h/api/1/${credential}/me` }],
    [method, at('key'), { authorization: `Basic ${credential}`, cookie: `session=${credential}` }],
    [method, `${at('key')}?api_key=${credential}&access_token=${credential}`],
    [method, at(credential)],
    [method, `${at(credential)}?user_id=${credential}&page=${credential}&${credential}=1`],
    [method === 'GET' ? 'POST' : 'GET', at(credential)],
    ['DELETE', `${at(credential)}/`],
    ['POST', at(credential), FORM, `api_key=${credential}&game_id=${credential}`],
  ];
  if (method !== 'GET')
    asked.push(
      [method, at('key'), json, `{"key":"${credential}","game_id":"${credential}"`],
      [method, at('key'), json, `{"key":"${credential}","game_id":"${credential}"}`],
      [method, at('key'), { ...FORM, authorization }, `game_id=1&title=${credential}%ff`],
      [method, at('key'), { 'content-type': `text/${credential}`, authorization }, 'x'],
    );
  await Promise.all(asked.map((one) => ask(...one)));
}

let searchedUpTo = 0;

async function search(): Promise<string[]> {
  // The database writes its log after its response.
  await sleep(300);
  const found: string[] = [];
  const look = (where: string, what: string) => {
    const at = findTrace(what);
    if (at !== undefined) found.push(`${where}: ${what.slice(Math.max(0, at - 80), at + 60)}`);
  };
  for (const line of logged) look('log', line);
  for (const line of written) look('output', line);
  for (const line of statements) look('statement', line);
  for (const app of [theApp(), lenient]) look('metrics', await fetchMetrics(app));
  await untilQuiet(traces);
  for (const sent of traces) look('trace', sent);
  for (const response of responses) look(`response to ${response.what}`, response.text);
  const log = (await readFile(databaseLog, 'utf8')).slice(searchedUpTo);
  for (const line of log.split('\n')) look('database log', line);
  look('process title', process.title);
  searchedUpTo += log.length;
  responses.length = statements.length = logged.length = written.length = traces.length = 0;
  return found;
}

const fetchMetrics = async (app: NestExpressApplication) =>
  (await fetch(`http://127.0.0.1:${app.get(MetricsService).port}/metrics`)).text();

/** Waits until the list hasn't grown for longer than traces are buffered. */
async function untilQuiet(list: unknown[]): Promise<void> {
  let seen = -1;
  await until(async () => {
    const quiet = list.length === seen;
    seen = list.length;
    if (!quiet) await sleep(200);
    return quiet;
  });
}

test('control: the search finds a credential', async () => {
  responses.push({ what: 'the control', text: `x ${CANARIES.good}` });
  logged.push(`{"url":"/api/1/${CANARIES.unknown}/me"}`);
  console.log(CANARIES.jwt);
  await theApp().get(Database).row(read('control', 'SELECT $key::text'), { key: CANARIES.narrow });
  await sql(`SELECT '${CANARIES.revoked}'`);
  logged.push(`{"err":"${made[0]!.split('.')[2]}"}`);
  await fetch(`${environment.OTEL_EXPORTER_OTLP_ENDPOINT}/v1/traces`, {
    method: 'POST',
    body: CANARIES.good,
  });
  theApp()
    .get(MetricsRegistry)
    .counter('canary_total', 'A control', { key: [CANARIES.good] });
  expect([...new Set((await search()).map((line) => line.split(':')[0]))]).toEqual([
    'log',
    'output',
    'statement',
    'metrics',
    'trace',
    'response to the control',
    'database log',
  ]);
  theApp().get(MetricsRegistry).registry.removeSingleMetric('canary_total');
});

test('no route reveals a credential, whether it is valid or not', async () => {
  const all = routes();
  expect(all).toContainEqual({ method: 'GET', path: '/api/1/KEY/me' });
  for (const { method, path } of all)
    for (const credential of path.includes('KEY')
      ? [...Object.values(CANARIES), ...made]
      : [CANARIES.unknown, CANARIES.good, ...made])
      await exercise(method, path, credential);
  for (const path of ['/nowhere/KEY', '/api/1/KEY', '/api/1/KEY/nothing', '/api/1/KEY//me', '/KEY'])
    await exercise('GET', path, CANARIES.good);
  expect(responses.length).toBeGreaterThan(500);
  expect(statements.join()).toMatch(/FROM api_keys[^]*\$1 = '/);
  expect(await fetchMetrics(theApp())).toContain('route="/api/1/:KEY/me"');
  expect(traces.join()).toContain('/api/1/:KEY/me');
  expect(await search()).toEqual([]);
});

test('invalid HTTP and overlong or malformed requests reveal none', async () => {
  const key = CANARIES.good;
  const long = 'x'.repeat(17_000);
  for (const bytes of [
    `GET /api/1/${key}%/me HTTP/1.1\r\nHost: h\r\n`,
    `GET /api/1/%ff${key}/me HTTP/1.1\r\nHost: h\r\n`,
    `GET /api/1/${key}/me HTTP/1.1\r\n`,
    `GET /api/1/${key}/me HTTP/1.1\r\nHost: h\r\nHost: ${key}\r\n`,
    `GET /api/1/${key}/me HTTP/9.9\r\nHost: h\r\n`,
    `GET /api/1/${key}/me?${long} HTTP/1.1\r\nHost: h\r\n`,
    `GET /api/1/${key}/me HTTP/1.1\r\nHost: h\r\nX: ${long}\r\n`,
    `GET /api/1/${key}/me HTTP/1.1\r\nHost: h\r\n${`X: ${key}\r\n`.repeat(120)}`,
    `GET /api/1/${key}/me HTTP/1.1\r\nHost: h\r\n${key}\r\n`,
    `GET /api/1/${key}/me HTTP/1.1\r\nHost: h\r\nAuthorization: ${key}\x01\r\n`,
    `GET http://${key}.example/api/1/${key}/me HTTP/1.1\r\nHost: h\r\nConnection: close\r\n`,
    `POST /api/1/${key}/me HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n`,
    `POST /profile HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\nAuthorization: ${key}\r\n\r\n${key}\r\n`,
    `TRACE /api/1/${key}/me HTTP/1.1\r\nHost: h\r\nConnection: close\r\n`,
    `CONNECT ${key}:443 HTTP/1.1\r\nHost: h\r\n`,
    `${key} / HTTP/1.1\r\nHost: h\r\n`,
    `GET /api/1/key/me HTTP/1.1\r\nHost: h\r\nX-Request-Id: ${'y'.repeat(65)}${key}\r\nConnection: close\r\n`,
    `OPTIONS /api/1/${key}/me HTTP/1.1\r\nHost: h\r\nConnection: close\r\nAccess-Control-Request-Method: GET\r\nAccess-Control-Request-Headers: ${key}\r\n`,
  ])
    await askRaw(`${bytes}\r\n`);
  expect(await search()).toEqual([]);
});

test('errors of the service or the database reveal none', async () => {
  await sql('ALTER TABLE api_keys RENAME TO elsewhere');
  for (const { method, path } of routes())
    if (path.includes('KEY') || path.startsWith('/profile')) await exercise(method, path, CANARIES.unknown);
  expect(responses.some(({ text }) => text.startsWith('500'))).toBe(true);
  await sql('ALTER TABLE elsewhere RENAME TO api_keys');
  await lenient.get(Database).onApplicationShutdown();
  await theApp().get(Database).onApplicationShutdown();
  for (const { method, path } of routes())
    if (path.includes('KEY')) await exercise(method, path, CANARIES.unknown);
  expect(responses.some(({ text }) => text.startsWith('503'))).toBe(true);
  expect(await search()).toEqual([]);
});
