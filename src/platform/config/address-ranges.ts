import { isIP } from 'node:net';

const RANGE_NAMES = new Set(['loopback', 'linklocal', 'uniquelocal']);

/** The items of a list such as `loopback, 10.0.0.0/8`. */
export const addressRangesOf = (list: string): string[] =>
  list
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);

export function isAddressRange(text: string): boolean {
  if (RANGE_NAMES.has(text)) return true;
  const [address = '', bits, ...rest] = text.split('/');
  const version = isIP(address);
  if (version === 0 || rest.length > 0) return false;
  return bits === undefined || (/^\d{1,3}$/.test(bits) && Number(bits) <= (version === 4 ? 32 : 128));
}
