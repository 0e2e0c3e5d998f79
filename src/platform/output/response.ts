import { hash } from 'node:crypto';
import {
  type IncomingMessage,
  ServerResponse,
  STATUS_CODES,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';
import type { Readable } from 'node:stream';
import { HttpException, StreamableFile } from '@nestjs/common';
import type { Response } from 'express';
import { classifyFault, isPoolExhausted, NotStarted } from '../database/sqlstates';
import { ApiError, apiError, badRequest, serviceUnavailable } from '../errors/api-error';
import { OperatorError } from '../errors/operator-error';
import type { RequestLog } from '../observability/request-log';

const TEXT_OF_STATUS: Record<number, string> = {
  400: 'malformed request',
  404: 'invalid api endpoint',
  405: 'method not allowed',
  408: 'request timeout',
  413: 'request too large',
  415: 'unsupported media type',
  431: 'request header fields too large',
};

/**
 * The response for a thrown error: an ApiError, the status of an HTTP library's error, or the type of a database error. A
 * problem that the operator can solve, such as a full disk, isn't a bug, and a later retry may succeed.
 */
export function apiErrorFor(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  const fault = classifyFault(error);
  if (fault === 'unavailable' || error instanceof OperatorError) return serviceUnavailable();
  if (fault === 'not unicode') return badRequest('text parameters must be valid Unicode');
  if (error instanceof HttpException) return ofException(error);
  const { status } = (error ?? {}) as { status?: unknown };
  const text = typeof status === 'number' ? TEXT_OF_STATUS[status] : undefined;
  if (text) return apiError(status as number, text);
  return apiError(500, 'internal server error');
}

/** Keeps the texts of an exception such as `new NotFoundException('invalid review')`, or of a Nest pipe. */
function ofException(error: HttpException): ApiError {
  const [status, response] = [error.getStatus(), error.getResponse()];
  if (status === 503) return serviceUnavailable();
  // The text of a server error is for the log.
  if (status >= 500) return apiError(status, STATUS_CODES[status]?.toLowerCase() ?? 'internal server error');
  const text = STATUS_CODES[status]?.toLowerCase() ?? 'request rejected';
  // Without any of these texts, Nest's message is the name of the class.
  const {
    errors,
    error: label = text,
    message = errors ?? label,
  } = typeof response === 'string'
    ? { message: response }
    : (response as { errors?: unknown; error?: unknown; message?: unknown });
  const headers: Record<string, string> =
    status === 401 || status === 403 ? { 'WWW-Authenticate': 'Bearer realm="gamewharf"' } : {};
  return new ApiError(status, [message].flat().map(String), headers);
}

// Node joins a string with the headers, which copies it: too slow for long bodies.
const MAX_STRING_BODY = 4096;

export function sendJson(res: ServerResponse, status: number, text: string, type = 'application/json'): void {
  const body = text.length < MAX_STRING_BODY ? text : Buffer.from(text);
  res.statusCode = status;
  res.setHeader('Content-Type', type);
  res.setHeader('Content-Length', Buffer.byteLength(body));
  res.sendAtEndOfTick(body);
}

/** Sends an error response. `send` writes it in the format of the route. */
export function sendError(
  log: RequestLog,
  res: ServerResponse,
  error: unknown,
  send: (res: ServerResponse, failure: ApiError) => void = sendApiError,
): void {
  const failure = apiErrorFor(error);
  // Logs only unexpected errors. A 503 that the code throws itself and a wait for the database have metrics
  // instead.
  const isExpected = failure === error || error instanceof NotStarted || isPoolExhausted(error);
  if (failure.statusCode >= 500 && !isExpected) log.failed(res.req.id, error);
  // The deadline may have sent a response already.
  if (res.writableEnded) return;
  if (res.headersSent) {
    // Part of the response is sent: only a broken connection can tell the client.
    res.destroy();
    return;
  }
  const { connection } = res.req.inFlight;
  // A 413 doesn't wait for the rest of the body, and after a 503 the client can send the rest of a pipeline
  // again on another connection.
  if (failure.statusCode === 413 || (failure.statusCode === 503 && connection.pendingResponses > 1))
    connection.closeAfter(res);
  send(res, failure);
}

export function sendApiError(
  res: ServerResponse,
  { statusCode: status, errors, headers }: ApiError,
  body: object = { errors },
): void {
  for (const name in headers) res.setHeader(name, headers[name]!);
  sendJson(res, status, JSON.stringify(body));
}

/** Whether the deadline has sent a response, or the connection is lost. */
export const isOver = (res: ServerResponse): boolean => res.writableEnded || res.destroyed;

// The constructor would otherwise create a stream for each response.
const NO_STREAM = { pipe: () => undefined } as unknown as Readable;

/**
 * A response of a handler other than JSON with status 200. It sends itself, and Nest's interceptors leave it
 * unchanged.
 */
export abstract class WebResponse extends StreamableFile {
  constructor() {
    super(NO_STREAM);
  }

  abstract sendTo(res: Response): void | Promise<void>;
}

/** A response that clients may cache. */
export interface BodyWithEtag {
  body: string;
  etag: string;
}

export function withEtag(response: object): BodyWithEtag {
  const body = JSON.stringify(response);
  // Weak, because a proxy may compress the body.
  return { body, etag: `W/"${hash('sha256', body, 'base64url').slice(0, 22)}"` };
}

export function sendCacheable(
  req: IncomingMessage,
  res: ServerResponse,
  { body, etag }: BodyWithEtag,
  cacheControl: string,
): void {
  res.setHeader('ETag', etag);
  res.setHeader('Cache-Control', cacheControl);
  if (!matchesEtag(req.headers['if-none-match'], etag)) {
    sendJson(res, 200, body);
    return;
  }
  res.statusCode = 304;
  res.end();
}

// Express's req.fresh ignores If-None-Match with the `Cache-Control: no-cache` that fetch() adds.
export function matchesEtag(known: string | undefined, etag: string): boolean {
  if (known === undefined || known === etag || known === '*') return known !== undefined;
  const opaque = etag.replace(/^W\//, '');
  return known.split(',').some((tag) => tag.trim().replace(/^W\//, '') === opaque);
}

/** A header line, validated like by Node, so that no value can contain a line break. */
export function headerLine(name: string, value: string | number): string {
  if (typeof value !== 'number') validateHeaderValue(name, value);
  return `${name}: ${value}\r\n`;
}

/** A header of every response, formatted once. */
export interface DefaultHeader {
  name: string;
  line: string;
}

export const createDefaultHeaders = (headers: Readonly<Record<string, string>>): DefaultHeader[] =>
  Object.entries(headers).map(([name, value]) => {
    validateHeaderName(name);
    return { name: name.toLowerCase(), line: headerLine(name, value) };
  });

/**
 * Node's private method that writes the headers: test/platform/outgoing-response.test.ts lists the versions.
 */
interface HeadWriter {
  _storeHeader(this: ServerResponse, firstLine: string, headers: unknown): void;
}
const { _storeHeader: storeHeader } = ServerResponse.prototype as ServerResponse & HeadWriter;

let ended: OutgoingResponse[] = [];

function sendEnded(): void {
  const responses = ended;
  ended = [];
  for (const response of responses) response.sendBody();
}

/** Sends the responses of one tick of the event loop together: docs/contributing/decisions/requests.md. */
export class OutgoingResponse<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  override defaultHeaders: readonly DefaultHeader[] = [];
  override requestsLeft = Infinity;
  /** The body of a response that is sent at the end of the tick. */
  body: string | Buffer | undefined;
  private request_id = '';
  private rate_limit = '';

  // @ts-expect-error Node's types declare a property.
  override get writableEnded(): boolean {
    return (
      this.body !== undefined || (Reflect.get(ServerResponse.prototype, 'writableEnded', this) as boolean)
    );
  }

  override setRequestId(id: string): void {
    this.request_id = headerLine('X-Request-Id', id);
  }

  /** The limit with the fewest remaining requests is shown. */
  override setRateLimit(limit: number, remaining: number, resetSeconds: number): void {
    if (remaining > this.requestsLeft) return;
    this.requestsLeft = remaining;
    this.rate_limit =
      headerLine('X-RateLimit-Limit', limit) +
      headerLine('X-RateLimit-Remaining', remaining) +
      headerLine('X-RateLimit-Reset', resetSeconds);
  }

  override sendAtEndOfTick(body: string | Buffer): void {
    // Node rejects further headers from here on.
    this.writeHead(this.statusCode);
    this.body = body;
    if (ended.push(this) === 1) setImmediate(sendEnded);
  }

  /** Sends the body of `sendAtEndOfTick`. */
  sendBody(): void {
    super.end(this.body);
  }

  // After `sendAtEndOfTick`, the data of a handler that missed its deadline would become part of another
  // response.
  override write(...chunk: [unknown, ...unknown[]]): boolean {
    return this.body !== undefined || super.write(...(chunk as [string]));
  }

  override end(...chunk: unknown[]): this {
    return this.body === undefined ? super.end(...(chunk as [string])) : this;
  }

  override writeHead(...head: [status: number, ...unknown[]]): this {
    // The rest of a chunked body isn't needed, and its length is unknown.
    if (!this.req.complete && 'transfer-encoding' in this.req.headers)
      this.req.inFlight.connection.closeAfter(this);
    return super.writeHead(...(head as [number]));
  }

  override removeHeader(name: string): void {
    super.removeHeader(name);
    const removed = name.toLowerCase();
    this.defaultHeaders = this.defaultHeaders.filter((header) => header.name !== removed);
  }

  /** Called by Node to write the head. */
  _storeHeader(firstLine: string, headers: unknown): void {
    let head = firstLine + this.request_id + this.rate_limit;
    for (const { name, line } of this.defaultHeaders) if (!this.hasHeader(name)) head += line;
    storeHeader.call(this, head, headers);
  }
}
