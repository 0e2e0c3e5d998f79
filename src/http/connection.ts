import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from './exchange';
import type { Sender } from './senders';

// Each takes memory until the connection closes.
const MAX_IGNORED = 100;
const LINGER = 1000;

/** One connection of a client. */
export class Connection {
  /** Requests whose answer is not sent yet: more than one where the client pipelines. */
  unanswered = 0;
  newest: Exchange | undefined = undefined;
  /** The client was told that this is the end: no further request is served. */
  isClosing = false;
  private ignored = 0;
  private lastWords: string | undefined = undefined;

  constructor(
    readonly socket: Socket,
    readonly sender: Sender,
    /** Its X-Forwarded-For is believed. */
    readonly isTrusted: boolean,
  ) {
    // Node calls it after an answer with `Connection: close`.
    socket.destroySoon = () => this.linger();
  }

  /** Node closes the connection when this answer is sent. */
  closeAfter(res: ServerResponse): void {
    this.isClosing = true;
    if (!res.headersSent) res.setHeader('Connection', 'close');
  }

  /** Closes when every answer is sent, and this text after them. */
  closeWith(lastWords: string): void {
    this.isClosing = true;
    this.lastWords = lastWords;
    this.closeIfAnswered();
  }

  answered(): void {
    this.unanswered--;
    this.closeIfAnswered();
  }

  ignoreRequest(): void {
    this.ignored++;
    if (this.ignored > MAX_IGNORED) this.socket.destroy();
  }

  private closeIfAnswered(): void {
    const { socket, lastWords } = this;
    if (this.unanswered > 0 || lastWords === undefined) return;
    if (socket.writable) socket.write(lastWords);
    this.linger();
  }

  /** A socket that is closed while the client still sends is reset, and the client may lose the answer with it. */
  private linger(): void {
    this.isClosing = true;
    const { socket } = this;
    socket.end();
    const timer = setTimeout(() => socket.destroy(), LINGER).unref();
    socket.once('close', () => clearTimeout(timer));
  }
}
