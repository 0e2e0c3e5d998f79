import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { sleep } from '../../test/support/time';

const LOOK_EVERY = 200;

export interface Backend {
  port: number;
  isReady(): Promise<boolean>;
}

/**
 * What a Kubernetes Service is to its clients: one address, where each new connection goes to the next replica that was
 * ready at the last check. It doesn't parse HTTP, and a connection stays with its replica.
 */
export class Balancer {
  private readonly ready = new Set<Backend>();
  private readonly sockets = new Set<Socket>();
  private readonly server: Server;
  private turn = 0;
  private over = false;

  private constructor(private readonly replicas: Backend[]) {
    this.server = createServer({ allowHalfOpen: true }, (near) => this.lead(near));
  }

  static async before(replicas: Backend[]): Promise<Balancer> {
    const balancer = new Balancer(replicas);
    await Promise.all(replicas.map((replica) => balancer.look(replica)));
    balancer.server.listen(0, '127.0.0.1');
    await once(balancer.server, 'listening');
    for (const replica of replicas) void balancer.keepLooking(replica);
    return balancer;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Whether it receives new connections. */
  knows(replica: Backend): boolean {
    return this.ready.has(replica);
  }

  close(): void {
    this.over = true;
    this.server.close();
    for (const socket of this.sockets) socket.destroy();
  }

  private lead(near: Socket): void {
    const ready = this.replicas.filter((replica) => this.ready.has(replica));
    const replica = ready[this.turn++ % Math.max(1, ready.length)];
    if (!replica) return void near.resetAndDestroy();
    const far = connect({ port: replica.port, host: '127.0.0.1', allowHalfOpen: true, noDelay: true });
    near.setNoDelay();
    for (const [from, to] of [
      [near, far],
      [far, near],
    ] as const) {
      this.sockets.add(from);
      from.pipe(to);
      // The last bytes are still delivered; a broken connection is broken at the other end too.
      from.on('error', () => to.resetAndDestroy());
      from.on('close', () => this.sockets.delete(from));
    }
  }

  private async keepLooking(replica: Backend): Promise<void> {
    while (!this.over) {
      await sleep(LOOK_EVERY);
      await this.look(replica);
    }
  }

  private async look(replica: Backend): Promise<void> {
    if (await replica.isReady()) this.ready.add(replica);
    else this.ready.delete(replica);
  }
}
