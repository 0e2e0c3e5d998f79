import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server } from 'node:net';

/** Breaks connections when their first answer begins, as a process does that is killed when it has done the work. */
export class LossyNetwork {
  lost = 0;

  private constructor(private readonly server: Server) {}

  /** The first connections to this service break, as many as `losses`. */
  static async before(url: string, losses: number): Promise<LossyNetwork> {
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
        near.resetAndDestroy();
      });
    }).listen(0, '127.0.0.1');
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
