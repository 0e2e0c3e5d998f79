import { hash } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendJson } from './answer';

/** An answer that clients may cache. */
export interface Cacheable {
  body: string;
  etag: string;
}

export function cacheable(answer: object | string): Cacheable {
  const body = typeof answer === 'string' ? answer : JSON.stringify(answer);
  // Weak, since a proxy may compress the body.
  return { body, etag: `W/"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
}

export function sendCacheable(
  req: IncomingMessage,
  res: ServerResponse,
  { body, etag }: Cacheable,
  cacheControl: string,
): void {
  res.setHeader('ETag', etag);
  res.setHeader('Cache-Control', cacheControl);
  if (!isKnown(req.headers['if-none-match'], etag)) {
    sendJson(res, 200, body);
    return;
  }
  res.statusCode = 304;
  res.end();
}

const opaque = (tag: string) => (tag.startsWith('W/') ? tag.slice(2) : tag);

// Not Express's req.fresh, which ignores If-None-Match with the `Cache-Control: no-cache` that fetch() adds.
export function isKnown(known: string | undefined, etag: string): boolean {
  if (known === undefined) return false;
  if (known === etag || known.trim() === '*') return true;
  const tags: string[] = known.match(/(?:W\/)?"[^"]*"/g) ?? [];
  return tags.some((tag) => opaque(tag) === opaque(etag));
}
