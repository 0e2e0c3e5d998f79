import { readFileSync } from 'node:fs';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { parse } from 'yaml';
import { OperatorEvents } from '../../src/operator/tokens/operator-events';
import { OperatorTokensService } from '../../src/operator/tokens/operator-tokens.service';
import { MetricsService } from '../../src/platform/operations/metrics.service';
import { databaseUrl, type Environment, logged, openApp, useStore } from '../support/app';
import { make } from '../support/make';
import { until } from '../support/time';

useStore();

let app: NestExpressApplication;
let url: string;

beforeAll(async () => {
  app = await openApp({ DATABASE_URL: databaseUrl(), METRICS_PORT: '0', RATE_LIMIT: '' });
  url = await app.getUrl();
});

const scrape = async () => (await fetch(`http://127.0.0.1:${app.get(MetricsService).port}/metrics`)).text();
const lines = async (start: string) => (await scrape()).split('\n').filter((line) => line.startsWith(start));
const readValue = async (series: string) => {
  const [line] = await lines(`${series} `);
  return line === undefined ? undefined : Number(line.split(' ').at(-1));
};
const DURATION = 'gamewharf_http_request_duration_seconds';

test('counts a request by route template, method and status class', async () => {
  const user = await make.user();
  const game = await make.game({ owner: user });
  const get = (path: string) => fetch(url + path, { headers: { authorization: `Bearer ${user.key}` } });
  await get(`/games/${game.id}/purchases?email=someone@example.com`);
  await get(`/games/${game.id}/purchases?email=another@example.com`);
  await get('/games/7777777/purchases?email=someone@example.com');
  const series = (status: string) => `{method="GET",route="/games/:game_id/purchases",status="${status}"}`;
  expect(await readValue(`${DURATION}_count${series('2xx')}`)).toBe(2);
  expect(await readValue(`${DURATION}_count${series('4xx')}`)).toBe(1);
  expect(await readValue(`${DURATION}_sum${series('2xx')}`)).toBeGreaterThan(0);
  const buckets = (await lines(`${DURATION}_bucket`))
    .filter((line) => line.includes('method="GET",route="/games/:game_id/purchases",status="2xx"'))
    .map((line) => Number(line.split(' ').at(-1)));
  expect(buckets).toEqual(buckets.toSorted((a, b) => a - b));
  expect(buckets.at(-1)).toBe(2);
  expect(await scrape()).not.toMatch(/someone|another@|7777777/);
});

