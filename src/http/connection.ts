import type { ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Exchange } from './exchange';
import type { Sender } from './senders';

// Each of them uses memory until the connection closes.
const MAX_IGNORED = 100;
const LINGER_TIMEOUT = 1000;

/** A connection of a client. */
export class Connection {
  /** Requests whose answer is not sent yet: more than one where the client pipelines. */
  unanswered = 0;
  newest: Exchange | undefined = undefined;
  /** No further request is served: an answer had `Connection: close`. */
  isClosing = false;
  private ignored = 0;
  private lastText: string | undefined = undefined;

  constructor(
    readonly socket: Socket,
    readonly sender: Sender,
    /** The peer is a trusted proxy. */
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

  /** Sends this text after all answers, and closes. */
  closeWith(text: string): void {
    this.isClosing = true;
    this.lastText = text;
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
    const { socket, lastText } = this;
    if (this.unanswered > 0 || lastText === undefined) return;
    if (socket.writable) socket.write(lastText);
    this.linger();
  }

  /** Waits for the client to close: a reset while it still sends could make it lose the answer. */
  private linger(): void {
    this.isClosing = true;
    const { socket } = this;
    socket.end();
    const timer = setTimeout(() => socket.destroy(), LINGER_TIMEOUT).unref();
    socket.once('close', () => clearTimeout(timer));
  }
}
