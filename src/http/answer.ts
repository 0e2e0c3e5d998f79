import type { ServerResponse } from 'node:http';
import { faultOf } from '../database/sqlstates';
import type { RequestLog } from './request-log';
import { badRequest, Failure, serviceUnavailable } from './failure';

export const envelope = (errors: string[]) => JSON.stringify({ errors });

const TEXTS: Record<number, string> = {
  400: 'malformed request',
  404: 'invalid api endpoint',
  405: 'method not allowed',
  408: 'request timeout',
  413: 'request too large',
  415: 'unsupported media type',
  431: 'request header fields too large',
};

/** The answer for anything thrown: ours as it stands, an HTTP library's by its status alone, all else by the database's table. */
export function answerFor(error: unknown): Failure {
  if (error instanceof Failure) return error;
  const fault = faultOf(error);
  if (fault === 'unavailable') return serviceUnavailable();
  if (fault === 'not unicode') return badRequest('text parameters must be valid Unicode');
  const { status } = (error ?? {}) as { status?: unknown };
  const text = typeof status === 'number' ? TEXTS[status] : undefined;
  if (text) return new Failure(status as number, [text]);
  return new Failure(500, ['internal server error']);
}

// A short text is sent in one piece with its head; for a long one that piece would be a copy more.
const SHORT = 4096;

export function sendJson(res: ServerResponse, status: number, text: string): void {
  const body = text.length < SHORT ? text : Buffer.from(text);
  res.statusCode = status;
  res.setHeader('Content-Type', 'application/json');
  res.setHeader('Content-Length', Buffer.byteLength(body));
  res.end(body);
}

/**
 * Answers whatever was thrown while a request was served. `send` writes it in the form that the caller of this route
 * reads.
 */
export function answerError(
  log: RequestLog,
  res: ServerResponse,
  error: unknown,
  send: (res: ServerResponse, failure: Failure) => void = sendFailure,
): void {
  const failure = answerFor(error);
  // A refusal that we decided on needs no stack.
  if (failure.status >= 500 && failure !== error) log.failed(res.req.id, error);
  // The deadline was faster.
  if (res.writableEnded) return;
  if (res.headersSent) {
    // Half an answer is out: the broken connection is the only way left to say so.
    res.destroy();
    return;
  }
  // The rest of an oversized body is not waited for.
  if (failure.status === 413) res.req.exchange.connection.closeAfter(res);
  send(res, failure);
}

export function sendFailure(
  res: ServerResponse,
  { status, errors, headers }: Failure,
  body: object = { errors },
): void {
  for (const name in headers) res.setHeader(name, headers[name]!);
  sendJson(res, status, JSON.stringify(body));
}
