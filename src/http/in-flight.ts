import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Request } from 'express';
import { sendFailure } from './answer';
import { Capacity } from './capacity';
import { Connection } from './connection';
import { Exchange } from './exchange';
import { failure, serviceUnavailable } from './failure';
import { hasBody, MAX_BODY } from './parameter-sources';
import type { ClientSocket, Observer } from './request';
import { Senders } from './senders';

// Waiting for the database ends before that by itself; this is for the sum of several waits.
const ANSWER_WITHIN = 2300;
// Not the server's requestTimeout, which has no exceptions: an operator's import is sent for minutes.
const BODY_WITHIN = 8000;
const READ_WITHIN = 10_000;
const SWEEP_EVERY = 100;
const FORGET_EVERY = 10_000;

const HEALTH_AT_ONCE = 1000;
const UPLOADED_AT_ONCE = 64 * 1024 * 1024;
// Even one that promises a single byte has headers and objects.
const SMALLEST_UPLOAD = 16 * 1024;

/**
 * The requests being answered, their deadlines, and what each holds of what all share. A request has a slot from when it is
 * complete until its answer is sent; before that, its body is one of the uploads.
 *
 * An array without gaps: a Set would keep requests from being collected young (docs/decisions/fast-requests.md).
 */
export class InFlight {
  readonly connections: Capacity;
  readonly slots: Capacity;
  readonly uploads = new Capacity('uploads', UPLOADED_AT_ONCE);
  readonly health = new Capacity('health', HEALTH_AT_ONCE);
  /** Requests whose answer is not sent yet. */
  count = 0;
  private readonly exchanges: Exchange[] = [];
  private readonly senders = new Senders();
  // When a slot was first refused after the last one was given or came back; 0: none was.
  private refusedSince = 0;
  private timers: NodeJS.Timeout[] = [];

  constructor(
    { MAX_IN_FLIGHT, MAX_CONNECTIONS }: { MAX_IN_FLIGHT: number; MAX_CONNECTIONS: number },
    private readonly observers: readonly Observer[],
  ) {
    this.slots = new Capacity('slots', MAX_IN_FLIGHT);
    this.connections = new Capacity('connections', MAX_CONNECTIONS);
  }

  /** Milliseconds for which slots were refused and none was given or came back. */
  get stuckFor(): number {
    return this.refusedSince === 0 ? 0 : performance.now() - this.refusedSince;
  }

  connect(socket: ClientSocket, isTrusted: boolean): void {
    const sender = this.senders.ofPeer(socket.remoteAddress ?? '');
    const connection = new Connection(socket, sender, isTrusted);
    socket.client = connection;
    if (this.connections.take(sender)) socket.once('close', () => this.disconnect(connection));
    else socket.destroy();
  }

  open(req: IncomingMessage, res: ServerResponse, connection: Connection, at: number): Exchange {
    const sender = this.senders.ofRequest(req, connection);
    const exchange = new Exchange(this, req, res, connection, sender, at);
    exchange.index = this.exchanges.push(exchange) - 1;
    req.exchange = exchange;
    this.count++;
    connection.unanswered++;
    connection.newest = exchange;
    res.on('close', closeExchange);
    return exchange;
  }

  /** False: there is no room for the request. */
  admit(exchange: Exchange): boolean {
    const { req, res, connection } = exchange;
    if (!hasBody(req as Request)) return this.takeSlot(exchange);
    if (!this.startUpload(exchange)) {
      connection.closeAfter(res);
      return false;
    }
    // Handlers of other methods do not wait for a body.
    return req.method === 'POST' || this.takeSlot(exchange);
  }

  bodyArrived(exchange: Exchange): boolean {
    // It is no longer among those in flight: nothing would give its slot back.
    if (exchange.isClosed) return false;
    this.endUpload(exchange);
    exchange.since = performance.now();
    return this.takeSlot(exchange);
  }

  close(exchange: Exchange): void {
    if (exchange.isClosed) return;
    exchange.isClosed = true;
    this.count--;
    const ms = performance.now() - exchange.at;
    for (const observer of this.observers) observer(exchange.req, exchange.res, ms);
    exchange.connection.answered();
    this.settle(exchange);
  }

  giveBack(exchange: Exchange): void {
    this.endUpload(exchange);
    const { held } = exchange;
    if (!held) return;
    exchange.held = undefined;
    held.giveBack(exchange.sender);
    if (held === this.slots) this.refusedSince = 0;
  }

