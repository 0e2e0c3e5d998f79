import { types } from 'node:util';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';

declare module 'node:http' {
  interface IncomingMessage {
    /** Of the trace that this service writes; absent: it writes none. */
    trace_id?: string;
  }
}

/** One line a request, and one more with the error when it is ours; routes by template, never by address. */
export class RequestLog {
  constructor(private readonly logger: Logger) {}

  answered(
    req: IncomingMessage & { id: string; route?: { path?: unknown } },
    res: ServerResponse,
    ms: number,
  ) {
    this.logger.info(
      {
        request_id: req.id,
        trace_id: req.trace_id ?? traceIdOf(req.headers.traceparent),
        method: req.method,
        route: typeof req.route?.path === 'string' ? req.route.path : null,
        status: res.statusCode,
        ms: Math.round(ms * 100) / 100,
      },
      'request',
    );
  }

  /** Who did what to an account: kept where the other lines are, told apart by its field. */
  audited(event: Record<string, unknown>) {
    this.logger.info({ audit: true, ...event }, 'audit');
  }

  failed(request_id: string, error: unknown) {
    this.logger.error({ request_id, err: describe(error) }, 'request failed');
  }
}

// 00-TRACE-SPAN-FLAGS; a trace of zeros is none.
const TRACEPARENT = /^[\da-f]{2}-(?!0{32})([\da-f]{32})-[\da-f]{16}-[\da-f]{2}(-|$)/;

const traceIdOf = (header: unknown) =>
  typeof header === 'string' ? TRACEPARENT.exec(header)?.[1] : undefined;

/** The error without what it may quote: TypeORM and pg put parameters and rows into their errors. */
function describe(error: unknown) {
  if (!types.isNativeError(error) && !(error instanceof Error)) return { type: typeof error };
  const cause = (error as { driverError?: Error }).driverError ?? error;
  const { code, constraint, routine } = cause as { code?: unknown; constraint?: unknown; routine?: unknown };
  return { type: error.name, message: cause.message, code, constraint, routine, stack: error.stack };
}
