import { BlockList } from 'node:net';

const V4 = [
  ...['0.0.0.0/8', '10.0.0.0/8', '100.64.0.0/10', '127.0.0.0/8', '169.254.0.0/16', '172.16.0.0/12'],
  ...['192.0.0.0/24', '192.0.2.0/24', '192.88.99.0/24', '192.168.0.0/16', '198.18.0.0/15'],
  ...['198.51.100.0/24', '203.0.113.0/24', '224.0.0.0/3'],
];
// Ranges excluded from 2000::/3, which contains all public IP addresses: tunnels to IPv4 addresses, and
// ranges for documentation.
const V6 = ['2001::/23', '2001:db8::/32', '2002::/16', '3fff::/20'];

const createBlockList = (ranges: string[], family: 'ipv4' | 'ipv6') => {
  const list = new BlockList();
  for (const range of ranges) {
    const [address, bits] = range.split('/') as [string, string];
    list.addSubnet(address, Number(bits), family);
  }
  return list;
};

const SPECIAL_V4 = createBlockList(V4, 'ipv4');
const PUBLIC_V6 = createBlockList(['2000::/3'], 'ipv6');
const SPECIAL_V6 = createBlockList(V6, 'ipv6');
const LOOPBACK = createBlockList(['127.0.0.0/8'], 'ipv4');

/** Whether an IP address is one of the public internet. */
export const isPublicAddress = (address: string): boolean =>
  address.includes(':')
    ? PUBLIC_V6.check(address, 'ipv6') && !SPECIAL_V6.check(address, 'ipv6')
    : !SPECIAL_V4.check(address, 'ipv4');

export const isLoopbackAddress = (address: string): boolean =>
  address === '::1' || LOOPBACK.check(address, 'ipv4');
