import { sleep, until } from '../../../test/support/time';
import { ask } from '../ask';
import { Clients } from '../clients';
import { type Scenario, violated } from '../scenario';
import { KEYS } from '../store';

export const rollingRestart: Scenario = {
  name: 'rolling-restart',
  fault: 'rolling restarts of two replicas under 40 clients on kept-alive connections',
  promise: 'no failed request, every replica exits with 0',
  control: 'replicas exit without draining',
  async run({ lab, guarded, quick }) {
    const rounds = quick || !guarded ? 1 : 10;
    const postgres = await lab.postgres();
    await postgres.start();
    const replicas = await Promise.all([1, 2].map(() => lab.service(postgres.url)));
    await Promise.all(replicas.map((replica) => replica.start()));
    const balancer = await lab.balancer(replicas);
    const clients = new Clients(
      40,
      (client, agent) => ask(`${balancer.url}/profile`, { key: KEYS[client], agent, timeout: 5000 }),
      { pause: 50 },
    );
    const codes: (number | null)[] = [];
    for (let round = 0; round < rounds; round++)
      for (const replica of replicas) {
        await sleep(500);
        if (guarded) codes.push(await replica.stop());
        else await replica.kill();
        await replica.start();
        await until(() => balancer.knows(replica));
      }
    const tally = await clients.stop();
    return {
      happened: `${rounds} rolling restarts: ${tally}`,
      broken: violated(
        [tally.other(200) > 0, `${tally.other(200)} failed requests`],
        [codes.some((code) => code !== 0), `a replica exited with ${codes.find((code) => code !== 0)}`],
      ),
    };
  },
};
