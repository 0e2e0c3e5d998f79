import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';

const BAD_GATEWAY = `HTTP/1.1 502 Bad Gateway\r
Content-Type: text/html\r
Content-Length: 24\r
Connection: close\r
\r
<h1>502 Bad Gateway</h1>`;

/** Breaks connections when their first response begins, like a process killed after it has done the work. */
export class LossyNetwork {
  lost = 0;

  private constructor(private readonly server: Server) {}

  /**
   * Breaks the first `losses` connections to this service. For the last `proxied` of them, a proxy reports it to the
   * client.
   */
  static async before(url: string, losses: number, proxied = 0): Promise<LossyNetwork> {
    const { hostname, port } = new URL(url);
    const server = createServer((near) => {
      const far = connect(Number(port), hostname);
      for (const [from, to] of [
        [near, far],
        [far, near],
      ] as const) {
        from.on('error', () => undefined);
        from.on('close', () => to.destroy());
      }
      near.pipe(far);
      far.once('readable', () => {
        if (network.lost === losses) return void far.pipe(near);
        network.lost++;
        if (network.lost <= losses - proxied) return void near.resetAndDestroy();
        near.end(BAD_GATEWAY, () => near.destroySoon());
      });
    }).listen(0, '127.0.0.1');
    // A failed test doesn't close the server.
    server.unref();
    const network = new LossyNetwork(server);
    await once(server, 'listening');
    return network;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  close(): void {
    this.server.close();
  }
}
