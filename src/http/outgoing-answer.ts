import {
  type IncomingMessage,
  OutgoingMessage,
  ServerResponse,
  validateHeaderName,
  validateHeaderValue,
} from 'node:http';

/** A header line, validated as by Node, so that no value can contain a line break. */
export function headerLine(name: string, value: string | number): string {
  if (typeof value !== 'number') validateHeaderValue(name, value);
  return `${name}: ${value}\r\n`;
}

/** A header of every answer, formatted once. */
export class FixedHeader {
  readonly name: string;
  readonly line: string;

  constructor(name: string, value: string) {
    validateHeaderName(name);
    this.name = name.toLowerCase();
    this.line = headerLine(name, value);
  }
}

export const fixedHeaders = (headers: Readonly<Record<string, string>>): FixedHeader[] =>
  Object.entries(headers).map(([name, value]) => new FixedHeader(name, value));

type StoreHeader = (this: ServerResponse, firstLine: string, headers: unknown) => void;
const { _storeHeader: storeHeader } = ServerResponse.prototype as unknown as { _storeHeader: StoreHeader };

const { get: hasEnded } = Object.getOwnPropertyDescriptor(OutgoingMessage.prototype, 'writableEnded')!;

/** The arguments of `end`. */
type Ending = [body?: unknown, encoding?: unknown, done?: unknown];

let ended: OutgoingAnswer[] = [];

/**
 * Sends the answers of one turn of the event loop together, with headers that are formatted once:
 * docs/explanation/decisions/fast-requests.md. Uses private parts of Node; test/outgoing-answer.test.ts has the versions.
 */
export class OutgoingAnswer<
  Request extends IncomingMessage = IncomingMessage,
> extends ServerResponse<Request> {
  override fixed: readonly FixedHeader[] = [];
  private request_id = '';
  private rate_limit = '';
  private ending: Ending | undefined;
  /** Private in Node: the length of a body that `end` gets as a whole. */
  declare _contentLength: number | null;

  static {
    // True from `end` on, although the answer is sent later.
    Object.defineProperty(this.prototype, 'writableEnded', {
      get(this: OutgoingAnswer) {
        return this.ending !== undefined || (hasEnded!.call(this) as boolean);
      },
    });
  }

  private static sendAll(): void {
    const answers = ended;
    ended = [];
    for (const answer of answers) answer.sendEnding();
  }

  override setRequestId(id: string): void {
    this.request_id = headerLine('X-Request-Id', id);
  }

  override setRateLimit(limit: number, remaining: number, reset_seconds: number): void {
    this.rate_limit =
      headerLine('X-RateLimit-Limit', limit) +
      headerLine('X-RateLimit-Remaining', remaining) +
      headerLine('X-RateLimit-Reset', reset_seconds);
  }

  override end(...ending: Ending): this {
    if (this.ending) return this;
    const [body = '', encoding] = ending;
    const canWait = typeof body === 'string' || body instanceof Uint8Array;
    if (this.headersSent || !canWait) return super.end(...(ending as []));
    // Nobody wants the rest of the body, and its length is not known.
    if (!this.req.complete && 'transfer-encoding' in this.req.headers)
      this.req.exchange.connection.closeAfter(this);
    this._contentLength = Buffer.byteLength(body, encoding as BufferEncoding);
    // Writes the head, so that Node refuses further headers, as after its own `end`.
    this.writeHead(this.statusCode);
    this.ending = ending;
    if (ended.length === 0) setImmediate(OutgoingAnswer.sendAll);
    ended.push(this);
    return this;
  }

  override write(...part: Ending): boolean {
    this.sendEnding();
    return super.write(...(part as [string]));
  }

  override removeHeader(name: string): void {
    super.removeHeader(name);
    const removed = name.toLowerCase();
    this.fixed = this.fixed.filter((header) => header.name !== removed);
  }

  /** Called by Node to write the head. */
  _storeHeader(firstLine: string, headers: unknown): void {
    let head = firstLine + this.request_id + this.rate_limit;
    for (const { name, line } of this.fixed) if (!this.hasHeader(name)) head += line;
    storeHeader.call(this, head, headers);
  }

  private sendEnding(): void {
    const { ending } = this;
    this.ending = undefined;
    if (ending) super.end(...(ending as []));
  }
}
