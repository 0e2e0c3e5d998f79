import { connect, type Socket } from 'node:net';

export interface HttpResponse {
  status: number;
  /** Lowercase names, in the order received. */
  headers: [name: string, value: string][];
  body: string;
}

export const findHeader = (response: HttpResponse, name: string) =>
  response.headers.find(([given]) => given === name)?.[1];

// Imports wait for one another, and a machine may be busy.
const LONGEST = 60_000;
// The client closes an idle connection before the server does.
const IDLE = 30_000;
const HEAD_END = Buffer.from('\r\n\r\n');

interface Head {
  response: HttpResponse;
  /** The length of the body: a number of bytes, chunked, or until the connection is closed. */
  length: number | 'chunks' | 'rest';
  bodyAt: number;
}

/** The head of the first response received, or undefined while it is incomplete. */
function parseHead(bytes: Buffer, toHead: boolean): Head | undefined {
  const end = bytes.indexOf(HEAD_END);
  if (end < 0) return undefined;
  const [first = '', ...lines] = bytes.toString('latin1', 0, end).split('\r\n');
  const headers = lines.map((line): [string, string] => {
    const colon = line.indexOf(':');
    return [line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim()];
  });
  const status = Number(first.split(' ')[1]);
  const response = { status, headers, body: '' };
  const given = findHeader(response, 'content-length');
  const length =
    toHead || status === 204 || status === 304 || status < 200
      ? 0
      : given !== undefined
        ? Number(given)
        : /chunked/i.test(findHeader(response, 'transfer-encoding') ?? '')
          ? 'chunks'
          : 'rest';
  return { response, length, bodyAt: end + 4 };
}

function unchunked(bytes: Buffer): { body: string; end: number } | undefined {
  const parts: Buffer[] = [];
  for (let at = 0; ;) {
    const line = bytes.indexOf('\r\n', at);
    if (line < 0) return undefined;
    const size = parseInt(bytes.toString('latin1', at, line), 16);
    if (bytes.length < line + 2 + size + 2) return undefined;
    if (size === 0) return { body: Buffer.concat(parts).toString(), end: line + 4 };
    parts.push(bytes.subarray(line + 2, line + 2 + size));
    at = line + 2 + size + 2;
  }
}

/** Takes one response from the start of the received bytes; `closed`: no more will arrive. */
function takeResponse(
  bytes: Buffer,
  { toHead = false, closed = false } = {},
): { response: HttpResponse; rest: Buffer } | undefined {
  const head = parseHead(bytes, toHead);
  if (!head) return undefined;
  const { response, length, bodyAt } = head;
  if (response.status >= 100 && response.status < 200)
    return takeResponse(bytes.subarray(bodyAt), { toHead, closed });
  const body = bytes.subarray(bodyAt);
  if (length === 'chunks') {
    const whole = unchunked(body);
    if (!whole) return undefined;
    return { response: { ...response, body: whole.body }, rest: body.subarray(whole.end) };
  }
  if (length === 'rest') {
    if (!closed) return undefined;
    return { response: { ...response, body: body.toString() }, rest: Buffer.alloc(0) };
  }
  if (body.length < length) return undefined;
  return { response: { ...response, body: body.toString('utf8', 0, length) }, rest: body.subarray(length) };
}

interface Exchange {
  bytes: Buffer;
  toHead: boolean;
  resolve: (response: HttpResponse) => void;
  reject: (error: Error) => void;
}

/** One kept-alive connection with one request at a time. */
class Connection {
  current: Exchange | undefined;
  private received: Buffer[] = [];
  private timer: NodeJS.Timeout | undefined;
  private readonly socket: Socket;

  constructor(
    port: number,
    private readonly free: (connection: Connection) => void,
    private readonly lost: (connection: Connection) => void,
    private readonly surplus: (bytes: Buffer) => void,
  ) {
    this.socket = connect({ port, host: '127.0.0.1', noDelay: true });
    this.socket.on('data', (chunk) => this.read(chunk));
    this.socket.on('error', () => undefined);
    this.socket.setTimeout(IDLE, () => {
      if (this.current) return;
      // The close event takes a tick, and nothing may use the connection in the meantime.
      this.lost(this);
      this.socket.destroy();
    });
    this.socket.on('close', () => this.closed());
  }

  send(exchange: Exchange): void {
    this.current = exchange;
    this.received = [];
    this.timer = setTimeout(() => {
      exchange.reject(new Error(`no response within ${LONGEST / 1000} s`));
      this.current = undefined;
      this.socket.destroy();
    }, LONGEST);
    this.socket.write(exchange.bytes);
  }

  end(): void {
    this.socket.destroy();
  }

  private read(chunk: Buffer): void {
    this.received.push(chunk);
    const bytes = this.received.length === 1 ? chunk : Buffer.concat(this.received);
    this.received = [bytes];
    const { current } = this;
    const taken = current && takeResponse(bytes, { toHead: current.toHead });
    const rest = current ? taken?.rest : chunk;
    if (rest?.length) this.surplus(rest);
    if (!taken) return;
    this.finish(taken.response);
    if (taken.rest.length > 0 || findHeader(taken.response, 'connection') === 'close') this.socket.destroy();
    else this.free(this);
  }

  private closed(): void {
    const { current } = this;
    if (current) {
      const taken = takeResponse(Buffer.concat(this.received), { toHead: current.toHead, closed: true });
      if (taken) this.finish(taken.response);
      else this.fail(new Error('the connection was closed without a response'));
    }
    this.lost(this);
  }

  private finish(response: HttpResponse): void {
    clearTimeout(this.timer);
    this.current?.resolve(response);
    this.current = undefined;
  }

  private fail(error: Error): void {
    clearTimeout(this.timer);
    this.current?.reject(error);
    this.current = undefined;
  }
}

/**
 * HTTP without a client's validation of requests: sends exactly what it gets, over a few kept-alive connections. Strict
 * about responses: every byte must belong to one.
 */
export class Client {
  readonly port: number;
  sent = 0;
  /** The first bytes that belonged to no response. */
  surplus: string | undefined;
  private readonly all = new Set<Connection>();
  private readonly idle: Connection[] = [];
  private readonly waiting: Exchange[] = [];

  constructor(
    readonly base: string,
    private readonly connections = 48,
  ) {
    this.port = Number(new URL(base).port);
  }

  exchange(bytes: Buffer, toHead = false): Promise<HttpResponse> {
    this.sent++;
    if (this.surplus !== undefined)
      return Promise.reject(new Error(`bytes follow a response: ${this.surplus}`));
    return new Promise((resolve, reject) => {
      this.waiting.push({ bytes, toHead, resolve, reject });
      this.next();
    });
  }

  end(): void {
    for (const connection of this.all) connection.end();
  }

  private next(): void {
    if (this.waiting.length === 0) return;
    const connection = this.idle.pop() ?? (this.all.size < this.connections ? this.open() : undefined);
    if (connection) connection.send(this.waiting.shift()!);
  }

  private open(): Connection {
    const connection = new Connection(
      this.port,
      (free) => {
        this.idle.push(free);
        this.next();
      },
      (lost) => {
        this.all.delete(lost);
        const at = this.idle.indexOf(lost);
        if (at >= 0) this.idle.splice(at, 1);
        this.next();
      },
      (bytes) => (this.surplus ??= JSON.stringify(bytes.toString('latin1', 0, 200))),
    );
    this.all.add(connection);
    return connection;
  }
}
