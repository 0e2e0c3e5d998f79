import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';

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

/** The error without what it may quote: TypeORM and pg put parameters and rows into their errors. */
function describe(error: unknown) {
  if (!(error instanceof Error)) return { type: typeof error };
  const cause = (error as { driverError?: Error }).driverError ?? error;
  const { code, constraint, routine } = cause as { code?: unknown; constraint?: unknown; routine?: unknown };
  return { type: error.name, message: cause.message, code, constraint, routine, stack: error.stack };
}
