import { Inject, Injectable } from '@nestjs/common';
import { type DestinationStream, type Logger, symbols } from 'pino';
import type { Observer } from './hooks';
import { LOGGER } from '../config/settings.module';

const FLUSH_INTERVAL_MS = 1000;

// Requests to this path are logged as debug, because probes send them every few seconds.
const HEALTH_PATH = '/health/';

const MAX_REJECTED_CLIENTS = 10_000;

/** Logs requests, by route template and never by URL, and unexpected errors. */
@Injectable()
export class RequestLog {
  private readonly lines: DestinationStream;
  private pending = '';
  /** Rejected requests of each client since the last flush, except the first one, which has its own line. */
  private readonly rejected = new Map<string, number>();

  constructor(@Inject(LOGGER) private readonly logger: Logger) {
    this.lines = (logger as Logger & Record<typeof symbols.streamSym, DestinationStream>)[symbols.streamSym];
  }

  // Lines are formatted by hand, because their values need no redaction: docs/contributing/decisions/requests.md.
  readonly completed: Observer = (req, res, ms) => {
    const path = req.route?.path;
    const level = typeof path === 'string' && path.startsWith(HEALTH_PATH) ? 'debug' : 'info';
    if (!this.logger.isLevelEnabled(level)) return;
    const isRejected = res.statusCode === 429 || res.statusCode === 503;
    if (isRejected && !this.isFirstRejection(req.inFlight.client.network)) return;
    const trace_id = req.traceId ?? traceIdIn(req.headers.traceparent);
    this.write(
      `{"level":"${level}","time":"${new Date().toISOString()}","request_id":"${req.id}",` +
        `${trace_id === undefined ? '' : `"trace_id":"${trace_id}",`}"method":"${req.method}",` +
        `"route":${typeof path === 'string' ? JSON.stringify(path) : 'null'},"status":${res.statusCode},` +
        `"ms":${Math.round(ms * 100) / 100},"msg":"request"}\n`,
    );
  };

  /** Logs how many more requests of each client were rejected; called every second while there are any. */
  flushRejected(): void {
    const counts = [...this.rejected.values()].filter((count) => count > 0);
    this.rejected.clear();
    for (const count of counts)
      this.lines.write(
        `{"level":"info","time":"${new Date().toISOString()}","count":${count},"msg":"more rejected requests of one client"}\n`,
      );
  }

  /**
   * Writes the line together with the others of this tick of the event loop, because the stream copies its
   * buffer at each write.
   */
  private write(line: string): void {
    if (this.pending === '')
      process.nextTick(() => {
        this.lines.write(this.pending);
        this.pending = '';
      });
    this.pending += line;
  }

  private isFirstRejection(network: string): boolean {
    if (this.rejected.size === 0) setTimeout(() => this.flushRejected(), FLUSH_INTERVAL_MS).unref();
    const client = this.rejected.size < MAX_REJECTED_CLIENTS || this.rejected.has(network) ? network : '';
    const count = this.rejected.get(client);
    this.rejected.set(client, count === undefined ? 0 : count + 1);
    return count === undefined;
  }

  audited(event: Record<string, unknown>) {
    this.logger.info({ audit: true, ...event }, 'audit');
  }

  failed(request_id: string, error: unknown) {
    this.logger.error({ request_id, err: error ?? null }, 'request failed');
  }
}

// 00-TRACE-SPAN-FLAGS; a trace or span of zeros is invalid.
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-[\da-f]{2}(-|$)/;

/** The trace that the client's request belongs to (W3C Trace Context). */
const traceIdIn = (header: unknown): string | undefined =>
  typeof header === 'string' ? TRACEPARENT.exec(header)?.[1] : undefined;
