import type { IncomingMessage, ServerResponse } from 'node:http';
import { sendFailure } from './answer';
import { hasBody } from './body';
import { apiError, serviceUnavailable } from './api-error';
import { MAX_BODY } from './parameter-sources';
import type { ClientSocket, Observer } from './request';
import { Capacity, Connection, type Sender, Senders } from './senders';

// Milliseconds. Longer than the timeout of a statement: for requests with several.
export const ANSWER_TIMEOUT = 2300;
// Not the server's requestTimeout, which would also end an operator's import.
export const BODY_TIMEOUT = 8000;
export const READ_TIMEOUT = 10_000;
const SWEEP_INTERVAL = 100;
const SWEEPS_PER_FORGETTING = 100;

export const MAX_HEALTH = 1000;
export const MAX_UPLOAD_BYTES = 64 * 1024 * 1024;
// The memory of a request with a tiny body.
const MIN_UPLOAD_BYTES = 16 * 1024;
// A piece costs about as much time as so many bytes, and a body may have so many pieces more than its bytes explain.
const BYTES_OF_A_PIECE = 32;
const MAX_SURPLUS_PIECES = 1000;

/** A request and its answer. */
export class Exchange {
  /** The start of the deadline for the answer: the end of the body, or `at`. */
  since: number;
  /** Its index in the array of exchanges. */
  index = -1;
  /** The capacity of which it holds one: slots or health. */
  held: Capacity | undefined = undefined;
  /** The bytes that it holds of the capacity `uploads`. */
  upload = 0;
  /** The bytes that its connection had sent at the last sweep. */
  sent = 0;
  /** The answer is sent, or the connection is lost. */
  isClosed = false;
  isLong = false;
  private surplusPieces = 0;

  constructor(
    private readonly inFlight: InFlight,
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    readonly connection: Connection,
    readonly sender: Sender,
    /** Its arrival, by performance.now(). */
    readonly at: number,
  ) {
    this.since = at;
  }

  /** Called when the body is read: the request needs a slot from now on. */
  bodyArrived(): void {
    if (!this.inFlight.bodyArrived(this)) throw serviceUnavailable();
  }

  /** Called for each piece of the body, which is a chunk or what one read of the socket brought; false: refused. */
  pieceArrived(bytes: number): boolean {
    this.surplusPieces += 1 - bytes / BYTES_OF_A_PIECE;
    if (this.surplusPieces <= MAX_SURPLUS_PIECES) return true;
    this.connection.closeAfter(this.res);
    if (!this.res.headersSent) sendFailure(this.res, apiError(413, 'too many chunks'));
    return false;
  }

  /** For long work such as an import: no deadline, and no slot. */
  takesLong(): void {
    this.isLong = true;
    this.inFlight.giveBack(this);
  }

  close(): void {
    this.inFlight.close(this);
  }
}

/** The requests in flight. Each holds bytes of `uploads` until its body is read, then a slot until its answer is sent. */
export class InFlight {
  readonly connections: Capacity;
  readonly slots: Capacity;
  readonly uploads = new Capacity('uploads', MAX_UPLOAD_BYTES);
  readonly health = new Capacity('health', MAX_HEALTH);
  /** Requests whose answer is not sent yet. */
  count = 0;
  // An array, since requests in a Set survive more garbage collections: docs/explanation/decisions/fast-requests.md.
  private readonly exchanges: Exchange[] = [];
  private readonly senders = new Senders();
  // The first refusal of a slot since one was last taken or given back; 0: none.
  private refusedSince = 0;
  private timer: NodeJS.Timeout | undefined;
  private sweeps = 0;

  constructor(
    { MAX_IN_FLIGHT, MAX_CONNECTIONS }: { MAX_IN_FLIGHT: number; MAX_CONNECTIONS: number },
    private readonly observers: readonly Observer[],
  ) {
    this.slots = new Capacity('slots', MAX_IN_FLIGHT);
    this.connections = new Capacity('connections', MAX_CONNECTIONS);
  }

  /** Milliseconds since slots are refused without one being taken or given back. */
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

  /** False: the capacity is used up. */
  admit(exchange: Exchange): boolean {
    const { req, res, connection } = exchange;
    if (!hasBody(req)) return this.takeSlot(exchange);
    if (!this.startUpload(exchange)) {
      connection.closeAfter(res);
      return false;
    }
    // Other methods do not read a body.
    return req.method === 'POST' || this.takeSlot(exchange);
  }

  bodyArrived(exchange: Exchange): boolean {
    // A closed request would never give a slot back.
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
    this.timer = setInterval(() => this.sweep(performance.now()), SWEEP_INTERVAL).unref();
  }

  stop(): void {
    clearInterval(this.timer);
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
    const bytes = Math.min(Math.max(length, MIN_UPLOAD_BYTES), MAX_BODY);
    if (!this.uploads.take(exchange.sender, bytes)) return false;
    exchange.upload = bytes;
    return true;
  }

  private endUpload(exchange: Exchange): void {
    if (exchange.upload === 0) return;
    this.uploads.giveBack(exchange.sender, exchange.upload);
    exchange.upload = 0;
  }

  /** A closed request keeps its slot while its handler runs, and its upload while more bytes may come. */
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
    // Lets an idle connection's last request be collected.
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
        if (!exchange.res.socket && !exchange.res.writableFinished) emitClose(exchange.res.destroy());
        this.close(exchange);
      }
    if (!newest) return;
    if (newest.upload > 0) this.settle(newest);
    // Node does not end a request that was answered before its body arrived.
    if (!newest.req.complete) newest.req.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }));
  }

  private sweep(now: number): void {
    // Backwards, since the last one takes the place of a removed one.
    for (let i = this.exchanges.length - 1; i >= 0; i--) {
      const exchange = this.exchanges[i]!;
      if (exchange.isClosed) this.sweepClosed(exchange, now);
      else if (!exchange.isLong) this.enforceDeadline(exchange, now);
    }
    if (++this.sweeps % SWEEPS_PER_FORGETTING === 0) this.senders.forget();
  }

  private sweepClosed(exchange: Exchange, now: number): void {
    this.settle(exchange, now - exchange.since >= ANSWER_TIMEOUT);
    if (exchange.upload > 0 && now - exchange.at >= BODY_TIMEOUT) exchange.req.socket.destroy();
  }

  private enforceDeadline(exchange: Exchange, now: number): void {
    const { req, res } = exchange;
    if (res.writableEnded) {
      // The answer of a client that does not read takes memory.
      if (now - exchange.since > ANSWER_TIMEOUT + READ_TIMEOUT) req.socket.destroy();
    } else if (res.headersSent) {
      const { bytesWritten, writableLength } = req.socket;
      const sent = bytesWritten - writableLength;
      if (sent !== exchange.sent) exchange.since = now;
      else if (now - exchange.since > READ_TIMEOUT) req.socket.destroy();
      exchange.sent = sent;
    } else if (!req.complete) {
      exchange.since = now;
      if (now - exchange.at < BODY_TIMEOUT) return;
      exchange.connection.closeAfter(res);
      sendFailure(res, apiError(408, 'request timeout'));
    } else if (now - exchange.since >= ANSWER_TIMEOUT) sendFailure(res, serviceUnavailable());
  }
}

function closeExchange(this: ServerResponse): void {
  this.req.exchange.close();
}

/** Node 20 and 22 emit `close` only for the first unsent answer of a connection, later versions for all. */
function emitClose(res: ServerResponse): void {
  setImmediate(() => {
    if (!res.closed) res.emit('close');
  });
}
