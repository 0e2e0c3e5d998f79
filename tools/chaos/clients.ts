import { type Agent } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { type HttpResponse, keptConnections } from './ask';
import { Tally } from './tally';

/** Clients with their own kept-alive connections, each sending a request after each response. */
export class Clients {
  readonly tally = new Tally();
  private over = false;
  private readonly all: Promise<void>[];

  constructor(
    count: number,
    work: (client: number, agent: Agent) => Promise<HttpResponse>,
    { pause = 0 }: { pause?: number } = {},
  ) {
    this.all = Array.from({ length: count }, async (_, client) => {
      const agent = keptConnections(1);
      while (!this.over) {
        const response = await this.tally.of(work(client, agent));
        // Without a response, a client pauses before its next request.
        await sleep(response ? pause : Math.max(pause, 20));
      }
      agent.destroy();
    });
  }

  async stop(): Promise<Tally> {
    this.over = true;
    await Promise.all(this.all);
    return this.tally;
  }
}
