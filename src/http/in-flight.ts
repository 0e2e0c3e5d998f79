import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendFailure } from './answer';
import { failure, serviceUnavailable } from './failure';

declare module 'node:net' {
  interface Socket {
    /** How many of its requests are not answered, or their answers not read. */
    in_flight?: number;
  }
}

export interface Arrival {
  readonly req: IncomingMessage;
  readonly res: ServerResponse;
  /** When it came, by performance.now(). */
  readonly at: number;
  /** From when its time counts: later than `at` where the caller took long to send it. */
  since: number;
  /** Where it stands among those in flight; -1: nowhere. */
  place: number;
  /** Of an answer that is sent piece by piece: how much its connection had taken when it was last looked at. */
  sent?: number;
}

// Waiting for the database ends before that by itself; this is for the sum of several waits.
const ANSWER_WITHIN = 2300;
// Here and not as the server's requestTimeout, which has no exceptions: an operator's import is sent for minutes.
const BODY_WITHIN = 8000;
const READ_WITHIN = 10_000;
const SWEEP_EVERY = 100;

const patient = new WeakSet<IncomingMessage>();

/** For a handler whose work is long by nature: neither the request's body nor its answer has a deadline. */
export const takesLong = (req: IncomingMessage) => void patient.add(req);

/**
 * The requests being answered, in an array without holes. A Set would leave a table behind at every few dozen arrivals, each
 * with a pointer to the next: the first that V8 takes for old keeps all later ones, and their requests, from being
 * collected young. See docs/decisions/fast-requests.md.
 */
export class InFlight {
  private readonly arrivals: Arrival[] = [];
  // Answered before all of their body had come.
  private readonly trailing = new Set<Arrival>();
  private timer: NodeJS.Timeout | undefined;

  get count(): number {
    return this.arrivals.length;
  }

  /** How many of the same connection are in flight. */
  ahead({ req }: Arrival): number {
    return req.socket.in_flight ?? 0;
  }

  enter(arrival: Arrival): void {
    arrival.place = this.arrivals.push(arrival) - 1;
    arrival.req.socket.in_flight = this.ahead(arrival) + 1;
  }

  leave(arrival: Arrival): void {
    const { req, place } = arrival;
    if (!req.complete && !req.socket.destroyed) this.trailing.add(arrival);
    // It was refused, and given no place.
    if (place < 0) return;
    req.socket.in_flight = this.ahead(arrival) - 1;
    const last = this.arrivals.pop()!;
    if (last === arrival) return;
    this.arrivals[place] = last;
    last.place = place;
  }

  start(): void {
    this.timer = setInterval(() => this.sweep(performance.now()), SWEEP_EVERY).unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private sweep(now: number): void {
    for (const arrival of this.trailing) {
      const { req, at } = arrival;
      if (!req.complete && !req.socket.destroyed && now - at < BODY_WITHIN) continue;
      this.trailing.delete(arrival);
      if (!req.complete) req.socket.destroy();
    }
    for (const arrival of this.arrivals) {
      if (now - arrival.at < ANSWER_WITHIN) continue;
      const { req, res } = arrival;
      if (res.writableEnded) {
        // A peer that does not read keeps its answer in our memory.
        if (now - arrival.since > ANSWER_WITHIN + READ_WITHIN) req.socket.destroy();
      } else if (res.headersSent) {
        const sent = req.socket.bytesWritten - req.socket.writableLength;
        if (sent !== arrival.sent) arrival.since = now;
        else if (now - arrival.since > READ_WITHIN) req.socket.destroy();
        arrival.sent = sent;
      } else if (!req.complete) {
        arrival.since = now;
        if (now - arrival.at >= BODY_WITHIN && !patient.has(req)) {
          res.setHeader('Connection', 'close');
          sendFailure(res, failure(408, 'request timeout'));
        }
      } else if (now - arrival.since >= ANSWER_WITHIN && !res.headersSent && !patient.has(req))
        sendFailure(res, serviceUnavailable());
    }
  }
}
