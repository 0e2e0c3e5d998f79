import { randomUUID } from 'node:crypto';
import { type ServerResponse, STATUS_CODES } from 'node:http';
import type { Socket } from 'node:net';
import { envelope } from './answer';
import { SECURITY_HEADERS } from './front-door';
import { OutgoingAnswer } from './outgoing-answer';

const ANSWERS: Record<string, [status: number, text: string]> = {
  HPE_HEADER_OVERFLOW: [431, 'request header fields too large'],
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'request timeout'],
  HPE_INVALID_METHOD: [405, 'method not allowed'],
};

interface ParserError extends Error {
  code?: string;
  /** What came last, and how much of it was good. */
  rawPacket?: Buffer;
  bytesParsed?: number;
}

/**
 * A control character in a credential is for HTTP a malformed request, and for the caller a key that does not work. Where the
 * header's name came in an earlier piece than the character, nobody kept it, and the answer is HTTP's.
 */
function isInAuthorization({ code, rawPacket, bytesParsed }: ParserError): boolean {
  if (code !== 'HPE_INVALID_HEADER_TOKEN' || !rawPacket || bytesParsed === undefined) return false;
  const good = rawPacket.subarray(0, bytesParsed).toString('latin1');
  return /^authorization:/i.test(good.slice(good.lastIndexOf('\n') + 1));
}

/**
 * What the HTTP parser rejects never becomes a request object: the answer is written on the socket. Returns its status;
 * undefined where nobody was left to read it.
 */
export function answerBrokenRequest(error: ParserError, socket: Socket): number | undefined {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy();
    return undefined;
  }
  if (isInAuthorization(error)) {
    write(socket, 401, 'invalid key', {
      'WWW-Authenticate': 'Bearer realm="gamewharf", error="invalid_token"',
    });
    return 401;
  }
  const answer = ANSWERS[error.code ?? ''] ?? [400, 'malformed request'];
  write(socket, ...answer);
  return answer[0];
}

/** Node lets go of the socket of a CONNECT: nobody else listens to its errors, and one that nobody hears ends the process. */
export function answerConnect(socket: Socket): void {
  socket.on('error', () => socket.destroy());
  write(socket, 405, 'method not allowed');
}

function write(socket: Socket, status: number, text: string, more: Record<string, string> = {}): void {
  const pending = (socket as { _httpMessage?: ServerResponse | null })._httpMessage;
  if (pending instanceof OutgoingAnswer) pending.leave();
  // An answer that is already on its way must not be cut by this one.
  if (pending?.headersSent) {
    socket.destroy();
    return;
  }
  const body = envelope([text]);
  const headers: Record<string, string | number> = {
    ...SECURITY_HEADERS,
    'Content-Type': 'application/json',
    'Content-Length': Buffer.byteLength(body),
    'X-Request-Id': randomUUID(),
    Connection: 'close',
    ...(status === 405 ? { Allow: 'GET, HEAD, OPTIONS, POST' } : {}),
    ...more,
  };
  const head = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head.join('')}\r\n${body}`, () =>
    socket.destroySoon(),
  );
}
