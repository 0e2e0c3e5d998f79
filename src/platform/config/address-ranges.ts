import { isIP } from 'node:net';

const RANGE_NAMES = new Set(['loopback', 'linklocal', 'uniquelocal']);

/** The items of a list such as `loopback, 10.0.0.0/8`. */
export const parseAddressRanges = (list: string): string[] =>
  list
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);

export function isAddressRange(text: string): boolean {
  const [, address = '', bits = '0'] = /^([^/]+)(?:\/(\d{1,3}))?$/.exec(text) ?? [];
  const version = isIP(address);
  return RANGE_NAMES.has(text) || (version !== 0 && Number(bits) <= (version === 4 ? 32 : 128));
}
