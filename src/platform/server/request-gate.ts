import { randomUUID } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { Injectable } from '@nestjs/common';
import { Clock } from '../config/clock';
import { Settings } from '../config/settings';
import { createDefaultHeaders, type DefaultHeader, sendApiError } from '../output/response';
import { BrokenRequests } from './broken-requests';
import { Descriptors } from './descriptors';
import { ApiError, apiError, serviceUnavailable } from '../errors/api-error';
import { allowAnyOrigin, isPreflight, SECURITY_HEADERS } from '../output/default-headers';
import { Admission } from './admission';
import { MetricsRegistry } from '../observability/metrics-registry';
import type { ClientSocket } from './connection';
import type { Handler, Observer } from '../observability/hooks';
import { RequestLog } from '../observability/request-log';

const REQUEST_ID = /^[\w.:-]{1,64}$/;
// A client that pipelines more without reading would use a lot of memory.
export const MAX_PIPELINED = 10;
export const MAX_HEADERS = 100;

/** Handles every request before Express: ID, headers, concurrency limits. Calls the observers after the response. */
@Injectable()
export class RequestGate {
  readonly observers: Observer[];
  /** Wraps a request in a span when tracing is on. */
  trace = (req: IncomingMessage, res: ServerResponse, next: Handler) => next(req, res);
  /** The service isn't ready yet, because the demo store is being created. */
  isStarting = false;
  isDraining = false;
  readonly admission: Admission;
  readonly brokenRequests: BrokenRequests;
  private readonly defaultHeaders: DefaultHeader[];
  private readonly pipelined = { rejected: 0 };

  constructor(
    settings: Settings,
    log: RequestLog,
    private readonly metrics: MetricsRegistry,
    private readonly clock: Clock,
    descriptors: Descriptors,
  ) {
    this.observers = [log.completed];
    const limits = { requests: settings.MAX_IN_FLIGHT, connections: descriptors.maxConnections };
    this.admission = new Admission(limits, this.observers, clock);
    this.defaultHeaders = createDefaultHeaders({
      ...SECURITY_HEADERS,
      ...(settings.PUBLIC_URL?.startsWith('https:') && {
        'Strict-Transport-Security': 'max-age=63072000; includeSubDomains',
      }),
    });
    this.brokenRequests = new BrokenRequests(this.defaultHeaders, this.metrics);
    this.measure();
  }

  before(route: Handler): Handler {
    const serve: Handler = (req, res) => {
      if (isPreflight(req)) allowAnyOrigin(res);
      route(req, res);
    };
    return (req, res) => {
      const at = this.clock.monotonic();
      const { connection } = req.socket as ClientSocket;
      // An earlier response had `Connection: close`.
      if (connection.isClosing) return connection.ignoreRequest();
      const isCrowded = connection.pendingResponses >= MAX_PIPELINED;
      if (isCrowded) this.pipelined.rejected++;
      const error = isCrowded ? serviceUnavailable() : (findHeaderError(req) ?? toOriginForm(req));
      const request = this.admission.open(req, res, connection, at);
      const clientId = req.headers['x-request-id'];
      req.id = typeof clientId === 'string' && REQUEST_ID.test(clientId) ? clientId : randomUUID();
      res.setRequestId(req.id);
      res.defaultHeaders = this.defaultHeaders;
      if (error || this.isDraining) connection.closeAfter(res);
      if (error) sendApiError(res, error);
      else this.admission.admit(request, () => this.trace(req, res, serve));
    };
  }

  private measure(): void {
    const { requests, uploads, health, connections } = this.admission;
    this.metrics.gauge('gamewharf_http_in_flight', 'Requests in flight', () => this.admission.count);
    this.metrics.gauge('gamewharf_http_connections', 'Open client connections', () => connections.used);
    const limits = { requests, uploads, health, connections, pipelined: this.pipelined };
    this.metrics.totals(
      'gamewharf_http_overloads_total',
      'Requests and connections rejected because the process is at capacity',
      ['limit'],
      () => Object.entries(limits).map(([limit, { rejected }]) => [{ limit }, rejected]),
    );
  }
}

function findHeaderError({ rawHeaders, httpVersion }: IncomingMessage): ApiError | undefined {
  if (rawHeaders.length > MAX_HEADERS * 2) return apiError(431, 'request header fields too large');
  let hosts = 0;
  for (let i = 0; i < rawHeaders.length; i += 2)
    if (rawHeaders[i]!.length === 4 && rawHeaders[i]!.toLowerCase() === 'host') hosts++;
  const isRight = hosts === 1 || (hosts === 0 && httpVersion !== '1.1');
  return isRight ? undefined : apiError(400, 'exactly one Host header is required');
}

const ABSOLUTE = /^https?:\/\/[^/?#]+/i;

/**
 * Removes the scheme and host of a request target (RFC 9112, 3.2.2). Rejects other targets, because Express
 * would write them to stderr.
 */
function toOriginForm(req: IncomingMessage): ApiError | undefined {
  const target = req.url!;
  if (target.startsWith('/')) return undefined;
  const path = target.replace(ABSOLUTE, '');
  if (path === target) return apiError(400, 'malformed request');
  req.url = path.startsWith('/') ? path : `/${path}`;
  return undefined;
}
