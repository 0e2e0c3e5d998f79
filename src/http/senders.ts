import type { IncomingMessage } from 'node:http';
import type { Request } from 'express';
import { clientNetwork, networkOf } from './client-address';
import type { Connection } from './connection';
import type { Exchange } from './exchange';

/** The amounts that one network address holds of each capacity. */
export class Holdings {
  connections = 0;
  health = 0;
  slots = 0;
  uploads = 0;
}

/** One network address. */
export class Sender extends Holdings {
  /** Requests that were begun in this turn of the event loop: see turns.ts. */
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
