import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Capacity } from './capacity';
import type { Connection } from './connection';
import { serviceUnavailable } from './failure';
import type { InFlight } from './in-flight';
import type { Sender } from './senders';

/** A request and its answer. */
export class Exchange {
  /** From when the time for the answer counts: later than `at` where the body took long. */
  since: number;
  /** In the array of those in flight. */
  index = -1;
  /** Of which it holds one: slots or health. */
  held: Capacity | undefined = undefined;
  /** Bytes that it holds of the uploads. */
  upload = 0;
  /** How many bytes had left on its connection when somebody last looked. */
  sent = 0;
  /** The answer was sent, or the connection is gone. */
  isClosed = false;
  isLong = false;

  constructor(
    private readonly inFlight: InFlight,
    readonly req: IncomingMessage,
    readonly res: ServerResponse,
    readonly connection: Connection,
    readonly sender: Sender,
    /** When it arrived, by performance.now(). */
    readonly at: number,
  ) {
    this.since = at;
  }

  /** Called by whoever has read the body: from now on this request takes a slot like any other. */
  bodyArrived(): void {
    if (!this.inFlight.bodyArrived(this)) throw serviceUnavailable();
  }

  /** For a handler whose work is long by nature: it has no deadline, and takes no slot from short requests. */
  takesLong(): void {
    this.isLong = true;
    this.inFlight.giveBack(this);
  }

  close(): void {
    this.inFlight.close(this);
  }
}