test('docs/reference/observability.md lists every metric with its type and help text', async () => {
  const page = readFileSync('docs/reference/observability.md', 'utf8');
  const listed = [...page.matchAll(/^\| `(\w+)` +\| (\w+) +\| .* \| (\S.*?) +\|$/gm)].map(([, ...row]) =>
    row.join(' '),
  );
  const text = await scrape();
  const served = [...text.matchAll(/^# HELP (gamewharf\w+) (.*)\n# TYPE \w+ (\w+)$/gm)].map(
    ([, name, help, type]) => `${name} ${type} ${help}`,
  );
  expect(listed.sort()).toEqual(served.sort());
  expect(served.length).toBeGreaterThan(20);
});

test('has no more series than routes, whatever clients send', async () => {
  const before = (await lines(DURATION)).length;
  for (let i = 0; i < 50; i++) {
    await fetch(`${url}/nowhere/${i}`, { method: ['GET', 'POST', 'PUT', 'DELETE'][i % 4] });
    await fetch(`${url}/api/1/made-up-${i}/me`);
    await fetch(`${url}/wharf/latest?target=a/${i}`);
  }
  const after = await lines(DURATION);
  const routes = new Set(after.map((line) => /route="([^"]*)"/.exec(line)?.[1]));
  expect([...routes].filter((route) => !/^(other|\/[\w/:-]*)$/.test(route!))).toEqual([]);
  expect(after.length - before).toBeLessThanOrEqual(4 * 14);
  expect(
    await readValue(`${DURATION}_count{method="other",route="other",status="4xx"}`),
  ).toBeGreaterThanOrEqual(50);
  expect(await scrape()).not.toContain('made-up');
});

test('exposes the pool, limits and process metrics', async () => {
  expect(await readValue('gamewharf_database_pool_size')).toBe(10);
  // Pollers use connections at any time.
  await until(async () => (await readValue('gamewharf_database_connections{state="idle"}'))! > 0);
  expect(await readValue('gamewharf_database_waiting')).toBe(0);
  expect(
    await readValue('gamewharf_rate_limit_decisions_total{limit="address",decision="allowed"}'),
  ).toBeGreaterThan(0);
  expect(await readValue('nodejs_eventloop_lag_p99_seconds')).toBeGreaterThan(0);
  // The gauge counts requests in flight, so it returns to 0.
  await until(async () => (await readValue('gamewharf_http_in_flight')) === 0);
});

test('serves metrics only on the metrics port, and nothing else there', async () => {
  const port = app.get(MetricsService).port;
  expect((await fetch(`http://127.0.0.1:${port}/`)).status).toBe(404);
  expect((await fetch(`http://127.0.0.1:${port}/metrics`, { method: 'POST' })).status).toBe(404);
  expect((await fetch(`${url}/metrics`)).status).toBe(404);
});

test('GET /operator/metrics returns the same with the permission, with and without a port', async () => {
  const tokens = app.get(OperatorTokensService);
  const headers = { authorization: `Bearer ${await tokens.create('prometheus', ['metrics'])}` };
  const without = await openApp();
  for (const address of [url, await without.getUrl()]) {
    for (let i = 0; i < 2; i++) await fetch(`${address}/operator/metrics`, { headers });
    const response = await fetch(`${address}/operator/metrics`, { headers });
    expect(response.headers.get('content-type')).toBe('text/plain; version=0.0.4; charset=utf-8');
    const text = await response.text();
    expect(text).toContain(`${DURATION}_count{method="GET",route="/operator/metrics",status="2xx"} 2`);
    expect(text).toContain('nodejs_eventloop_lag_p99_seconds');
  }
});

test('counts sales, refunds and imports', async () => {
  const events = app.get(OperatorEvents);
  const by = { operator: 'checkout', request_id: 'a-request' };
  for (const currency of ['EUR', 'USD', 'EUR']) events.sold(by, currency, { purchases: 1 });
  events.refunded(by, 'EUR', { purchases: 1 });
  events.imported(by, 'small', 250, { users: { new: 1 } });
  events.imported(by, 'small', 500, 'failed');
  expect(await lines('gamewharf_sales_total')).toEqual([
    'gamewharf_sales_total{currency="EUR"} 2',
    'gamewharf_sales_total{currency="USD"} 1',
  ]);
  expect(await lines('gamewharf_refunds_total')).toEqual(['gamewharf_refunds_total{currency="EUR"} 1']);
  for (const [outcome, seconds] of [
    ['done', 0.25],
    ['failed', 0.5],
  ]) {
    const labels = `{size="small",outcome="${outcome}"}`;
    expect(await readValue(`gamewharf_imports_total${labels}`)).toBe(1);
    expect(await readValue(`gamewharf_import_seconds_total${labels}`)).toBe(seconds);
  }
});

describe('if another process uses the port', () => {
  const second = (environment: Environment = {}) =>
    openApp({
      DATABASE_URL: databaseUrl(),
      METRICS_PORT: String(app.get(MetricsService).port),
      ...environment,
    });

  test('serves without metrics and logs it', async () => {
    const replica = await second();
    expect((await fetch(`${await replica.getUrl()}/health/ready`)).status).toBe(200);
    expect(replica.get(MetricsService).port).toBeUndefined();
    await until(() =>
      logged.some((line) => /"level":"warn".*\(EADDRINUSE\): this process serves none/.test(line)),
    );
    expect(await scrape()).toContain('gamewharf_http_in_flight');
    await replica.close();
  });

  test('does not start in production', async () => {
    const production = { NODE_ENV: 'production', PUBLIC_URL: 'https://games.example', DRAIN_SECONDS: '0' };
    await expect(second(production)).rejects.toThrow(
      /\(EADDRINUSE\): set METRICS_PORT to a different port, or to off/,
    );
  });
});

test('logs the trace ID of the client and nothing else of the header', async () => {
  const trace = '4bf92f3577b34da6a3ce929d0e0e4736';
  const ask = (traceparent: string) => fetch(`${url}/openapi.json`, { headers: { traceparent } });
  await ask(`00-${trace}-00f067aa0ba902b7-01`);
  await ask(`00-${'0'.repeat(32)}-00f067aa0ba902b7-01`);
  await ask('<script>');
  await until(() => logged.filter((line) => line.includes('/openapi.json')).length >= 3);
  const traces = logged
    .filter((line) => line.includes('/openapi.json'))
    .map((line) => (JSON.parse(line) as { trace_id?: string }).trace_id);
  expect(traces.slice(-3)).toEqual([trace, undefined, undefined]);
});

describe('metrics in the dashboard and the alerts exist', () => {
  interface Dashboard {
    panels: { title: string; targets: { expr: string }[] }[];
    templating: { list: { query: string | { query: string } }[] };
  }
  interface Rules {
    groups: { rules: { alert: string; expr: string }[] }[];
  }
  const dashboard = JSON.parse(readFileSync('deploy/monitoring/grafana-dashboard.json', 'utf8')) as Dashboard;
  const rules = parse(readFileSync('deploy/monitoring/alerts.yaml', 'utf8')) as Rules;
  const queries = [
    ...dashboard.panels.flatMap(({ title, targets }) => targets.map(({ expr }) => [title, expr] as const)),
    ...rules.groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => [alert, expr] as const)),
  ];
  const METRIC = /\b(?:gamewharf|nodejs|process)_\w+/g;

  let exposed: Set<string>;
  let labels: Map<string, Set<string>>;
  beforeAll(async () => {
    const text = await scrape();
    exposed = new Set();
    labels = new Map();
    for (const line of text.split('\n')) {
      const [, name, given] = /^(\w+)(?:\{(.*)\})? /.exec(line) ?? [];
      if (line.startsWith('# TYPE')) exposed.add(line.split(' ')[2]!);
      if (!name || line.startsWith('#')) continue;
      exposed.add(name);
      const known = labels.get(name) ?? new Set(['job', 'instance']);
      for (const [, label] of (given ?? '').matchAll(/(\w+)="/g)) known.add(label!);
      labels.set(name, known);
    }
  });

  test.each(queries)('%s', (_name, query) => {
    const names = query.match(METRIC) ?? [];
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !exposed.has(name))).toEqual([]);
    for (const [, name, selector] of query.matchAll(/\b((?:gamewharf|nodejs|process)_\w+)\{([^}]*)\}/g))
      for (const [, label] of selector!.matchAll(/(\w+)=/g)) expect([...labels.get(name!)!]).toContain(label);
    for (const [, list] of query.matchAll(/by \(([^)]*)\)/g))
      for (const label of list!.split(',').map((each) => each.trim()))
        expect(names.some((name) => labels.get(name)?.has(label))).toBe(true);
  });

  test('control: reports a missing metric', () => {
    expect(exposed.has('gamewharf_http_requests_total')).toBe(false);
  });

  test('alerts on metrics that any process has select the replicas of this service', () => {
    const shared = rules.groups
      .flatMap(({ rules }) => rules)
      .filter(({ expr }) => /\b(?:nodejs|process)_/.test(expr));
    expect(shared.map(({ alert }) => alert)).toContain('GamewharfMemoryGrowth');
    for (const { expr } of shared)
      expect(expr).toContain('and on (job, instance) gamewharf_http_connections');
  });

  test('every metric of the service is used by the dashboard or an alert', async () => {
    const ours = (await lines('# TYPE gamewharf_')).map((line) => line.split(' ')[2]!);
    const asked = queries.flatMap(([, query]) => query.match(METRIC) ?? []);
    expect(ours.filter((name) => !asked.some((one) => one.startsWith(name)))).toEqual([
      'gamewharf_rate_limit_counters',
    ]);
  });
});
