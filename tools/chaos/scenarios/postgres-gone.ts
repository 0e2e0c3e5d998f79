import { sleep, until } from '../../../test/support/time';
import { Clients } from '../clients';
import { type Scenario, violated } from '../scenario';
import { read, readOrWrite } from '../traffic';

export const postgresGone: Scenario = {
  name: 'postgres-gone',
  fault: 'PostgreSQL killed under 40 clients, and restarted after two seconds',
  promise:
    '503 with Retry-After while it is down, 200 within 1 s of its return, without a restart of the service',
  control: 'no database error mapping',
  async run({ lab, guarded, quick }) {
    const times = quick || !guarded ? 1 : 5;
    const { postgres, service } = await lab.started({
      without: guarded ? undefined : 'database error mapping',
    });
    const { pid } = service;
    let [rejected, back, unhinted] = [0, 0, 0];
    const broken: string[] = [];
    for (let i = 0; i < times; i++) {
      const ask = readOrWrite(service, { timeout: 6000 });
      const clients = new Clients(40, async (client, agent) => {
        const response = await ask(client, agent);
        if (response.status === 503 && !response.headers['retry-after']) unhinted++;
        return response;
      });
      await sleep(500);
      await postgres.kill();
      await sleep(2000);
      await postgres.start();
      const returned = performance.now();
      await until(async () => (await read(service)) === 200, 10_000);
      back = Math.max(back, performance.now() - returned);
      const tally = await clients.stop();
      rejected += tally.count(503);
      broken.push(...violated([tally.other(200, 503) > 0, `answered ${tally}`]));
    }
    broken.push(
      ...violated(
        [back > 1000, `served again after ${back.toFixed(0)} ms`],
        [unhinted > 0, `${unhinted} without Retry-After`],
        [!service.running || service.pid !== pid, 'the process ended'],
      ),
    );
    return {
      happened: `${times} times: ${rejected} × 503, served again within ${back.toFixed(0)} ms of its return`,
      broken,
    };
  },
};
