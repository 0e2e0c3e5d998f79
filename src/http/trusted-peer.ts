import type { Request } from 'express';

/** Whether the other end of the connection is one of `TRUSTED_PROXIES`: then what it says of its caller is believed. */
export function isTrustedPeer(req: Request): boolean {
  const trusts = req.app.get('trust proxy fn') as (address: string, distance: number) => boolean;
  return trusts(req.socket.remoteAddress ?? '', 0);
}