  start(): void {
    this.timers = [
      setInterval(() => this.sweep(performance.now()), SWEEP_EVERY).unref(),
      setInterval(() => this.senders.forget(), FORGET_EVERY).unref(),
    ];
  }

  stop(): void {
    for (const timer of this.timers) clearInterval(timer);
  }

  private takeSlot(exchange: Exchange): boolean {
    if (exchange.held) return true;
    const capacity = exchange.req.url!.startsWith('/health/') ? this.health : this.slots;
    const taken = capacity.take(exchange.sender);
    if (taken) exchange.held = capacity;
    if (capacity === this.slots) {
      if (taken) this.refusedSince = 0;
      else this.refusedSince ||= performance.now();
    }
    return taken;
  }

  private startUpload(exchange: Exchange): boolean {
    const length = Number(exchange.req.headers['content-length'] ?? MAX_BODY);
    const bytes = Math.min(Math.max(length, SMALLEST_UPLOAD), MAX_BODY);
    if (!this.uploads.take(exchange.sender, bytes)) return false;
    exchange.upload = bytes;
    return true;
  }

  private endUpload(exchange: Exchange): void {
    if (exchange.upload === 0) return;
    this.uploads.giveBack(exchange.sender, exchange.upload);
    exchange.upload = 0;
  }

  /** What a closed request still holds: a slot while its handler works, and its upload while more may come. */
  private settle(exchange: Exchange, isLate = false): void {
    const { req, res } = exchange;
    if (req.complete || req.socket.destroyed) this.endUpload(exchange);
    if (exchange.upload > 0) return;
    if (exchange.held && !res.writableEnded && !isLate) return;
    this.giveBack(exchange);
    this.remove(exchange);
  }

  private remove(exchange: Exchange): void {
    const { connection, index, req } = exchange;
    // An idle connection keeps no request in memory.
    if (connection.newest === exchange && req.complete) connection.newest = undefined;
    const last = this.exchanges.pop()!;
    if (last.index === index) return;
    this.exchanges[index] = last;
    last.index = index;
  }

  private disconnect(connection: Connection): void {
    this.connections.giveBack(connection.sender);
    const { newest } = connection;
    if (connection.unanswered > 0)
      for (const exchange of this.exchanges.filter((one) => one.connection === connection && !one.isClosed)) {
        const { res } = exchange;
        // Node tells the answer whose turn it is, and none behind it.
        if (!res.socket && !res.writableFinished) res.destroy().emit('close');
        else this.close(exchange);
      }
    if (!newest) return;
    if (newest.upload > 0) this.settle(newest);
    // Node tells no request that was answered before its body came.
    if (!newest.req.complete) newest.req.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }));
  }

  private sweep(now: number): void {
    // From the end: the last takes the place of one that is removed.
    for (let i = this.exchanges.length - 1; i >= 0; i--) {
      const exchange = this.exchanges[i]!;
      if (exchange.isClosed) this.sweepClosed(exchange, now);
      else if (!exchange.isLong) this.enforceDeadline(exchange, now);
    }
  }

  private sweepClosed(exchange: Exchange, now: number): void {
    this.settle(exchange, now - exchange.since >= ANSWER_WITHIN);
    if (exchange.upload > 0 && now - exchange.at >= BODY_WITHIN) exchange.req.socket.destroy();
  }

  private enforceDeadline(exchange: Exchange, now: number): void {
    const { req, res } = exchange;
    if (res.writableEnded) {
      // A client that does not read keeps its answer in our memory.
      if (now - exchange.since > ANSWER_WITHIN + READ_WITHIN) req.socket.destroy();
    } else if (res.headersSent) {
      const { bytesWritten, writableLength } = req.socket;
      const sent = bytesWritten - writableLength;
      if (sent !== exchange.sent) exchange.since = now;
      else if (now - exchange.since > READ_WITHIN) req.socket.destroy();
      exchange.sent = sent;
    } else if (!req.complete) {
      exchange.since = now;
      if (now - exchange.at < BODY_WITHIN) return;
      exchange.connection.closeAfter(res);
      sendFailure(res, failure(408, 'request timeout'));
    } else if (now - exchange.since >= ANSWER_WITHIN) sendFailure(res, serviceUnavailable());
  }
}

function closeExchange(this: ServerResponse): void {
  this.req.exchange.close();
}
