import { types } from 'node:util';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { type DestinationStream, type Logger, symbols } from 'pino';
import { traceParentOf } from './traceparent';

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
