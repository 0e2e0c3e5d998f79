import { isIP } from 'node:net';
import type { Request } from 'express';

/**
 * The address of the client: the peer, or behind `TRUSTED_PROXIES` the last address in X-Forwarded-For that is not one of
 * them. Entries before it may be forged.
 */
function clientAddress(req: Request): string {
  const peer = req.socket.remoteAddress ?? '';
  if (req.headers['x-forwarded-for'] === undefined) return plain(peer);
  const address = req.ip ?? '';
  return plain(isIP(address) === 0 ? peer : address);
}

/** The network that limits count: an IPv4 address, or the /64 of an IPv6 address, which is one client's. */
export const clientNetwork = (req: Request): string => networkOf(clientAddress(req));

export function networkOf(address: string): string {
  const short = plain(address);
  return short.includes(':') ? ipv6Network(short, 4) : short;
}

/** The networks around an address. */
export interface Networks {
  /** An IPv4 address, or 64 bits of an IPv6 address. */
  network: string;
  /** 24 bits of an IPv4 address, or 48. */
  site: string;
  /** 16 bits of an IPv4 address, or 32. */
  provider: string;
}

export function clientNetworks(req: Request): Networks {
  const address = clientAddress(req);
  if (address.includes(':'))
    return {
      network: ipv6Network(address, 4),
      site: ipv6Network(address, 3),
      provider: ipv6Network(address, 2),
    };
  const [a, b, c] = address.split('.');
  return { network: address, site: `${a}.${b}.${c}.0/24`, provider: `${a}.${b}.0.0/16` };
}

/** The client's site; null: it has no address, as on a socket that is a file. */
export const clientSite = (req: Request | undefined): string | null =>
  req === undefined || isIP(clientAddress(req)) === 0 ? null : clientNetworks(req).site;

const plain = (address: string) =>
  address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;

/** `groups`: how many of the eight numbers are the network's. */
function ipv6Network(address: string, groups: number): string {
  const [head = '', tail] = address.split('%')[0]!.split('::');
  const numbers = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const end = tail === '' ? [] : tail.split(':');
    while (numbers.length + end.length < 8) numbers.push('0');
    numbers.push(...end);
  }
  return `${numbers
    .slice(0, groups)
    .map((number) => Number.parseInt(number, 16).toString(16))
    .join(':')}::/${groups * 16}`;
}

/** Whether the peer of the connection is one of TRUSTED_PROXIES. */
export function isTrustedPeer(req: Request): boolean {
  const trusts = req.app.get('trust proxy fn') as (address: string, distance: number) => boolean;
  return trusts(req.socket.remoteAddress ?? '', 0);
}
