import type { Request } from 'express';
import { authenticationRequired, invalidKey, invalidToken } from './refusals';

/** A credential as a request presents it, before anybody asked whether it is good. */
export interface Presented {
  type: 'key' | 'jwt';
  text: string;
}

const JWT = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/**
 * The credential stands in the Authorization header, as `Bearer CREDENTIAL` or bare. On the routes whose path has a KEY it may be
 * the KEY itself; or the KEY says which kind the header holds.
 */
export function presentedBy({ headers, params }: Request): Presented {
  const key = params.KEY as string | undefined;
  if (key !== undefined && key !== 'key' && key !== 'jwt') return { type: 'key', text: key };
  const text = headers.authorization?.replace(/^bearer(\s+|$)/i, '').trim();
  if (!text) throw authenticationRequired();
  const type = JWT.test(text) ? 'jwt' : 'key';
  if (key !== undefined && key !== type) throw key === 'key' ? invalidKey() : invalidToken();
  return { type, text };
}
