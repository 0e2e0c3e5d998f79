import type { Request } from 'express';

/** Whether the peer of the connection is one of TRUSTED_PROXIES. */
export function isTrustedPeer(req: Request): boolean {
  const trusts = req.app.get('trust proxy fn') as (address: string, distance: number) => boolean;
  return trusts(req.socket.remoteAddress ?? '', 0);
}
