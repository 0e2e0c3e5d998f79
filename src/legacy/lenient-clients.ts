import type { RequestHandler, Response } from 'express';
import { toBearer, takeKeyFromQuery } from '../auth/access/key-in-query';
import { hasReadableBody, parseBody, parseFields } from '../platform/input/body';

const LEGACY = '/api/1/';

/**
 * Translates requests of old clients before routing: POST on legacy reads, `api_key` as a parameter, and a
 * whole redirect fragment as the Authorization. Only installed with LENIENT_CLIENTS.
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
  takeKeyFromQuery(req);
  const { authorization } = req.headers;
  if (authorization?.startsWith('access_token=')) req.headers.authorization = parseFragment(authorization);
  if (req.method !== 'GET' || !hasReadableBody(req)) {
    next();
    return;
  }
  parseBody(req)
    .then(
      () =>
        void (req.headers.authorization ||= toBearer(
          (req.body as Record<string, unknown> | undefined)?.api_key,
        )),
      // The error is reported where the parameters are read.
      () => undefined,
    )
    .finally(next);
};

// Old clients read errors only from a 200. A 5xx keeps its status, which makes them retry.
function sendErrorsWith200(res: Response): void {
  const writeHead = res.writeHead.bind(res) as (status: number, ...rest: unknown[]) => Response;
  res.writeHead = ((status: number, ...rest: unknown[]) => {
    writeHead(status >= 400 && status < 500 ? 200 : status, ...rest);
    // The log and the metrics show the original status.
    res.statusCode = status;
    return res;
  }) as Response['writeHead'];
}

/** An upload tool sends what follows the `#` of its redirect URI as its key. */
function parseFragment(fragment: string): string {
  const { access_token, token_type } = parseFields(fragment);
  return (token_type === 'bearer' && toBearer(access_token)) || fragment;
}
