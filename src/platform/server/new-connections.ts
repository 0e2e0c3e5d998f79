import type { Socket } from 'node:net';
import { ConcurrencyLimit, type LimitedClient } from '../limits/concurrency-limit';

// Maximum number of ticks of the event loop that reading waits, because a client that only connects could
// prevent it.
const MAX_TICKS = 16;

/**
 * Reads the first requests of new connections: of each client one connection at a time, and only once no further
 * connection is waiting to be accepted. Node accepts one per tick of the event loop, so a client with many connections
 * would otherwise delay those of all others by the time that its requests take.
 */
export class NewConnections {
  private readonly limit = new ConcurrencyLimit({ accepted: Infinity, each: 1 });
  /** The clients of the connections that are being read. */
  private readonly clients: LimitedClient[] = [];
  private hasAccepted = false;
  private ticks = 0;

  add(socket: Socket, client: LimitedClient): void {
    this.hasAccepted = true;
    let isRead = false;
    const begin = () => {
      isRead = true;
      socket.resume();
      if (this.clients.push(client) > 1) return;
      this.ticks = 0;
      setImmediate(() => this.endTick());
    };
    this.limit.enter({ client, begin, reject: () => undefined });
    // Pauses in the next tick, because Node starts to read the socket first.
    if (!isRead) process.nextTick(() => socket.pause());
  }

  private endTick(): void {
    const mayWait = this.hasAccepted && ++this.ticks < MAX_TICKS;
    this.hasAccepted = false;
    if (mayWait) setImmediate(() => this.endTick());
    else for (const client of this.clients.splice(0)) this.limit.leave(client);
  }
}
