import type { RequestHandler } from 'express';
import { sendFailure } from '../http/answer';
import { failure } from '../http/failure';

/** With a host name of its own the legacy API is there and nowhere else, so that a proxy can treat addresses with keys apart. */
export const legacyOnlyUnder =
  (host: string): RequestHandler =>
  (req, res, next) => {
    if (!req.path.startsWith('/api/1/') || req.hostname.toLowerCase() === host) next();
    else sendFailure(res, failure(404, 'invalid api endpoint'));
  };
