import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Settings } from '../config/settings';
import { type FixedHeader, fixedHeaders, sendFailure } from './answer';
import { BrokenRequests } from './broken-requests';
import { ApiError, apiError, serviceUnavailable } from './api-error';
import { type Exchange, InFlight } from './in-flight';
import { type Counter, Measurements } from '../observability/measurements';
import type { ClientSocket, FrontDoorHooks, Handler, Observer } from './request';
import { RequestLog } from '../observability/request-log';
import type { Connection, Sender } from './senders';

export const SECURITY_HEADERS: Record<string, string> = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Expose-Headers':
    'ETag, Retry-After, WWW-Authenticate, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset, X-Request-Id',
  'Cache-Control': 'no-store',
  'Content-Security-Policy': "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
  'Cross-Origin-Resource-Policy': 'cross-origin',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
  'X-Frame-Options': 'DENY',
};

const REQUEST_ID = /^[\w.:-]{1,64}$/;
// A client that pipelines more and does not read would take every slot.
export const MAX_PIPELINED = 10;
export const MAX_HEADERS = 100;

/** Handles every request before Express: id, headers, capacity. Calls the observers after the answer. */
export class FrontDoor implements FrontDoorHooks {
  readonly observers: Observer[] = [];
  shortcut: FrontDoorHooks['shortcut'];
  trace: FrontDoorHooks['trace'];
  draining = false;
  readonly measurements = new Measurements();
  readonly inFlight: InFlight;
  readonly brokenRequests: BrokenRequests;
  readonly log: RequestLog;
  private readonly fixed: FixedHeader[];
  private readonly refused: Record<'pipelined' | 'waiting', Counter>;

  constructor(settings: Settings, logger: Logger) {
    this.log = new RequestLog(logger);
    this.observers.push(this.log.answered);
    this.inFlight = new InFlight(settings, this.observers);
    this.fixed = fixedHeaders({
      ...SECURITY_HEADERS,
      ...(settings.PUBLIC_URL?.startsWith('https:') && {
        'Strict-Transport-Security': 'max-age=63072000; includeSubDomains',
      }),
    });
    this.brokenRequests = new BrokenRequests(this.fixed, this.measurements);
    this.refused = this.measure();
  }

  before(route: Handler): Handler {
    const next: Handler = (req, res) => {
      const { shortcut } = this;
      if (!(shortcut && req.url!.startsWith(shortcut.prefix) && shortcut.answers(req, res))) route(req, res);
    };
    const turns = new Turns((exchange) => this.serve(exchange, next));
    return (req, res) => {
      const at = performance.now();
      const { client } = req.socket as ClientSocket;
      // An earlier answer had `Connection: close`.
      if (client.isClosing) return client.ignoreRequest();
      const refusal = this.isCrowded(client) ? serviceUnavailable() : (refusalOf(req) ?? toOriginForm(req));
      const exchange = this.inFlight.open(req, res, client, at);
      const given = req.headers['x-request-id'];
      req.id = typeof given === 'string' && REQUEST_ID.test(given) ? given : randomUUID();
      res.setRequestId(req.id);
      res.fixed = this.fixed;
      if (refusal || this.draining) client.closeAfter(res);

      if (refusal) sendFailure(res, refusal);
      else if (!turns.take(exchange)) {
        this.refused.waiting.value++;
        client.closeAfter(res);
        sendFailure(res, serviceUnavailable());
      }
    };
  }

  private serve(exchange: Exchange, next: Handler): void {
    const { req, res } = exchange;
    if (!this.inFlight.admit(exchange)) return sendFailure(res, serviceUnavailable());
    if (isPreflight(req)) allowAnyOrigin(res);
    if (this.trace) this.trace(req, res, next);
    else next(req, res);
  }

  private isCrowded({ unanswered }: Connection): boolean {
    const crowded = unanswered >= MAX_PIPELINED;
    if (crowded) this.refused.pipelined.value++;
    return crowded;
  }

  private measure(): Record<'pipelined' | 'waiting', Counter> {
    const { slots, uploads, health, connections } = this.inFlight;
    this.measurements.gauge('gamewharf_http_in_flight', 'Requests being answered', () => this.inFlight.count);
    this.measurements.gauge(
      'gamewharf_http_connections',
      'Open connections of clients',
      () => connections.used,
    );
    const [name, help] = [
      'gamewharf_http_overloads_total',
      'Requests and connections refused for want of room',
    ];
    for (const capacity of [slots, uploads, health, connections])
      this.measurements.total(name, help, () => capacity.refusals, { limit: capacity.name });
    return this.measurements.counters(name, help, 'limit', ['pipelined', 'waiting']);
  }
}

function refusalOf({ rawHeaders, httpVersion }: IncomingMessage): ApiError | undefined {
  if (rawHeaders.length > MAX_HEADERS * 2) return apiError(431, 'request header fields too large');
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === 4 && rawHeaders[i]!.toLowerCase() === 'host') hosts++;
  if (hosts > 1 || (hosts === 0 && httpVersion === '1.1'))
    return apiError(400, 'exactly one Host header is required');
  return undefined;
}

const ABSOLUTE = /^https?:\/\/[^/?#]+/i;

/** Removes scheme and host of a request target (RFC 9112, 3.2.2). Others are refused: Express would write them to stderr. */
function toOriginForm(req: IncomingMessage): ApiError | undefined {
  const target = req.url!;
  if (target.startsWith('/')) return undefined;
  const path = target.replace(ABSOLUTE, '');
  if (path === target) return apiError(400, 'malformed request');
  req.url = path.startsWith('/') ? path : `/${path}`;
  return undefined;
}

export const isPreflight = ({ method, headers }: IncomingMessage) =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;

/** Games in a browser may call from any origin: API routes ignore cookies, so there is no CSRF. */
function allowAnyOrigin(res: ServerResponse): void {
  res.setHeader('Access-Control-Allow-Methods', 'GET, HEAD, POST');
  res.setHeader(
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type, Idempotency-Key, If-None-Match, X-Request-Id',
  );
  res.setHeader('Access-Control-Max-Age', '86400');
  res.removeHeader('Cache-Control');
}

// With more, everybody else waits for all of them: once for each answer of the database that they need.
export const BEGUN_IN_A_TURN = 64;
// Each is a request in memory.
export const MAX_WAITING = 2000;

/** In one turn of the event loop only so many requests of one address are begun. Those that came later wait, in order. */
class Turns {
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
