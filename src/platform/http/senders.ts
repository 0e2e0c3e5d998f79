import type { IncomingMessage, ServerResponse } from 'node:http';
import { isIP, type Socket } from 'node:net';
import type { Request } from 'express';
import type { Exchange } from './in-flight';

/** The amounts that one network address holds of each capacity. */
class Holdings {
  connections = 0;
  health = 0;
  slots = 0;
  uploads = 0;
  /** Large imports. */
  imports = 0;
  /** Bytes of imports that are not known to be large. */
  importBytes = 0;
}

/** One network address: what the limits of requests and the shares of each capacity count. */
export class Sender extends Holdings {
  /** Requests that were begun in this turn of the event loop: see Turns. */
  begun = 0;
  /** Requests that wait for a later one. */
  waiting: Exchange[] = [];

  constructor(
    /** An IPv4 address, or the /64 of an IPv6 address, which is one client's. */
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

const holdsNothing = ({ connections, health, slots, uploads, imports, importBytes, waiting }: Sender) =>
  connections + health + slots + uploads + imports + importBytes + waiting.length === 0;

const MAX_FORWARDED = 10_000;

export class Senders {
  private readonly byNetwork = new Map<string, Sender>();
  // By X-Forwarded-For, which takes 3 µs to parse.
  private readonly byForwarded = new Map<string, Sender>();

  ofPeer(address: string): Sender {
    return this.of(networkOf(address));
  }

  ofRequest(req: IncomingMessage, { sender, isTrusted }: Connection): Sender {
    if (!isTrusted) return sender;
    const header = req.headers['x-forwarded-for'];
    if (typeof header !== 'string') return sender;
    let forwarded = this.byForwarded.get(header);
    if (!forwarded) {
      if (this.byForwarded.size === MAX_FORWARDED) this.byForwarded.clear();
      this.byForwarded.set(header, (forwarded = this.of(networkOf(clientAddress(req as Request)))));
    }
    return forwarded;
  }

  /** Removes senders that hold nothing. */
  forget(): void {
    this.byForwarded.clear();
    for (const [network, sender] of this.byNetwork) if (holdsNothing(sender)) this.byNetwork.delete(network);
  }

  private of(network: string): Sender {
    let sender = this.byNetwork.get(network);
    if (!sender) this.byNetwork.set(network, (sender = new Sender(network)));
    return sender;
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

// The rest is reserved for addresses that hold less than an equal share.
const UNRESERVED_SHARE = 3 / 4;

/** A resource of which no address can take everything. A proxy that hides its clients' addresses can use most of it. */
export class Capacity {
  used = 0;
  /** How often `take` failed. */
  refusals = 0;
  private senders = 0;

  constructor(
    readonly name: keyof Holdings,
    readonly total: number,
  ) {}

  take(sender: Holdings, amount = 1): boolean {
    const held = sender[this.name];
    const used = this.used + amount;
    if (used > this.total * UNRESERVED_SHARE && (used > this.total || held + amount > this.shareOf(held))) {
      this.refusals++;
      return false;
    }
    if (held === 0) this.senders++;
    sender[this.name] = held + amount;
    this.used = used;
    return true;
  }

  giveBack(sender: Holdings, amount = 1): void {
    this.used -= amount;
    sender[this.name] -= amount;
    if (sender[this.name] === 0) this.senders--;
  }

  /** An equal share for each address that holds some, and for one more. */
  private shareOf(held: number): number {
    return Math.max(1, this.total / (this.senders + (held === 0 ? 2 : 1)));
  }
}

// Each of them uses memory until the connection closes.
const MAX_IGNORED = 100;
const LINGER_TIMEOUT = 1000;

/** A connection of a client. */
export class Connection {
  /** Requests whose answer is not sent yet: more than one where the client pipelines. */
  unanswered = 0;
  newest: Exchange | undefined = undefined;
  /** No further request is served: an answer had `Connection: close`. */
  isClosing = false;
  private ignored = 0;
  private lastText: string | undefined = undefined;

  constructor(
    readonly socket: Socket,
    readonly sender: Sender,
    /** The peer is a trusted proxy. */
    readonly isTrusted: boolean,
  ) {
    // Node calls it after an answer with `Connection: close`.
    socket.destroySoon = () => this.linger();
  }

  /** Node closes the connection when this answer is sent. */
  closeAfter(res: ServerResponse): void {
    this.isClosing = true;
    if (!res.headersSent) res.setHeader('Connection', 'close');
  }

  /** Sends this text after all answers, and closes. */
  closeWith(text: string): void {
    this.isClosing = true;
    this.lastText = text;
    this.closeIfAnswered();
  }

  answered(): void {
    this.unanswered--;
    this.closeIfAnswered();
  }

  ignoreRequest(): void {
    this.ignored++;
    if (this.ignored > MAX_IGNORED) this.socket.destroy();
  }

  private closeIfAnswered(): void {
    const { socket, lastText } = this;
    if (this.unanswered > 0 || lastText === undefined) return;
    if (socket.writable) socket.write(lastText);
    this.linger();
  }

  /** Waits for the client to close: a reset while it still sends could make it lose the answer. */
  private linger(): void {
    this.isClosing = true;
    const { socket } = this;
    socket.end();
    // What still comes is not parsed: in tiny chunks it would cost more than all that was answered.
    socket.removeAllListeners('data').on('data', () => undefined);
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), LINGER_TIMEOUT).unref();
    socket.once('close', () => clearTimeout(timer));
  }
}
