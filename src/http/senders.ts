import type { IncomingMessage } from 'node:http';
import type { Request } from 'express';
import { clientNetwork, networkOf } from './client-address';
import type { Connection, Exchange } from './connection';

/** The amounts that one network address holds of each capacity. */
export class Holdings {
  connections = 0;
  health = 0;
  slots = 0;
  uploads = 0;
}

/** One network address. */
export class Sender extends Holdings {
  /** Requests that were begun in this turn of the event loop: see Turns. */
  begun = 0;
  /** Requests that wait for a later one. */
  waiting: Exchange[] = [];
}

const holdsNothing = ({ connections, health, slots, uploads, waiting }: Sender) =>
  connections + health + slots + uploads + waiting.length === 0;

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
      this.byForwarded.set(header, (forwarded = this.of(clientNetwork(req as Request))));
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
    if (!sender) this.byNetwork.set(network, (sender = new Sender()));
    return sender;
  }
}

// The rest is reserved for addresses that hold less than an equal share.
const UNRESERVED = 3 / 4;

/**
 * A resource that all requests share, of which no address can take everything. Up to three quarters of it go to anybody,
 * so that a proxy which hides its clients' addresses can use most of it.
 */
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
    if (used > this.total * UNRESERVED && (used > this.total || held + amount > this.shareOf(held))) {
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

// With more, everybody else waits for all of them: once for each answer of the database that they need.
export const BEGUN_IN_A_TURN = 64;
// Each is a request in memory.
export const MAX_WAITING = 2000;

/** In one turn of the event loop only so many requests of one address are begun. Those that came later wait, in order. */
export class Turns {
  /** Addresses that have begun a request in this turn. */
  private senders: Sender[] = [];

  constructor(private readonly begin: (exchange: Exchange) => void) {}

  /** False: too many of this address wait already. */
  take(exchange: Exchange): boolean {
    const { sender } = exchange;
    if (sender.begun < BEGUN_IN_A_TURN) this.beginNow(exchange);
    else if (sender.waiting.length < MAX_WAITING) sender.waiting.push(exchange);
    else return false;
    return true;
  }

  private beginNow(exchange: Exchange): void {
    const { senders } = this;
    if (senders.length === 0) setImmediate(() => this.nextTurn());
    if (exchange.sender.begun++ === 0) senders.push(exchange.sender);
    this.begin(exchange);
  }

  private nextTurn(): void {
    const { senders } = this;
    this.senders = [];
    for (const sender of senders) {
      sender.begun = 0;
      if (sender.waiting.length === 0) continue;
      const waiting = sender.waiting.filter(isUnanswered);
      sender.waiting = waiting.slice(BEGUN_IN_A_TURN);
      for (const exchange of waiting.slice(0, BEGUN_IN_A_TURN)) this.beginNow(exchange);
    }
  }
}

const isUnanswered = ({ isClosed, res }: Exchange) => !isClosed && !res.writableEnded;
