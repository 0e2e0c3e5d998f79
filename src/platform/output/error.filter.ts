import { ArgumentsHost, BadRequestException, Catch, ExceptionFilter, HttpException } from '@nestjs/common';
import type { Request, Response } from 'express';
import { type Observable, throwError } from 'rxjs';
import { sendError, apiErrorFor } from './response';
import { ApiError, badRequest } from '../errors/api-error';
import { isPreflight } from './default-headers';
import { RequestLog } from '../observability/request-log';

@Catch()
export class ErrorFilter implements ExceptionFilter {
  constructor(private readonly log: RequestLog) {}

  catch(error: unknown, host: ArgumentsHost): void | Observable<never> {
    // This is a microservice with `inheritAppConfig`, whose client waits for this error.
    if (host.getType() !== 'http') return throwError(() => apiErrorFor(error).getResponse());
    const http = host.switchToHttp();
    const [req, res] = [http.getRequest<Request>(), http.getResponse<Response>()];
    const response = isRouted(req) ? error : notFound(req, error);
    const allowed =
      req.method === 'OPTIONS' && response instanceof ApiError ? response.headers.Allow : undefined;
    if (allowed === undefined || res.headersSent) return sendError(this.log, res, response);
    res.setHeader('Allow', allowed);
    if (isPreflight(req)) res.setHeader('Access-Control-Allow-Methods', allowed);
    res.statusCode = 204;
    res.end();
  }
}

/** Whether a route handled the request. For HEAD, Express also sets req.route to routes without GET. */
export function isRouted(req: Request): boolean {
  const route = req.route as { methods: Record<string, boolean> } | undefined;
  return route !== undefined && (req.method !== 'HEAD' || 'get' in route.methods || 'head' in route.methods);
}

// Errors of the router repeat the path, which may contain a key.
const ROUTER_TEXTS = /^(?:Cannot [A-Z-]+ |Failed to decode param )/;

/** The error of a request without a route: 405 if the path has routes of other methods, else 404. */
export function notFound(req: Request, error: unknown): unknown {
  // The error comes from a middleware.
  if (error instanceof HttpException && !ROUTER_TEXTS.test(error.message)) return error;
  if (error instanceof BadRequestException) return badRequest('malformed request');
  if (apiErrorFor(error).statusCode !== 404) return error;
  const Allow = listMethods(req);
  return Allow === undefined
    ? new ApiError(404, ['invalid api endpoint'])
    : new ApiError(405, ['method not allowed'], { Allow });
}

/** The Allow header, or undefined if the path is unknown. */
function listMethods(req: Request): string | undefined {
  const methods = new Set(req.app.locals.listMethods(req.path).map((method) => method.toUpperCase()));
  if (methods.size === 0) return undefined;
  if (methods.has('GET')) methods.add('HEAD');
  methods.add('OPTIONS');
  return [...methods].sort().join(', ');
}
