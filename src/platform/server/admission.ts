import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import type { Clock } from '../config/clock';
import { sendApiError } from '../output/response';
import { type ApiError, apiError, serviceUnavailable } from '../errors/api-error';
import { hasBody, MAX_BODY_BYTES } from '../input/body';
import { type Client, Clients, Quota } from '../limits/client-limits';
import { ConcurrencyLimit, type Work } from '../limits/concurrency-limit';
import { type ClientSocket, Connection } from './connection';
import { NewConnections } from './new-connections';
import type { Observer } from '../observability/hooks';

// Longer than the timeout of a statement, because a request may have several.
export const RESPONSE_TIMEOUT_MS = 2300;
/** How long a request may wait to begin, as a part of RESPONSE_TIMEOUT_MS. */
export const WAIT_TIMEOUT_MS = 1000;
// Separate from the server's requestTimeout, which would also end an operator's import.
export const BODY_TIMEOUT_MS = 8000;
export const READ_TIMEOUT_MS = 10_000;
/** A client that reads less of a response in READ_TIMEOUT_MS loses its connection: 8 KB per second. */
export const MIN_READ_BYTES = 80 * 1024;
const DEADLINE_CHECK_INTERVAL_MS = 100;
const SWEEPS_PER_FORGETTING = 100;

export const MAX_HEALTH = 1000;
export const MAX_UPLOAD_BYTES = 64 * 1024 * 1024;
// The memory of a request with a tiny body.
const MIN_UPLOAD_BYTES = 16 * 1024;
// Smaller chunks take many times as much CPU time and memory as their bytes.
const MIN_CHUNK_BYTES = 32;
const MAX_EXCESS_CHUNKS = 1000;

type Start = Pick<Work, 'begin'> & { reject: (error: ApiError) => void };

/** A request and its response. */
export class InFlightRequest implements Work {
  /** The start of the deadline for the response: the end of the body, or `at`. */
  since: number;
  /** The index of this request in the array `inFlight`. */
  index = -1;
  state: 'waiting' | 'running' | 'outside' = 'outside';
  /** The bytes of the quota `uploads` that it uses. */
  uploadBytes = 0;
  /** The bytes that the connection had sent at `since`, once the response is being sent. */
  sentBytes = -1;
  /** The response is sent, or the connection is lost. */
  isClosed = false;
  /** The response has no deadline. */
  isLong = false;
  private onStart: Start | undefined;
  private excessChunks = 0;

  constructor(
    readonly admission: Admission,
    private readonly limit: ConcurrencyLimit,
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    readonly connection: Connection,
    readonly client: Client,
    /** The time of arrival, by the monotonic clock. */
    readonly arrivedAt: number,
  ) {
    this.since = arrivedAt;
  }

  /** Begins as soon as the concurrency limit allows it. */
  enter(start: Start): void {
    this.onStart = start;
    this.state = 'waiting';
    if (!this.limit.enter(this)) this.reject();
  }

  begin(): void {
    this.state = 'running';
    this.onStart!.begin();
  }

  reject(): void {
    this.state = 'outside';
    this.onStart!.reject(serviceUnavailable());
  }

  leave(): void {
    if (this.state === 'waiting') this.limit.cancel(this);
    else if (this.state === 'running') this.limit.leave(this.client);
    this.state = 'outside';
  }

  /** Reads the body. During that time the request isn't running, because the client decides how long it takes. */
  async receive<Body>(read: () => Promise<Body>): Promise<Body> {
    if (!this.req.complete) this.leave();
    const body = await read();
    // A closed request must not begin, because nothing would end it.
    if (this.isClosed) throw serviceUnavailable();
    this.admission.endUpload(this);
    this.since = this.admission.clock.monotonic();
    if (this.state === 'outside') await new Promise<void>((begin, reject) => this.enter({ begin, reject }));
    return body;
  }

