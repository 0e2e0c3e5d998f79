import { SetMetadata } from '@nestjs/common';
import type { Request } from 'express';
import type { Settings } from '../config/settings';

/** A credential as it came, not verified yet. */
export interface Presented {
  text: string;
  /** Where the address says which kind it is, as the legacy API's does. */
  type?: 'key' | 'jwt';
}

/** Where a route's credential stands in the request; undefined: it has none. */
export type PresentedBy = (req: Request, settings: Settings) => Presented | undefined;

const PRESENTED_BY = 'gamewharf:presented-by';

/** On a controller or a handler whose callers do not use the Authorization header. */
export const CredentialFrom = (presentedBy: PresentedBy) => SetMetadata(PRESENTED_BY, presentedBy);

export const presentedByOf = (handler: object, controller: object): PresentedBy =>
  ((Reflect.getMetadata(PRESENTED_BY, handler) ?? Reflect.getMetadata(PRESENTED_BY, controller)) as
    PresentedBy | undefined) ?? presentedInHeader;

/** `Bearer CREDENTIAL`, or the bare credential, as some clients send it. */
export const presentedInHeader: PresentedBy = (req) => {
  const header = req.headers.authorization;
  if (!header) return undefined;
  const text = (
    header.startsWith('Bearer ') ? header.slice(7) : header.replace(/^bearer(\s+|$)/i, '')
  ).trim();
  return text ? { text: decoded(text) } : undefined;
};

const utf8 = new TextDecoder('utf-8', { fatal: true });

// Node reads headers as Latin-1. A key that was imported may hold any letter, which clients send as UTF-8, or as Latin-1.
function decoded(text: string): string {
  if (/^[\x00-\x7f]*$/.test(text)) return text;
  try {
    return utf8.decode(Buffer.from(text, 'latin1'));
  } catch {
    return text;
  }
}
