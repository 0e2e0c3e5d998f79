import { sleep } from '../../../test/support/time';
import type { Scenario } from '../scenario';
import { KEYS } from '../store';
import { violationsOf, Writers } from '../writers';

export const serviceKilled: Scenario = {
  name: 'service-killed',
  fault: 'the service killed (kill -9) under 32 writers',
  promise: 'no acknowledged write lost, none with an Idempotency-Key duplicated',
  control: 'writers without Idempotency-Key',
  async run({ lab, guarded, quick }) {
    const kills = quick ? 3 : guarded ? 50 : 15;
    const postgres = await lab.postgres();
    await postgres.start();
    const service = await lab.service(postgres.url);
    await service.start();
    const writers = new Writers(() => service.url, KEYS.slice(0, 32), { name: 'kill', idempotent: guarded });
    for (let i = 0; i < kills; i++) {
      await sleep(100 + Math.random() * 300);
      await service.kill();
      await service.start();
    }
    await writers.stop();
    const reckoning = await writers.compare(postgres.url);
    const { acknowledged, lost, doubled, retries } = reckoning;
    return {
      happened: `${kills} kills, ${acknowledged} writes acknowledged, ${retries} retries: ${lost} lost, ${doubled} doubled`,
      broken: violationsOf(reckoning),
    };
  },
};
