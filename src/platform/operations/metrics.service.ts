import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Injectable, Logger, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { HttpAdapterHost } from '@nestjs/core';
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client';
import { Settings } from '../config/settings';
import { Database } from '../database/database';
import { RequestGate } from '../server/request-gate';
import { MetricsRegistry } from '../observability/metrics-registry';
import { OperatorError } from '../errors/operator-error';
import type { Observer } from '../observability/hooks';

type Label = 'method' | 'route' | 'status';
type Route = IncomingMessage['route'];

function createLabels({ path, methods = {} }: NonNullable<Route> = {}) {
  const [method] = Object.keys(methods);
  return method && typeof path === 'string'
    ? { method: method.toUpperCase(), route: path }
    : { method: 'other', route: 'other' };
}

/** The metrics, served on a separate port that is not public. */
@Injectable()
export class MetricsService implements OnApplicationBootstrap, OnApplicationShutdown {
  private readonly log = new Logger(MetricsService.name);
  private readonly durations: Histogram<Label>;
  /** Counters by route, and by the first digit of the status. */
  private readonly series = new Map<Route, Histogram.Internal<Label>[]>();
  private isCollecting = false;
  private server: Server | undefined;

  constructor(
    private readonly settings: Settings,
    private readonly host: HttpAdapterHost,
    private readonly gate: RequestGate,
    private readonly metrics: MetricsRegistry,
    database: Database,
  ) {
    const registers = [metrics.registry];
    this.durations = new Histogram({
      name: 'gamewharf_http_request_duration_seconds',
      help: 'Response time by route',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10],
      registers,
    });
    new Gauge({
      name: 'gamewharf_database_connections',
      help: 'Database connections of this process',
      labelNames: ['state'],
      registers,
      collect() {
        for (const state of ['busy', 'idle'] as const) this.set({ state }, database.connections[state]);
      },
    });
    metrics.gauge(
      'gamewharf_database_pool_size',
      'Maximum number of database connections of this process',
      () => settings.DATABASE_POOL_SIZE,
    );
    metrics.gauge(
      'gamewharf_database_waiting',
      'Statements waiting for a database connection',
      () => database.connections.waiting,
    );
  }

  /** Undefined unless the server is listening. */
  get port(): number | undefined {
    return (this.server?.address() as AddressInfo | undefined)?.port;
  }

  async onApplicationBootstrap(): Promise<void> {
    const { METRICS_PORT, METRICS_HOST = this.settings.HOST, NODE_ENV } = this.settings;
    // Without an adapter this is an operator's command.
    if (!this.host.httpAdapter) return;
    this.gate.observers.push(this.observe);
    if (METRICS_PORT === 'off' || METRICS_PORT === undefined) return;
    this.collect();
    try {
      this.server = await listen(() => this.text(), METRICS_PORT, METRICS_HOST);
    } catch (error) {
      const { code } = error as NodeJS.ErrnoException;
      const problem = `The metrics cannot be served on port ${METRICS_PORT} of ${METRICS_HOST} (${code})`;
      // Several processes may share a machine in development.
      if (NODE_ENV === 'production' || code !== 'EADDRINUSE')
        throw new OperatorError(`${problem}: set METRICS_PORT to a different port, or to off.`);
      this.log.warn(`${problem}: this process serves none`);
    }
  }

  async text(): Promise<string> {
    this.collect();
    return this.metrics.registry.metrics();
  }

  /** Collecting the metrics of the process takes time, so it starts with the first scrape. */
  private collect(): void {
    if (this.isCollecting) return;
    this.isCollecting = true;
    collectDefaultMetrics({ register: this.metrics.registry });
  }

  private readonly observe: Observer = ({ route }, { statusCode }, ms) => {
    const status = Math.floor(statusCode / 100);
    let series = this.series.get(route);
    if (!series) this.series.set(route, (series = []));
    series[status] ??= this.durations.labels({ ...createLabels(route), status: `${status}xx` });
    series[status].observe(ms / 1000);
  };

  onApplicationShutdown(): void {
    this.server?.close();
    this.server?.closeAllConnections();
  }
}

function listen(text: () => Promise<string>, port: number, host: string): Promise<Server> {
  const server = createServer({ requestTimeout: 5000, headersTimeout: 5000 }, (req, res) => {
    if (req.method !== 'GET' || req.url !== '/metrics') {
      res.writeHead(404).end();
      return;
    }
    text().then(
      (body) => res.writeHead(200, { 'Content-Type': Registry.PROMETHEUS_CONTENT_TYPE }).end(body),
      () => res.writeHead(500).end(),
    );
  });
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(port, host, () => resolve(server));
  });
}
