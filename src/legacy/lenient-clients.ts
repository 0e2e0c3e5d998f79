import type { Request, RequestHandler, Response } from 'express';
import { Given, givenInBody, givenInQuery, hasReadableBody } from '../http/parameter-sources';

const LEGACY = '/api/1/';

/**
 * Turns what old clients send into what the specification says, before a route is looked for. The one place that knows of
 * it: without LENIENT_CLIENTS it is not there.
 */
export const lenientClients: RequestHandler = (req, res, next) => {
  if (req.path.startsWith(LEGACY)) {
    answerRefusalsWith200(res);
    if (req.method === 'POST') req.method = 'GET';
  }
  // The operator's token is no client's key, and never in an address or a body.
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
      // Told where the parameters are read, after the credential was looked at.
      () => undefined,
    )
    .finally(next);
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

const givenInQueryOf = (req: Request) => (req.url.includes('api_key=') ? givenInQuery(req) : undefined);

function bearerFrom(given: Given | undefined): string | undefined {
  const key = given?.values.get('api_key');
  if (typeof key !== 'string' || key === '' || given!.repeated.has('api_key')) return undefined;
  // As Node reads a header: the bytes of UTF-8 as Latin-1.
  return `Bearer ${Buffer.from(key).toString('latin1')}`;
}
