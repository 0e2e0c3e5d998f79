import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Request } from 'express';
import type { ConcurrencyLimit, LimitedClient } from './concurrency-limit';

/** An IP address, to which every limit of requests, connections and bytes applies. */
export class Client implements LimitedClient {
  /** The part of each quota that it uses. */
  readonly used = new Map<Quota, number>();
  readonly queues: LimitedClient['queues'] = new Map<ConcurrencyLimit, never>();

  /** @param network An IPv4 address, or the /64 of an IPv6 address, which belongs to one client. */
  constructor(
    readonly network: string,
    readonly networks: LimitedClient['networks'] = [],
  ) {}

  /**
   * The surrounding network: 24 bits of an IPv4 address or 48 of an IPv6 address for a site, 16 or 32 for a
   * provider.
   */
  networkPrefix(around: 'site' | 'provider'): string {
    const { network } = this;
    const parts = around === 'site' ? 3 : 2;
    if (network.includes(':')) return ipv6Network(network, parts * 16);
    return (
      network && `${[...network.split('.').slice(0, parts), '0', '0'].slice(0, 4).join('.')}/${8 * parts}`
    );
  }
}

const isIdle = ({ used, queues }: Client) =>
  used.size === 0 && [...queues.values()].every(({ running, waiting }) => running + waiting.size === 0);

// Networks of IPv6 clients by the length of their prefix: those of a household, and those of a site.
const IPV6_NETWORKS = [
  { prefix: 56, multiple: 2 },
  { prefix: 48, multiple: 4 },
];

export class Clients {
  private readonly byNetwork = new Map<string, Client>();

  /** `address`: empty without an IP address, as on a file socket. */
  of(address: string): Client {
    const plain = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
    if (!plain.includes(':')) return this.ofNetwork(plain);
    const networks = IPV6_NETWORKS.map(({ prefix, multiple }) => ({
      client: this.ofNetwork(ipv6Network(plain, prefix)),
      multiple,
    }));
    return this.ofNetwork(ipv6Network(plain, 64), networks);
  }

  private ofNetwork(network: string, networks?: Client['networks']): Client {
    let client = this.byNetwork.get(network);
    if (!client) this.byNetwork.set(network, (client = new Client(network, networks)));
    return client;
  }

  /** The client that a trusted proxy names. */
  ofRequest(req: IncomingMessage, peer: Client): Client {
    if (req.headers['x-forwarded-for'] === undefined) return peer;
    // Express takes the last address that isn't a trusted proxy's: entries before it may be forged.
    const { ip = '' } = req as Request;
    return isIP(ip) === 0 ? peer : this.of(ip);
  }

  forgetIdle(): void {
    const used = new Set<LimitedClient>();
    for (const client of this.byNetwork.values())
      if (!isIdle(client)) for (const network of client.networks ?? []) used.add(network.client);
    for (const [network, client] of this.byNetwork)
      if (isIdle(client) && !used.has(client)) this.byNetwork.delete(network);
  }
}

function ipv6Network(address: string, prefix: number): string {
  const [head = [], tail] = address
    .split('%')[0]!
    .split('::')
    .map((half) => half.split(':').filter(Boolean));
  const zeros = tail ? new Array<string>(8 - head.length - tail.length).fill('0') : [];
  const texts = [...head, ...zeros, ...(tail ?? [])].slice(0, Math.ceil(prefix / 16));
  const numbers = texts.map((text) => Number.parseInt(text, 16));
  // Clears the bits of the last number that aren't part of the network.
  numbers.push(numbers.pop()! & (0xffff << (-prefix & 15)));
  return `${numbers.map((number) => number.toString(16)).join(':')}::/${prefix}`;
}

// The rest is reserved for clients that use less than an equal share.
const UNRESERVED_SHARE = 3 / 4;

/**
 * A limited number of connections or bytes that one client can't use up. Those beyond the limit are rejected
 * and don't wait.
 */
export class Quota {
  used = 0;
  rejected = 0;
  private clients = 0;

  constructor(readonly total: number) {}

  take(client: Client, amount = 1): boolean {
    const own = client.used.get(this) ?? 0;
    const used = this.used + amount;
    // The clients that use the quota, including this one, and one more get equal shares.
    const equalShare = Math.max(1, this.total / (this.clients + (own === 0 ? 2 : 1)));
    if (used > this.total * UNRESERVED_SHARE && (used > this.total || own + amount > equalShare)) {
      this.rejected++;
      return false;
    }
    if (own === 0) this.clients++;
    client.used.set(this, own + amount);
    this.used = used;
    return true;
  }

  release(client: Client, amount = 1): void {
    const rest = client.used.get(this)! - amount;
    this.used -= amount;
    if (rest > 0) client.used.set(this, rest);
    else if (client.used.delete(this)) this.clients--;
  }
}
