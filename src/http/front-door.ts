import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Logger } from 'pino';
import type { Settings } from '../config/settings';
import { sendFailure } from './answer';
import { Failure, failure, serviceUnavailable } from './failure';
import { type Arrival, InFlight } from './in-flight';
import { type Counter, Measurements } from './measurements';
import { RequestLog } from './request-log';
import { type StandingHeader, standingHeaders } from './outgoing-answer';

type Handler = (req: IncomingMessage, res: ServerResponse) => void;

declare module 'node:http' {
  interface IncomingMessage {
    /** Given by the caller in X-Request-Id, or made here; on every answer and every log line. */
    id: string;
  }
}

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

const SANE_ID = /^[\w.:-]{1,64}$/;
// On one connection, one behind the other: no client needs it, and one that does not read would take every place.
const MAX_PIPELINED = 10;

/** Told of every request after it was answered, or its connection was lost. */
export type Observer = (req: IncomingMessage, res: ServerResponse, ms: number) => void;

/** What happens to every request before any framework sees it, and is reported after it was answered. */
export class FrontDoor {
  readonly maxHeaders = 100;
  readonly inFlight = new InFlight();
  readonly observers: Observer[] = [];
  draining = false;
  /** Answers what needs no routing; false: it left that to the route. */
  shortcut: ((req: IncomingMessage, res: ServerResponse) => boolean) | undefined;
  /** Where traces are written: what a request is answered within. */
  around: ((req: IncomingMessage, res: ServerResponse, next: Handler) => void) | undefined;
  readonly log: RequestLog;
  readonly measurements = new Measurements();
  private readonly standing: StandingHeader[];
  private readonly maxInFlight: number;
  private readonly overloads: Counter;
  private readonly brokenRequests = new Map<number, Counter>();

  constructor({ PUBLIC_URL, MAX_IN_FLIGHT }: Settings, logger: Logger) {
    this.log = new RequestLog(logger);
    this.observers.push((req, res, ms) => this.log.answered(req, res, ms));
    this.maxInFlight = MAX_IN_FLIGHT;
    this.standing = standingHeaders({
      ...SECURITY_HEADERS,
      ...(PUBLIC_URL?.startsWith('https:') && {
        'Strict-Transport-Security': 'max-age=63072000; includeSubDomains',
      }),
    });
    this.overloads = this.measurements.counter(
      'gamewharf_http_overloads_total',
      'Requests refused because MAX_IN_FLIGHT others were being answered',
    );
    for (const status of [400, 405, 408, 431])
      this.brokenRequests.set(
        status,
        this.measurements.counter(
          'gamewharf_http_broken_requests_total',
          'What the HTTP parser refused before it was a request',
          { status: String(status) },
        ),
      );
    this.measurements.gauge('gamewharf_http_in_flight', 'Requests being answered', () => this.inFlight.count);
  }

  before(route: Handler): Handler {
    const next: Handler = (req, res) => {
      if (!this.shortcut?.(req, res)) route(req, res);
    };
    return (req, res) => {
      const at = performance.now();
      const arrival: Arrival = { req, res, at, since: at, place: -1 };
      const given = req.headers['x-request-id'];
      req.id = typeof given === 'string' && SANE_ID.test(given) ? given : randomUUID();
      res.identity = `X-Request-Id: ${req.id}\r\n`;
      res.standing = this.standing;
      if (this.draining) res.setHeader('Connection', 'close');
      const crowded = this.inFlight.ahead(arrival) >= MAX_PIPELINED;
      const overloaded =
        crowded || (this.inFlight.count >= this.maxInFlight && !req.url!.startsWith('/health/'));
      if (!crowded) this.inFlight.enter(arrival);
      res.once('close', () => this.left(arrival));

      const refusal = this.refusal(req) ?? toOriginForm(req);
      if (refusal) {
        res.setHeader('Connection', 'close');
        sendFailure(res, refusal);
      } else if (overloaded) {
        this.overloads.value++;
        sendFailure(res, serviceUnavailable());
      } else {
        if (isPreflight(req)) allowAnyOrigin(res);
        if (this.around) this.around(req, res, next);
        else next(req, res);
      }
    };
  }

  /** Counts what never became a request. */
  broken(status: number | undefined): void {
    const counter = this.brokenRequests.get(status ?? 0);
    if (counter) counter.value++;
  }

  private left(arrival: Arrival): void {
    this.inFlight.leave(arrival);
    const ms = performance.now() - arrival.at;
    for (const observer of this.observers) observer(arrival.req, arrival.res, ms);
  }

  private refusal(req: IncomingMessage): Failure | undefined {
    if (req.rawHeaders.length > this.maxHeaders * 2) return failure(431, 'request header fields too large');
    let hosts = 0;
    for (let i = 0; i < req.rawHeaders.length; i += 2)
      if (req.rawHeaders[i]!.length === 4 && req.rawHeaders[i]!.toLowerCase() === 'host') hosts++;
    if (hosts > 1 || (hosts === 0 && req.httpVersion === '1.1'))
      return failure(400, 'exactly one Host header is required');
    return undefined;
  }
}

const ABSOLUTE = /^https?:\/\/[^/?#]+/i;

/**
 * An address may be sent with scheme and host (RFC 9112, 3.2.2), which count for nothing here. What is neither that nor a
 * path goes no further: the parsers behind this one answer it in words of their own, and write it to the error output.
 */
function toOriginForm(req: IncomingMessage): Failure | undefined {
  const target = req.url!;
  if (target.startsWith('/')) return undefined;
  const path = target.replace(ABSOLUTE, '');
  if (path === target) return failure(400, 'malformed request');
  req.url = path.startsWith('/') ? path : `/${path}`;
  return undefined;
}

export const isPreflight = ({ method, headers }: IncomingMessage) =>
  method === 'OPTIONS' && headers['access-control-request-method'] !== undefined;

/** Games in a browser may call from any origin: no cookie counts on API routes, so there is nothing to ride on. */
function allowAnyOrigin(res: ServerResponse): void {
  res.setHeader('Access-Control-Allow-Methods', 'GET, HEAD, POST');
  res.setHeader(
    'Access-Control-Allow-Headers',
    'Authorization, Content-Type, Idempotency-Key, If-None-Match, X-Request-Id',
  );
  res.setHeader('Access-Control-Max-Age', '86400');
  res.removeHeader('Cache-Control');
}
