import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';

/** Stands between the service and something that it needs, and can make that hang, vanish and return. */
export class FaultyProxy {
  private readonly sockets = new Set<Socket>();
  private server: Server | undefined;
  private port = 0;
  private frozen = false;

  private constructor(
    private readonly to_host: string,
    private readonly to_port: number,
  ) {}

  static async before(url: string): Promise<FaultyProxy> {
    const { hostname, port } = new URL(url);
    const proxy = new FaultyProxy(hostname, Number(port || 5432));
    await proxy.open();
    return proxy;
  }

  /** The same address, by way of here. */
  through(url: string): string {
    const address = new URL(url);
    address.hostname = '127.0.0.1';
    address.port = String(this.port);
    return address.href;
  }

  get connections(): number {
    return this.sockets.size / 2;
  }

  /** Connections stay and new ones are accepted, but nothing moves. */
  freeze(): void {
    this.frozen = true;
    for (const socket of this.sockets) socket.pause();
  }

  thaw(): void {
    this.frozen = false;
    for (const socket of this.sockets) socket.resume();
  }

  /** Every connection breaks, and no new one is accepted. */
  async vanish(): Promise<void> {
    const { server } = this;
    this.server = undefined;
    server?.close();
    this.cut();
    if (server?.listening) await once(server, 'close');
  }

  /** Every connection breaks. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
  }

  async open(): Promise<void> {
    this.server = createServer((near) => {
      const far = connect(this.to_port, this.to_host);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        this.sockets.add(from);
        from.on('data', (chunk) => void to.write(chunk));
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
}
