import type { Request, RequestHandler, Response } from 'express';
import { givenInQuery, hasReadableBody } from '../http/parameter-sources';

const LEGACY = '/api/1/';
const LATEST = '/api/1/x/wharf/latest';

/**
 * Turns what old clients send into what the specification says, before a route is looked for. The one place that knows of
 * it: without LENIENT_CLIENTS it is not there.
 */
export const lenientClients: RequestHandler = (req, res, next) => {
  const { path } = req;
  if (path.startsWith(LEGACY)) {
    answerRefusalsWith200(res);
    if (req.method === 'POST') req.method = 'GET';
    if (path === LATEST) req.url = req.url.replace('/api/1/x', '');
  }
  if (req.method === 'GET' && hasReadableBody(req)) req.parametersInBody = true;
  req.headers.authorization ??= bearerInQuery(req);
  next();
};

// Old clients read the errors of a 200 alone. What is not the caller's doing keeps its status: they try again on 503.
function answerRefusalsWith200(res: Response): void {
  const writeHead = res.writeHead.bind(res) as (status: number, ...rest: unknown[]) => Response;
  res.writeHead = ((status: number, ...rest: unknown[]) => {
    writeHead(status >= 400 && status < 500 ? 200 : status, ...rest);
    // The log and the metrics keep what happened.
    res.statusCode = status;
    return res;
  }) as Response['writeHead'];
}

function bearerInQuery(req: Request): string | undefined {
  if (!req.url.includes('api_key=')) return undefined;
  // The operator's token is no client's key, and never in an address.
  if (req.path.startsWith('/operator/')) return undefined;
  const { values, repeated } = givenInQuery(req);
  const key = values.get('api_key');
  if (typeof key !== 'string' || repeated.has('api_key')) return undefined;
  // As Node reads a header: the bytes of UTF-8 as Latin-1.
  return `Bearer ${Buffer.from(key).toString('latin1')}`;
}
