import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Client } from '../limits/client-limits';

// Each ignored request uses memory until the connection closes.
const MAX_IGNORED = 100;
const LINGER_TIMEOUT_MS = 1000;

/** A socket of the HTTP server. */
export interface ClientSocket extends Socket {
  connection: Connection;
}

/** A client's connection. Node emits `close` for one response at a time, so this class tracks all unsent ones. */
export class Connection {
  /** Requests whose response isn't sent yet: more than one if the client pipelines. */
  pendingResponses = 0;
  newestResponse: ServerResponse | undefined = undefined;
  /** No further request is served: a response had `Connection: close`. */
  isClosing = false;
  private ignored = 0;
  private lastText: string | undefined = undefined;

  constructor(
    readonly socket: Socket,
    readonly client: Client,
    /** The peer is a trusted proxy. */
    readonly isTrusted: boolean,
  ) {
    // Node calls `destroySoon` after a response with `Connection: close`.
    socket.destroySoon = () => this.linger();
  }

  /** Node closes the connection after this response is sent. */
  closeAfter(res: ServerResponse): void {
    this.isClosing = true;
    if (!res.headersSent) res.setHeader('Connection', 'close');
  }

  /** Sends this text after all responses, and closes the connection. */
  closeWith(text: string): void {
    this.isClosing = true;
    this.lastText = text;
    this.closeIfComplete();
  }

  responseSent(): void {
    this.pendingResponses--;
    this.closeIfComplete();
  }

  ignoreRequest(): void {
    this.ignored++;
    if (this.ignored > MAX_IGNORED) this.socket.destroy();
  }

  private closeIfComplete(): void {
    const { socket, lastText } = this;
    if (this.pendingResponses > 0 || lastText === undefined) return;
    if (socket.writable) socket.write(lastText);
    this.linger();
  }

  /** Waits for the client to close: a reset while it still sends could make it lose the response. */
  private linger(): void {
    this.isClosing = true;
    const { socket } = this;
    socket.end();
    // The rest of the data isn't parsed, because tiny chunks would take more time than the requests before
    // them.
    socket.removeAllListeners('data').on('data', () => undefined);
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), LINGER_TIMEOUT_MS).unref();
    socket.once('close', () => clearTimeout(timer));
  }
}
