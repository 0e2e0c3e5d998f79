import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** A proxy between the service and a dependency that can be slowed, frozen, cut, restored and moved. */
export class FaultyProxy {
  /** How long each chunk waits. */
  delay = 0;
  /** Bandwidth in each direction of a connection. */
  bytes_per_second = Infinity;
  /**
   * How often a client sent data after the server had sent some. With a delay, data that is sent together
   * arrives together.
   */
  roundTrips = 0;
  /** Withholds what the server sends on a connection after the client has sent this text. */
  withholdsAfter: string | undefined;
  /** Whether to count a round trip that begins with these bytes. */
  counts: (sent: Buffer) => boolean = () => true;
  private readonly sockets = new Set<Socket>();
  private server: Server | undefined;
  private port = 0;
  private frozen = false;

  private constructor(
    private to_host: string,
    private to_port: number,
  ) {}

  static async before(url: string): Promise<FaultyProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new FaultyProxy(hostname, Number(port || 5432));
    await proxy.open();
    return proxy;
  }

  /** The same URL through the proxy. */
  through(url: string): string {
    const address = new URL(url);
    address.hostname = '127.0.0.1';
    address.port = String(this.port);
    return address.href;
  }

  get connections(): number {
    return this.sockets.size / 2;
  }

  /** Switches to another server, and disconnects the clients of the old one. */
  turnTo(url: string): void {
    const { hostname, port } = new URL(url);
    this.to_host = hostname;
    this.to_port = Number(port);
    this.cut();
  }

  /** Keeps connections and accepts new ones, but forwards nothing. */
  freeze(): void {
    this.frozen = true;
    for (const socket of this.sockets) socket.pause();
  }

  thaw(): void {
    this.frozen = false;
    for (const socket of this.sockets) socket.resume();
  }

  /** Breaks every connection and accepts no new one. */
  async vanish(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    server?.close();
    this.cut();
    if (server?.listening) await once(server, 'close');
  }

  /** Breaks every connection. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  /** Resets every connection with a RST, as if the other end had lost its state. */
  reset(): void {
    for (const socket of this.sockets) socket.resetAndDestroy();
  }

  async open(): Promise<void> {
    this.server = createServer((near) => {
      const far = connect(this.to_port, this.to_host);
      let last: Socket = far;
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.sockets.add(from);
        from.on('data', (chunk) => {
          if (from === near && last === far && this.counts(chunk)) this.roundTrips++;
          last = from;
          if (from === near && this.withholdsAfter && chunk.includes(this.withholdsAfter)) far.pause();
          this.pass(from, to, chunk);
        });
        from.on('error', () => undefined);
        from.on('close', () => {
          this.sockets.delete(from);
          to.destroy();
        });
        if (this.frozen) from.pause();
      }
    }).listen(this.port, '127.0.0.1');
    await once(this.server, 'listening');
    this.port = (this.server.address() as AddressInfo).port;
  }

  private pass(from: Socket, to: Socket, chunk: Buffer): void {
    if (this.bytes_per_second < Infinity) {
      from.pause();
      setTimeout(() => this.frozen || from.resume(), (chunk.length / this.bytes_per_second) * 1000);
    }
    if (this.delay === 0) to.write(chunk);
    else setTimeout(() => to.write(chunk), this.delay);
  }
}
