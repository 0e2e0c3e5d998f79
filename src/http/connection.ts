import type { ServerResponse, IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import { serviceUnavailable } from './failure';
import type { InFlight } from './in-flight';
import type { Sender, Capacity } from './senders';

// Each of them uses memory until the connection closes.
const MAX_IGNORED = 100;
const LINGER_TIMEOUT = 1000;
// A piece costs about as much time as so many bytes, and a body may have so many pieces more than its bytes explain.
const BYTES_OF_A_PIECE = 32;
const MAX_SURPLUS_PIECES = 1000;

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
    // What still comes is not parsed: in tiny chunks it would cost more than all that was answered.
    socket.removeAllListeners('data').on('data', () => undefined);
    socket.resume();
    const timer = setTimeout(() => socket.destroy(), LINGER_TIMEOUT).unref();
    socket.once('close', () => clearTimeout(timer));
  }
}

/** A request and its answer. */
export class Exchange {
  /** The start of the deadline for the answer: the end of the body, or `at`. */
  since: number;
  /** Its index in the array of exchanges. */
  index = -1;
  /** The capacity of which it holds one: slots or health. */
  held: Capacity | undefined = undefined;
  /** The bytes that it holds of the capacity `uploads`. */
  upload = 0;
  /** The bytes that its connection had sent at the last sweep. */
  sent = 0;
  /** The answer is sent, or the connection is lost. */
  isClosed = false;
  isLong = false;
  private surplusPieces = 0;

  constructor(
    private readonly inFlight: InFlight,
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    readonly connection: Connection,
    readonly sender: Sender,
    /** Its arrival, by performance.now(). */
    readonly at: number,
  ) {
    this.since = at;
  }

  /** Called when the body is read: the request needs a slot from now on. */
  bodyArrived(): void {
    if (!this.inFlight.bodyArrived(this)) throw serviceUnavailable();
  }

  /** Called for each piece of the body, which is a chunk or what one read of the socket brought; false: refused. */
  pieceArrived(bytes: number): boolean {
    this.surplusPieces += 1 - bytes / BYTES_OF_A_PIECE;
    if (this.surplusPieces <= MAX_SURPLUS_PIECES) return true;
    this.inFlight.refuseChunks(this);
    return false;
  }

  /** For long work such as an import: no deadline, and no slot. */
  takesLong(): void {
    this.isLong = true;
    this.inFlight.giveBack(this);
  }

  close(): void {
    this.inFlight.close(this);
  }
}
