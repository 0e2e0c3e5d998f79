import type { Request } from 'express';

/** A credential as a request presents it, before anybody asked whether it is good. */
export interface Presented {
  text: string;
  /** Where the path says which kind it has to be. */
  type?: 'key' | 'jwt';
}

/**
 * The credential stands in the Authorization header, as `Bearer CREDENTIAL` or bare. On the routes whose path has a KEY it may be
 * the KEY itself; or the KEY says which kind the header holds.
 */
export function presentedBy({ headers, params }: Request): Presented | undefined {
  const key = params.KEY as string | undefined;
  if (key === undefined || key === 'key' || key === 'jwt')
    return presentedInHeader(headers.authorization, key);
  return { type: 'key', text: key };
}

function presentedInHeader(header: string | undefined, type: Presented['type']): Presented | undefined {
  if (!header) return undefined;
  const bare = header.startsWith('Bearer ') ? header.slice(7) : header.replace(/^bearer(\s+|$)/i, '');
  const text = decoded(bare.trim());
  return text === '' ? undefined : { text, type };
}

const ASCII = /^[\x00-\x7f]*$/;
const utf8 = new TextDecoder('utf-8', { fatal: true });

// Node reads headers as Latin-1. A key that was imported may hold any letter, which clients send as UTF-8, or as Latin-1.
function decoded(text: string): string {
  if (ASCII.test(text)) return text;
  try {
    return utf8.decode(Buffer.from(text, 'latin1'));
  } catch {
    return text;
  }
}