  /** Called for each chunk of the body, or each read of the socket; returns false if it was rejected. */
  chunkReceived(bytes: number): boolean {
    this.excessChunks += 1 - bytes / MIN_CHUNK_BYTES;
    if (this.excessChunks <= MAX_EXCESS_CHUNKS) return true;
    this.connection.closeAfter(this.res);
    if (!this.res.headersSent) sendApiError(this.res, apiError(413, 'too many chunks'));
    return false;
  }

  /** Allows long work such as an import: the response has no deadline, and the body isn't buffered in memory. */
  removeDeadline(): void {
    this.isLong = true;
    this.admission.endUpload(this);
  }
}

/** The requests in flight, and their deadlines. */
export class Admission {
  readonly connections: Quota;
  readonly uploads = new Quota(MAX_UPLOAD_BYTES);
  readonly requests: ConcurrencyLimit;
  /** Probes never wait for other requests. */
  readonly health: ConcurrencyLimit;
  /** Requests whose response is not sent yet. */
  count = 0;
  // An array, because requests in a Set survive more garbage collections: docs/contributing/decisions/requests.md.
  private readonly inFlight: InFlightRequest[] = [];
  private readonly clients = new Clients();
  private readonly newConnections = new NewConnections();
  private timer: NodeJS.Timeout | undefined;
  private sweeps = 0;

  constructor(
    limits: { requests: number; connections: number },
    private readonly observers: readonly Observer[],
    readonly clock: Clock,
  ) {
    this.requests = ConcurrencyLimit.ofRequests(limits.requests, clock);
    this.health = ConcurrencyLimit.ofRequests(MAX_HEALTH, clock);
    this.connections = new Quota(limits.connections);
  }

  connect(socket: ClientSocket, isTrusted: boolean): void {
    const client = this.clients.of(socket.remoteAddress ?? '');
    const connection = (socket.connection = new Connection(socket, client, isTrusted));
    if (!this.connections.take(client)) {
      socket.destroy();
      return;
    }
    socket.once('close', () => this.disconnect(connection));
    this.newConnections.add(socket, client);
  }

  open(req: IncomingMessage, res: ServerResponse, connection: Connection, at: number): InFlightRequest {
    const client = connection.isTrusted ? this.clients.ofRequest(req, connection.client) : connection.client;
    const limit = req.url!.startsWith('/health/') ? this.health : this.requests;
    const request = (req.inFlight = new InFlightRequest(this, limit, req, res, connection, client, at));
    request.index = this.inFlight.push(request) - 1;
    this.count++;
    connection.pendingResponses++;
    connection.newestResponse = res;
    res.on('close', () => this.close(request));
    res.on('pipe', destroyWithResponse);
    return request;
  }

  /** Calls `begin` when it is the request's turn. */
  admit(request: InFlightRequest, begin: () => void): void {
    const { req, res, connection } = request;
    const hasQuota = !hasBody(req) || this.startUpload(request);
    const reject = (error: ApiError) => {
      if (request.isClosed || res.writableEnded) return;
      // The client can send the rest of a pipeline again on another connection.
      if (!hasQuota || connection.pendingResponses > 1) connection.closeAfter(res);
      sendApiError(res, error);
    };
    if (hasQuota) request.enter({ begin, reject });
    else reject(serviceUnavailable());
  }

  close(request: InFlightRequest): void {
    if (request.isClosed) return;
    request.isClosed = true;
    this.count--;
    const ms = this.clock.monotonic() - request.arrivedAt;
    for (const observer of this.observers) observer(request.req, request.res, ms);
    request.connection.responseSent();
    this.finish(request);
  }

  endUpload(request: InFlightRequest): void {
    if (request.uploadBytes === 0) return;
    this.uploads.release(request.client, request.uploadBytes);
    request.uploadBytes = 0;
  }

