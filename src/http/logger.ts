import type { IncomingMessage, ServerResponse } from 'node:http';
import { types } from 'node:util';
import type { LoggerService } from '@nestjs/common';
import pino, { type DestinationStream, type Logger, symbols } from 'pino';

/** JSON lines on standard output, in batches. Fields that could hold secrets are redacted. */
export function createLogger(level: string, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: undefined,
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: {
        paths: [
          'authorization',
          'key',
          'password',
          'token',
          '*.authorization',
          '*.key',
          '*.password',
          '*.token',
        ],
      },
    },
    destination ?? new Batches(),
  );
}

const BATCH_LENGTH = 15 * 1024;
const FLUSH_INTERVAL = 1000;

/** Writes to standard output in batches. pino's own buffer computes its whole length at each line. */
class Batches implements DestinationStream {
  private readonly output = pino.destination({ sync: false });
  private lines = '';

  constructor() {
    setInterval(() => this.flush(), FLUSH_INTERVAL).unref();
    process.on('exit', () => this.flushSync());
  }

  write(line: string): void {
    this.lines += line;
    if (this.lines.length >= BATCH_LENGTH) this.flush();
  }

  /** Also called by pino when the process ends. */
  flushSync(): void {
    this.flush();
    this.output.flushSync();
  }

  private flush(): void {
    if (this.lines === '') return;
    this.output.write(this.lines);
    this.lines = '';
  }
}

/** Writes Nest's messages to the same log. */
export class NestLogger implements LoggerService {
  constructor(private readonly logger: Logger) {}

  log = (message: unknown, ...rest: unknown[]) => this.write('debug', message, rest);
  error = (message: unknown, ...rest: unknown[]) => this.write('error', message, rest);
  warn = (message: unknown, ...rest: unknown[]) => this.write('warn', message, rest);
  debug = (message: unknown, ...rest: unknown[]) => this.write('debug', message, rest);
  verbose = (message: unknown, ...rest: unknown[]) => this.write('trace', message, rest);
  fatal = (message: unknown, ...rest: unknown[]) => this.write('fatal', message, rest);

  private write(level: 'trace' | 'debug' | 'warn' | 'error' | 'fatal', message: unknown, rest: unknown[]) {
    const context = rest.at(-1);
    this.logger[level](typeof context === 'string' ? { context } : {}, String(message));
  }
}

// Logged as debug: probes ask every few seconds.
const HEALTH = '/health/';

let second = 0;
let prefix = '';

/** The time in ISO format, cached but for the milliseconds: toISOString takes longer than the rest of a line. */
function timeNow(): string {
  const now = Date.now();
  const milliseconds = now % 1000;
  if (now - milliseconds !== second) {
    second = now - milliseconds;
    prefix = new Date(second).toISOString().slice(0, 20);
  }
  return `${prefix}${String(milliseconds).padStart(3, '0')}Z`;
}

/** Logs requests, by route template and never by URL, and unexpected errors. */
export class RequestLog {
  private readonly lines: DestinationStream;
  private readonly routes = new Map<string, string>();

  constructor(private readonly logger: Logger) {
    this.lines = (logger as unknown as Record<symbol, DestinationStream>)[symbols.streamSym]!;
  }

  // Formatted by hand, as pino took as long as routing: docs/explanation/decisions/fast-requests.md. The values need no redaction.
  answered(
    req: IncomingMessage & { id: string; route?: { path?: unknown } },
    res: ServerResponse,
    ms: number,
  ) {
    const path = req.route?.path;
    const level = typeof path === 'string' && path.startsWith(HEALTH) ? 'debug' : 'info';
    if (!this.logger.isLevelEnabled(level)) return;
    const trace_id = req.trace_id ?? traceParentOf(req.headers.traceparent)?.trace_id;
    this.lines.write(
      `{"level":"${level}","time":"${timeNow()}","request_id":"${req.id}",` +
        `${trace_id === undefined ? '' : `"trace_id":"${trace_id}",`}"method":"${req.method}",` +
        `"route":${typeof path === 'string' ? this.quoted(path) : 'null'},"status":${res.statusCode},` +
        `"ms":${Math.round(ms * 100) / 100},"msg":"request"}\n`,
    );
  }

  private quoted(route: string): string {
    let text = this.routes.get(route);
    if (text === undefined) this.routes.set(route, (text = JSON.stringify(route)));
    return text;
  }

  audited(event: Record<string, unknown>) {
    this.logger.info({ audit: true, ...event }, 'audit');
  }

  failed(request_id: string, error: unknown) {
    this.logger.error({ request_id, err: describe(error) }, 'request failed');
  }
}

/** Leaves out the parameters and rows that errors of TypeORM and pg contain. */
function describe(error: unknown) {
  if (!types.isNativeError(error) && !(error instanceof Error)) return { type: typeof error };
  const cause = (error as { driverError?: Error }).driverError ?? error;
  const { code, constraint, routine } = cause as { code?: unknown; constraint?: unknown; routine?: unknown };
  return { type: error.name, message: cause.message, code, constraint, routine, stack: error.stack };
}

export interface TraceParent {
  trace_id: string;
  span_id: string;
  sampled: boolean;
}

// 00-TRACE-SPAN-FLAGS; a trace or span of zeros is invalid.
const TRACEPARENT = /^(?!ff)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})([\da-f]{16})-([\da-f]{2})(-|$)/;

/** The trace that the caller's request belongs to (W3C Trace Context). */
export function traceParentOf(header: unknown): TraceParent | undefined {
  const [, trace_id, span_id, flags] = (typeof header === 'string' && TRACEPARENT.exec(header)) || [];
  if (!trace_id || !span_id || !flags) return undefined;
  return { trace_id, span_id, sampled: (Number.parseInt(flags, 16) & 1) === 1 };
}
