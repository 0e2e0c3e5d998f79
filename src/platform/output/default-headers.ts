import type { IncomingMessage, ServerResponse } from 'node:http';

/** Headers of every response, unless the handler sets a different value. */
export const SECURITY_HEADERS: Record<string, string> = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers':
    'Accept-Ranges, Content-Disposition, Content-Range, ETag, Retry-After, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
};

export const isPreflight = ({ method, headers }: IncomingMessage) =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;

/** Games in a browser may call from any origin: API routes ignore cookies, so CSRF is not possible. */
export function allowAnyOrigin(res: ServerResponse): void {
  res.setHeader(
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type, Idempotency-Key, If-None-Match, If-Range, Range, X-Request-Id',
  );
  res.setHeader('Access-Control-Max-Age', '86400');
  res.removeHeader('Cache-Control');
}
