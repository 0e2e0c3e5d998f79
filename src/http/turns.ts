import type { Exchange } from './exchange';
import type { Sender } from './senders';

// With more, everybody else waits for all of them: once for each answer of the database that they need.
const BEGUN_IN_A_TURN = 64;
// Each is a request in memory.
const MAX_WAITING = 2000;

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
