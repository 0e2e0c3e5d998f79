import type { IncomingMessage } from 'node:http';
import { isIP } from 'node:net';
import type { Request } from 'express';
import type { ConcurrencyLimit, LimitedClient } from './concurrency-limit';

/** What one client uses of each quota. */
class Usage {
  connections = 0;
  /** Bytes of request bodies that are being read. */
  uploads = 0;
  /** Bytes of imports that may be small. */
  importBytes = 0;
}

/** An IP address: every limit of requests, connections and bytes counts by it. */
export class Client extends Usage implements LimitedClient {
  readonly lanes: LimitedClient['lanes'] = new Map<ConcurrencyLimit, never>();

  constructor(
    /** An IPv4 address, or the /64 of an IPv6 address, which belongs to one client. */
    readonly network: string,
  ) {
    super();
  }

  /** 24 bits of an IPv4 address, or 48. */
  get site(): string {
    return this.network && around(this.network, 3);
  }

  /** 16 bits of an IPv4 address, or 32. */
  get provider(): string {
    return this.network && around(this.network, 2);
  }
}

const isIdle = ({ connections, uploads, importBytes, lanes }: Client) =>
  connections + uploads + importBytes === 0 &&
  [...lanes.values()].every(({ running, waiting }) => running + waiting.length === 0);

const MAX_FORWARDED = 10_000;

export class Clients {
  private readonly byNetwork = new Map<string, Client>();
  // By X-Forwarded-For, which takes 3 µs to parse.
  private readonly byForwarded = new Map<string, Client>();

  ofPeer(address: string): Client {
    return this.of(networkOf(address));
  }

  /** The client that a trusted proxy names. */
  ofRequest(req: IncomingMessage, peer: Client): Client {
    const header = req.headers['x-forwarded-for'];
    if (typeof header !== 'string') return peer;
    let forwarded = this.byForwarded.get(header);
    if (!forwarded) {
      if (this.byForwarded.size === MAX_FORWARDED) this.byForwarded.clear();
      this.byForwarded.set(header, (forwarded = this.of(networkOf(clientAddress(req as Request)))));
    }
    return forwarded;
  }

  forgetIdle(): void {
    this.byForwarded.clear();
    for (const [network, client] of this.byNetwork) if (isIdle(client)) this.byNetwork.delete(network);
  }

  private of(network: string): Client {
    let client = this.byNetwork.get(network);
    if (!client) this.byNetwork.set(network, (client = new Client(network)));
    return client;
  }
}

/** Express takes the last address in X-Forwarded-For that no trusted proxy has: entries before it may be forged. */
function clientAddress(req: Request): string {
  const address = req.ip ?? '';
  return isIP(address) === 0 ? (req.socket.remoteAddress ?? '') : address;
}

/** Empty: no address, as on a socket that is a file. */
function networkOf(address: string): string {
  const plain = address.startsWith('::ffff:') && address.includes('.') ? address.slice(7) : address;
  return plain.includes(':') ? ipv6Network(plain, 4) : plain;
}

/** The network around another. `parts`: how many numbers of the address are its own. */
function around(network: string, parts: 2 | 3): string {
  if (network.includes(':')) return ipv6Network(network, parts);
  const [a, b, c] = network.split('.');
  return parts === 3 ? `${a}.${b}.${c}.0/24` : `${a}.${b}.0.0/16`;
}

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

// The rest is reserved for clients that use less than an equal share.
const UNRESERVED_SHARE = 3 / 4;

/** A number of connections or bytes of which no client can take everything. Nothing waits for it. */
export class Quota {
  used = 0;
  rejected = 0;
  private clients = 0;

  constructor(
    readonly name: keyof Usage,
    readonly total: number,
  ) {}

  take(client: Usage, amount = 1): boolean {
    const own = client[this.name];
    const used = this.used + amount;
    if (used > this.total * UNRESERVED_SHARE && (used > this.total || own + amount > this.shareOf(own))) {
      this.rejected++;
      return false;
    }
    if (own === 0) this.clients++;
    client[this.name] = own + amount;
    this.used = used;
    return true;
  }

  release(client: Usage, amount = 1): void {
    this.used -= amount;
    client[this.name] -= amount;
    if (client[this.name] === 0) this.clients--;
  }

  /** An equal share for each client that uses some, and for one more. */
  private shareOf(own: number): number {
    return Math.max(1, this.total / (this.clients + (own === 0 ? 2 : 1)));
  }
}
