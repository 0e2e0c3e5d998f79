import type { RequestHandler } from 'express';

/**
 * Serves the legacy API only under this host name, so that a proxy can treat its URLs, which contain keys,
 * separately.
 */
export const legacyOnlyUnder =
  (host: string): RequestHandler =>
  (req, _res, next) => {
    // This path has no route, so the response and the rate limit are those of any unknown path.
    if (req.path.startsWith('/api/1/') && req.hostname.toLowerCase() !== host) req.url = '/api/1';
    next();
  };
