import type { Request, RequestHandler, Response } from 'express';
import { Given, givenInBody, givenInQuery, hasReadableBody } from '../platform/http/parameter-sources';

const LEGACY = '/api/1/';

/**
 * Translates requests of old clients before they are routed: POST on legacy reads, and `api_key` as a parameter. Only
 * installed with LENIENT_CLIENTS.
 */
export const lenientClients: RequestHandler = (req, res, next) => {
  if (req.path.startsWith(LEGACY)) {
    answerRefusalsWith200(res);
    if (req.method === 'POST') req.method = 'GET';
  }
  // The operator's token is never a parameter.
  if (req.path.startsWith('/operator/')) {
    next();
    return;
  }
  req.headers.authorization ||= bearerFrom(givenInQueryOf(req));
  if (req.method !== 'GET' || !hasReadableBody(req)) {
    next();
    return;
  }
  const given = new Given();
  req.givenInBody = givenInBody(req, given).then(() => given);
  req.givenInBody
    .then(
      (inBody) => void (req.headers.authorization ||= bearerFrom(inBody)),
      // Reported where the parameters are read.
      () => undefined,
    )
    .finally(next);
};

// Old clients read errors only from a 200. A 5xx keeps its status, on which they retry.
function answerRefusalsWith200(res: Response): void {
  const writeHead = res.writeHead.bind(res) as (status: number, ...rest: unknown[]) => Response;
  res.writeHead = ((status: number, ...rest: unknown[]) => {
    writeHead(status >= 400 && status < 500 ? 200 : status, ...rest);
    // For the log and the metrics.
    res.statusCode = status;
    return res;
  }) as Response['writeHead'];
}

const givenInQueryOf = (req: Request) => (req.url.includes('api_key=') ? givenInQuery(req) : undefined);

function bearerFrom(given: Given | undefined): string | undefined {
  const key = given?.values.get('api_key');
  if (typeof key !== 'string' || key === '' || given!.repeated.has('api_key')) return undefined;
  // Node reads the UTF-8 bytes of a header as Latin-1.
  return `Bearer ${Buffer.from(key).toString('latin1')}`;
}
