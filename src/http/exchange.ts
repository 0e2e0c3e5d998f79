import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Capacity } from './capacity';
import type { Connection } from './connection';
import { serviceUnavailable } from './failure';
import type { InFlight } from './in-flight';
import type { Sender } from './senders';

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

  /** For long work such as an import: no deadline, and no slot. */
  takesLong(): void {
    this.isLong = true;
    this.inFlight.giveBack(this);
  }

  close(): void {
    this.inFlight.close(this);
  }
}
