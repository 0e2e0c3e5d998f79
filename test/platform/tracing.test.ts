import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { loadSettings } from '../../src/platform/config/load-settings';
import { tracesUrl } from '../../src/platform/operations/tracing.service';
import { databaseUrl, logged, openApp, useStore } from '../support/app';
import { make } from '../support/make';
import { sql } from '../support/sql';

useStore();

interface Attribute {
  key: string;
  value: { stringValue?: string; intValue?: number };
}
interface SentSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string;
  name: string;
  kind: number;
  attributes: Attribute[];
  status: { code?: number };
}
interface Sent {
  resourceSpans: { resource: { attributes: Attribute[] }; scopeSpans: { spans: SentSpan[] }[] }[];
}

const TRACE = '4bf92f3577b34da6a3ce929d0e0e4736';
const CALLER = '00f067aa0ba902b7';

let collector: Server;
let received: { url: string; body: string }[];
let app: NestExpressApplication;

beforeEach(async () => {
  received = [];
  collector = createServer((req, res) => {
    const chunks: Buffer[] = [];
    req.on('data', (chunk: Buffer) => chunks.push(chunk));
    req.on('end', () => {
      received.push({ url: req.url!, body: Buffer.concat(chunks).toString() });
      res.writeHead(200, { 'content-type': 'application/json' }).end('{}');
    });
  }).listen(0, '127.0.0.1');
  await once(collector, 'listening');
  const { port } = collector.address() as AddressInfo;
  app = await openApp({
    DATABASE_URL: databaseUrl(),
    OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${port}`,
  });
});
afterEach(async () => {
  // Most tests have closed it to flush all spans.
  if (app.getHttpServer().listening) await app.close();
  collector.closeAllConnections();
  collector.close();
});

// Pending spans are sent when the service stops.
async function recordSpans(work: (url: string) => Promise<unknown>): Promise<SentSpan[]> {
  await work(await app.getUrl());
  await app.close();
  return received.flatMap(({ body }) =>
    (JSON.parse(body) as Sent).resourceSpans.flatMap(({ scopeSpans }) =>
      scopeSpans.flatMap(({ spans }) => spans),
    ),
  );
}

const readAttributes = ({ attributes }: SentSpan) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? value.intValue]));

test('a request and its statements are spans of the client’s trace', async () => {
  const { key } = await make.user();
  const spans = await recordSpans((url) =>
    fetch(`${url}/profile`, {
      headers: {
        authorization: `Bearer ${key}`,
        traceparent: `00-${TRACE}-${CALLER}-01`,
        'x-request-id': 'traced',
      },
    }),
  );
  const server = spans.find(({ kind }) => kind === 2)!;
  expect(server).toMatchObject({ traceId: TRACE, parentSpanId: CALLER, name: 'GET /profile' });
  expect(readAttributes(server)).toEqual({
    'http.request.method': 'GET',
    'http.response.status_code': 200,
    'http.route': '/profile',
    'gamewharf.request_id': 'traced',
  });
  const statements = spans.filter(({ kind }) => kind === 3);
  expect(statements.length).toBeGreaterThanOrEqual(2);
  for (const statement of statements)
    expect(statement).toMatchObject({ traceId: TRACE, parentSpanId: server.spanId });
  expect(received[0]!.url).toBe('/v1/traces');
  expect(received[0]!.body).toContain('"gamewharf"');
  expect(logged.some((line) => line.includes('"traced"') && line.includes(TRACE))).toBe(true);
});

test('a write is a span that contains the statements of its transaction', async () => {
  const owner = await make.user();
  const game = await make.game({ owner });
  const collection = await make.collection({ owner });
  const add = (url: string, headers: Record<string, string>) =>
    fetch(`${url}/collections/${collection.id}/add-game`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.key}`, ...headers },
      body: new URLSearchParams({ game_id: String(game.id) }),
    });
  const spans = await recordSpans(async (url) => {
    expect((await add(url, {})).status).toBe(200);
    expect((await add(url, { 'idempotency-key': 'once' })).status).toBe(200);
  });
  const inside = spans
    .filter(({ name }) => name === 'transaction')
    .map((transaction) =>
      spans.filter((span) => span.parentSpanId === transaction.spanId).map(({ name }) => name),
    );
  const statements = ['collection_lock', 'collection_games_add'];
  expect(inside.map((names) => names.toSorted())).toEqual([
    statements.toSorted(),
    ['idempotency_claim', 'idempotency_keep', ...statements].toSorted(),
  ]);
});

test('a failed transaction is a failed span and affects no other', async () => {
  const owner = await make.user();
  const collection = await make.collection({ owner });
  const spans = await recordSpans(async (url) => {
    await sql('ALTER TABLE collection_games RENAME TO elsewhere');
    const response = await fetch(`${url}/collections/${collection.id}/add-game`, {
      method: 'POST',
      headers: { authorization: `Bearer ${owner.key}` },
      body: new URLSearchParams({ game_id: '1' }),
    });
    expect(response.status).toBe(500);
    await sql('ALTER TABLE elsewhere RENAME TO collection_games');
  });
  expect(spans.find(({ name }) => name === 'transaction')!.status.code).toBe(2);
  expect(spans.find(({ name }) => name === 'collection_games_add')!.status.code).toBe(2);
});

test('a trace contains no key, email address or value of a client', async () => {
  const user = await make.user();
  const game = await make.game({ owner: user });
  await recordSpans(async (url) => {
    await fetch(`${url}/api/1/${user.key}/me`);
    await fetch(`${url}/games/${game.id}/purchases?email=secret@example.com`, {
      headers: { authorization: `Bearer ${user.key}` },
    });
    await fetch(`${url}/nowhere/secret`);
  });
  const all = received.map(({ body }) => body).join();
  expect(all).toContain('/api/1/:KEY/me');
  expect(all).not.toContain(user.key);
  expect(all).not.toContain('secret');
});

test('a client that is not sampled is not traced', async () => {
  const spans = await recordSpans((url) =>
    fetch(`${url}/health/live`, { headers: { traceparent: `00-${TRACE}-${CALLER}-00` } }),
  );
  expect(spans).toEqual([]);
});

test('a missing collector affects nothing', async () => {
  collector.closeAllConnections();
  collector.close();
  const url = await app.getUrl();
  expect((await fetch(`${url}/health/live`)).status).toBe(200);
  await app.close();
});

test('the standard variables set the URL and enable tracing', () => {
  const url = (env: Record<string, string>) => tracesUrl(loadSettings(env));
  expect(url({})).toBeUndefined();
  expect(url({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318/' })).toBe(
    'http://collector:4318/v1/traces',
  );
  expect(url({ OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: 'http://tempo/own/path' })).toBe('http://tempo/own/path');
  expect(
    url({ OTEL_EXPORTER_OTLP_ENDPOINT: 'http://collector:4318', OTEL_SDK_DISABLED: 'true' }),
  ).toBeUndefined();
});

test('no tracing library is loaded without a collector', () => {
  const source = readFileSync('src/platform/operations/tracing.service.ts', 'utf8');
  const loaded = [...source.matchAll(/^import (?!type)[^;]*from '(@opentelemetry[^']*)'/gms)].map(
    ([, name]) => name,
  );
  expect(loaded).toEqual(['@opentelemetry/api']);
});
