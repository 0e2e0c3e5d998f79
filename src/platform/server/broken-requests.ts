import { randomUUID } from 'node:crypto';
import { STATUS_CODES } from 'node:http';
import { type DefaultHeader, headerLine, sendApiError } from '../output/response';
import { ApiError, apiError } from '../errors/api-error';
import type { Counter } from 'prom-client';
import type { MetricsRegistry } from '../observability/metrics-registry';
import type { ClientSocket } from './connection';

interface ParserError extends Error {
  code?: string;
  /** The last chunk, and the number of its parsed bytes. */
  rawPacket?: Buffer;
  bytesParsed?: number;
}

const methodNotAllowed = new ApiError(405, ['method not allowed'], { Allow: 'GET, HEAD, OPTIONS, POST' });
const malformed = apiError(400, 'malformed request');
const PARSER_ERRORS: Record<string, ApiError> = {
  HPE_HEADER_OVERFLOW: apiError(431, 'request header fields too large'),
  ERR_HTTP_REQUEST_TIMEOUT: apiError(408, 'request timeout'),
  HPE_INVALID_METHOD: methodNotAllowed,
};
const tooLong = apiError(414, 'URL too long');
const invalidKey = new ApiError(401, ['invalid key'], {
  'WWW-Authenticate': 'Bearer realm="gamewharf", error="invalid_token", error_description="invalid key"',
});

/** Responds to requests that the HTTP parser rejects, after the responses to earlier requests of the connection. */
export class BrokenRequests {
  private readonly rejected: Counter<'status'>;

  constructor(
    private readonly defaultHeaders: readonly DefaultHeader[],
    metrics: MetricsRegistry,
  ) {
    this.rejected = metrics.counter(
      'gamewharf_http_broken_requests_total',
      'Requests rejected by the HTTP parser',
      { status: ['400', '401', '405', '408', '414', '431'] },
    );
  }

  respond(error: ParserError, socket: ClientSocket): void {
    const { connection } = socket;
    if (error.code === 'ECONNRESET') socket.destroy();
    // The parser reports another error for each later chunk.
    else if (!connection.isClosing) this.reject(socket, toApiError(error));
  }

  /** Node detaches the socket of a CONNECT. Without a listener, an error of it would end the process. */
  rejectConnect(socket: ClientSocket): void {
    socket.on('error', () => socket.destroy());
    if (!socket.connection.isClosing) this.reject(socket, methodNotAllowed);
  }

  private reject({ connection }: ClientSocket, error: ApiError): void {
    this.rejected.inc({ status: error.statusCode });
    const { newestResponse } = connection;
    if (!newestResponse || newestResponse.req.complete) connection.closeWith(this.text(error));
    // The error is in the body of a request that already has its response.
    else if (newestResponse.headersSent) connection.closeWith('');
    else {
      connection.closeAfter(newestResponse);
      sendApiError(newestResponse, error);
    }
  }

  private text({ statusCode: status, errors, headers }: ApiError): string {
    const body = JSON.stringify({ errors });
    const own = {
      'Content-Type': 'application/json',
      'Content-Length': String(Buffer.byteLength(body)),
      'X-Request-Id': randomUUID(),
      Connection: 'close',
      ...headers,
    };
    const head =
      this.defaultHeaders.map(({ line }) => line).join('') +
      Object.entries(own)
        .map(([name, value]) => headerLine(name, value))
        .join('');
    return `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n${body}`;
  }
}

function toApiError({ code = '', rawPacket, bytesParsed }: ParserError): ApiError {
  // The parsed part of the last chunk, which starts with the method if the head has one chunk.
  const parsed = rawPacket?.subarray(0, bytesParsed).toString('latin1') ?? '';
  // An invalid character in a credential makes the key invalid.
  if (code === 'HPE_INVALID_HEADER_TOKEN' && /(?:^|\n)authorization:[^\n]*$/i.test(parsed)) return invalidKey;
  // The head exceeds its limit in its first line.
  if (code === 'HPE_HEADER_OVERFLOW' && /^[A-Z]+ \S*$/.test(parsed)) return tooLong;
  return PARSER_ERRORS[code] ?? malformed;
}
