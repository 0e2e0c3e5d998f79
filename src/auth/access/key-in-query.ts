import type { Request, RequestHandler } from 'express';
import { parseFields } from '../../platform/input/body';
import { NOT_UTF8 } from '../../platform/input/input-values';

// Clients that open the URL of a download with another program can't send a header.
const DOWNLOAD =
  /^\/(uploads\/[^/?]+|builds\/[^/?]+|wharf\/builds\/[^/?]+\/files\/[^/?]+)\/download(\/[^/?]+\/[^/?]+)?\?/;

/** Accepts `api_key` in the query of downloads. */
export const keysOfDownloads: RequestHandler = (req, _res, next) => {
  if (DOWNLOAD.test(req.url)) takeKeyFromQuery(req);
  next();
};

/**
 * Moves `api_key` from the query to the Authorization header, unless the request has one, so that nothing can
 * log the URL with it.
 */
export function takeKeyFromQuery(req: Request): void {
  const start = req.url.indexOf('?');
  if (start < 0) return;
  const keys: unknown[] = [];
  const rest = req.url
    .slice(start + 1)
    .split('&')
    .filter((field) => {
      const key = keyIn(field);
      if (key !== undefined) keys.push(key);
      return key === undefined;
    });
  if (keys.length === 0) return;
  req.url = req.url.slice(0, start) + (rest.length === 0 ? '' : `?${rest.join('&')}`);
  req.originalUrl = req.url;
  if (keys.length === 1) req.headers.authorization ||= toBearer(keys[0]);
}

// Most fields need no parsing. The name of the parameter may be percent-encoded.
const keyIn = (field: string): unknown =>
  field.startsWith('api_key') || field.includes('%') ? parseFields(field).api_key : undefined;

/** The header for a key from a parameter. */
export function toBearer(key: unknown): string | undefined {
  if (typeof key !== 'string' || key === '' || key === NOT_UTF8) return undefined;
  // Node reads the UTF-8 bytes of a header as Latin-1.
  return `Bearer ${Buffer.from(key).toString('latin1')}`;
}
