import { isUtf8 } from 'node:buffer';
import { createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { NextFunction, Request, Response } from 'express';
import { type ApiError, badRequest } from '../../platform/errors/api-error';
import type { RateLimitKeys, UnverifiedCredential } from '../../platform/server/request';
import { invalidKey, invalidToken } from './errors';

export type { UnverifiedCredential };

export interface Credential {
  type: 'key' | 'jwt';
  user_id: number;
  /** Sorted, without duplicates. */
  scopes: readonly string[];
  /** The API key, or the one that issued the JWT; null: a JWT issued by an operator. */
  api_key_id: number | null;
  /** The app that holds the API key. */
  client_id?: string;
  /** The game for which a JWT was issued. */
  game_id?: number;
  /** Expiry of a JWT, in seconds since 1970. */
  expires_at?: number;
}

export const rateLimitKeys = ({ api_key_id, user_id }: Credential) =>
  ({
    credential: api_key_id === null ? `user ${user_id}` : `key ${api_key_id}`,
    user: `user ${user_id}`,
    default: `user ${user_id}`,
  }) satisfies RateLimitKeys;

/** The credential of the request, which the guard has verified. */
export const CurrentCredential = createParamDecorator(
  (_: unknown, context: ExecutionContext) => context.switchToHttp().getRequest<Request>().user as Credential,
);

/** A granted scope includes itself and everything below it. */
export const covers = (granted: readonly string[], needed: string): boolean =>
  granted.some((scope) => needed === scope || needed.startsWith(`${scope}:`));

const LEGACY = /^\/api\/1\/([^/?]+)\//;

/**
 * Finds the unverified credential of a request. Beyond RFC 6750, the API accepts a bare key, and a key in the
 * path of a legacy route. Problems are reported where a credential is required.
 */
export function readCredential(req: Request, _res: Response, next: NextFunction): void {
  try {
    req.unverifiedCredential = credentialIn(req);
  } catch (error) {
    req.unverifiedCredential = error as ApiError;
  }
  next();
}

/** The KEY in the path of a legacy route is the credential, or says which type the header has. */
function credentialIn(req: Request): UnverifiedCredential | undefined {
  const key = keyOfPath(req.url);
  if (key !== undefined && key !== 'key' && key !== 'jwt') return { type: 'key', text: key };
  const text = readAuthorization(req);
  // A space indicates another scheme.
  if (text === '' || BLANK.test(text)) return undefined;
  const type = hasFormOfJwt(text) ? 'jwt' : 'key';
  if (key !== undefined && key !== type) throw key === 'key' ? invalidKey() : invalidToken();
  return { type, text };
}

function keyOfPath(url: string): string | undefined {
  const [, key] = LEGACY.exec(url) ?? [];
  try {
    return key && decodeURIComponent(key);
  } catch {
    // The router rejects such a path.
    return undefined;
  }
}

const JWT = /^[\w-]+\.[\w-]+\.[\w-]*$/;

/** Three base64url parts are a JWT; the last is empty in a JWT without a signature. */
export const hasFormOfJwt = (text: string): boolean => JWT.test(text);

/** The Authorization header without `Bearer`; empty if it is missing. */
export function readAuthorization(req: Request): string {
  if (hasTwoAuthorizations(req)) throw badRequest('Authorization must be given once');
  return withoutScheme(req.headers.authorization ?? '');
}

// Node keeps only the first Authorization header in req.headers.
function hasTwoAuthorizations({ rawHeaders }: Request): boolean {
  let found = 0;
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === 13 && rawHeaders[i]!.toLowerCase() === 'authorization') found++;
  return found > 1;
}

const BLANK = /[ \t]/;

const withoutScheme = (header: string) =>
  decoded((header.startsWith('Bearer ') ? header.slice(7) : header.replace(/^bearer(\s|$)/i, '')).trim());

const ASCII = /^[\x00-\x7f]*$/;
const BYTES = /^[\x00-\xff]*$/;

// Node reads headers as Latin-1. Imported keys may contain any letter, sent as UTF-8 or Latin-1.
function decoded(text: string): string {
  if (ASCII.test(text) || !BYTES.test(text)) return text;
  const bytes = Buffer.from(text, 'latin1');
  return isUtf8(bytes) ? bytes.toString() : text;
}