  start(): void {
    this.timer = setInterval(() => this.sweep(), DEADLINE_CHECK_INTERVAL_MS).unref();
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private startUpload(request: InFlightRequest): boolean {
    const length = Number(request.req.headers['content-length'] ?? MAX_BODY_BYTES);
    const bytes = Math.min(Math.max(length, MIN_UPLOAD_BYTES), MAX_BODY_BYTES);
    if (!this.uploads.take(request.client, bytes)) return false;
    request.uploadBytes = bytes;
    return true;
  }

  /** A closed request runs until its handler ends, and keeps its upload while more bytes may arrive. */
  private finish(request: InFlightRequest, { isLate } = { isLate: false }): void {
    const { connection, index, req, res } = request;
    if (req.complete || req.socket.destroyed) this.endUpload(request);
    if (request.uploadBytes > 0) return;
    if (request.state === 'running' && !res.writableEnded && !isLate) return;
    request.leave();
    // Lets an idle connection's last request be collected.
    if (connection.newestResponse === res && req.complete) connection.newestResponse = undefined;
    const last = this.inFlight.pop()!;
    if (last.index === index) return;
    this.inFlight[index] = last;
    last.index = index;
  }

  private disconnect(connection: Connection): void {
    this.connections.release(connection.client);
    const { newestResponse } = connection;
    if (connection.pendingResponses > 0)
      for (const request of this.inFlight.filter((one) => one.connection === connection && !one.isClosed)) {
        const { res } = request;
        // Node 20 and 22 emit `close` only for the first unsent response of a connection, later versions for all.
        if (!res.socket && !res.writableFinished)
          setImmediate((one: ServerResponse) => one.closed || one.emit('close'), res.destroy());
        this.close(request);
      }
    if (!newestResponse) return;
    const { req } = newestResponse;
    if (req.inFlight.uploadBytes > 0) this.finish(req.inFlight);
    // Node doesn't end a request whose response was sent before its body arrived.
    if (!req.complete) req.destroy(Object.assign(new Error('aborted'), { code: 'ECONNRESET' }));
  }

  private sweep(): void {
    const now = this.clock.monotonic();
    // Runs backwards, because the last request takes the place of a removed one.
    for (let i = this.inFlight.length - 1; i >= 0; i--) {
      const request = this.inFlight[i]!;
      if (request.isClosed) {
        this.finish(request, { isLate: now - request.since >= RESPONSE_TIMEOUT_MS });
        if (request.uploadBytes > 0 && now - request.arrivedAt >= BODY_TIMEOUT_MS)
          request.req.socket.destroy();
      } else this.enforceDeadline(request, now);
    }
    if (++this.sweeps % SWEEPS_PER_FORGETTING === 0) this.clients.forgetIdle();
  }

  private enforceDeadline(request: InFlightRequest, now: number): void {
    const { req, res } = request;
    const waited = now - request.since;
    if (res.writableEnded) {
      // The response uses memory while the client does not read it.
      if (waited > RESPONSE_TIMEOUT_MS + READ_TIMEOUT_MS) req.socket.destroy();
    } else if (res.headersSent) enforceRate(request, now);
    else if (request.isLong) return;
    else if (request.state === 'waiting') {
      if (waited >= WAIT_TIMEOUT_MS) request.leave();
    } else if (!req.complete) {
      request.since = now;
      if (now - request.arrivedAt < BODY_TIMEOUT_MS) return;
      request.connection.closeAfter(res);
      sendApiError(res, apiError(408, 'request timeout'));
    } else if (waited >= RESPONSE_TIMEOUT_MS) sendApiError(res, serviceUnavailable());
  }
}

/**
 * Closes the file of a piped stream with its response. Node and the `send` package wait for the end of the response's
 * socket, and a pipelined response may never get one.
 */
function destroyWithResponse(this: ServerResponse, source: Readable): void {
  if (this.destroyed || this.writableEnded) source.destroy();
  else this.once('close', () => source.destroy());
}

/**
 * Ends the connection of a client that reads too slowly. While no data is waiting to be read, the client isn't the
 * cause.
 */
function enforceRate(request: InFlightRequest, now: number): void {
  const { socket } = request.req;
  const { writableLength } = socket;
  const sent = socket.bytesWritten - writableLength;
  if (request.sentBytes >= 0 && writableLength > 0 && sent - request.sentBytes < MIN_READ_BYTES) {
    if (now - request.since > READ_TIMEOUT_MS) socket.destroy();
    return;
  }
  request.sentBytes = sent;
  request.since = now;
}
