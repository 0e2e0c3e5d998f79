import type { RequestHandler, Response } from 'express';
import { hasReadableBody, parseBody } from '../platform/input/body';
import { NOT_UTF8 } from '../platform/input/given-values';

const LEGACY = '/api/1/';

/**
 * Translates requests of old clients before routing: POST on legacy reads, and `api_key` as a parameter. Only installed
 * with LENIENT_CLIENTS.
 */
export const lenientClients: RequestHandler = (req, res, next) => {
  if (req.path.startsWith(LEGACY)) {
    sendErrorsWith200(res);
    if (req.method === 'POST') req.method = 'GET';
  }
  // The operator's token is never a parameter.
  if (req.path.startsWith('/operator/')) {
    next();
    return;
  }
  req.headers.authorization ||= req.url.includes('api_key=') ? bearerFrom(req.query) : undefined;
  if (req.method !== 'GET' || !hasReadableBody(req)) {
    next();
    return;
  }
  parseBody(req)
    .then(
      () => void (req.headers.authorization ||= bearerFrom(req.body as Record<string, unknown> | undefined)),
      // Reported where the parameters are read.
      () => undefined,
    )
    .finally(next);
};

// Old clients read errors only from a 200. A 5xx keeps its status, which makes them retry.
function sendErrorsWith200(res: Response): void {
  const writeHead = res.writeHead.bind(res) as (status: number, ...rest: unknown[]) => Response;
  res.writeHead = ((status: number, ...rest: unknown[]) => {
    writeHead(status >= 400 && status < 500 ? 200 : status, ...rest);
    // For the log and the metrics.
    res.statusCode = status;
    return res;
  }) as Response['writeHead'];
}

function bearerFrom(fields: Record<string, unknown> | undefined): string | undefined {
  const key = fields?.api_key;
  if (typeof key !== 'string' || key === '' || key === NOT_UTF8) return undefined;
  // Node reads the UTF-8 bytes of a header as Latin-1.
  return `Bearer ${Buffer.from(key).toString('latin1')}`;
}
