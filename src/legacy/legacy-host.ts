import type { RequestHandler } from 'express';

/** With a host name of its own the legacy API is there and nowhere else, so that a proxy can treat addresses with keys apart. */
export const legacyOnlyUnder =
  (host: string): RequestHandler =>
  (req, _res, next) => {
    // Where no route is, so that it is answered, and counted, as any other wrong address.
    if (req.path.startsWith('/api/1/') && req.hostname.toLowerCase() !== host) req.url = '/api/1';
    next();
  };
