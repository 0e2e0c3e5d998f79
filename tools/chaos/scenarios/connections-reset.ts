import { sleep } from '../../../test/support/time';
import type { Scenario } from '../scenario';
import { KEYS } from '../store';
import { violationsOf, Writers } from '../writers';

export const connectionsReset: Scenario = {
  name: 'connections-reset',
  fault: 'connections to PostgreSQL reset in the middle of transactions, under 32 writers',
  promise: 'those requests get 503, no partial or duplicate writes, the process survives',
  control: 'writers without Idempotency-Key',
  async run({ lab, guarded, quick }) {
    const resets = quick ? 20 : 100;
    const postgres = await lab.postgres();
    await postgres.start();
    const network = await lab.proxy(postgres.url);
    const service = await lab.service(network.through(postgres.url));
    await service.start();
    const writers = new Writers(() => service.url, KEYS.slice(0, 32), { name: 'reset', idempotent: guarded });
    for (let i = 0; i < resets; i++) {
      await sleep(50 + Math.random() * 100);
      network.reset();
    }
    await writers.stop();
    const reckoning = await writers.compare(postgres.url);
    const { acknowledged, lost, doubled, retries } = reckoning;
    return {
      happened: `${resets} resets, ${acknowledged} writes acknowledged, ${retries} retries: ${lost} lost, ${doubled} doubled`,
      broken: [...violationsOf(reckoning), ...(service.running ? [] : ['the process ended'])],
    };
  },
};
