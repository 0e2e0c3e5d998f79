import { isIP } from 'node:net';
import type { Request } from 'express';

/**
 * Whose request it is: the peer, or behind `TRUSTED_PROXIES` the nearest address in X-Forwarded-For that is not one of them.
 * What a caller writes into that header itself stands further away, and counts for nothing.
 */
export function clientAddress(req: Request): string {
  const peer = req.socket.remoteAddress ?? '';
  if (req.headers['x-forwarded-for'] === undefined) return plain(peer);
  const address = req.ip ?? '';
  return plain(isIP(address) === 0 ? peer : address);
}

/** An address as a limit counts it: somebody with one IPv6 address has the 2^64 of its network. */
export function clientNetwork(req: Request): string {
  const address = clientAddress(req);
  return address.includes(':') ? ipv6Network(address) : address;
}

const plain = (address: string) =>
  address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;

function ipv6Network(address: string): string {
  const [head = '', tail] = address.split('%')[0]!.split('::');
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    const end = tail === '' ? [] : tail.split(':');
    while (groups.length + end.length < 8) groups.push('0');
    groups.push(...end);
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}
