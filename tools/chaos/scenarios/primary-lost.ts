import { sleep, until } from '../../../test/support/time';
import { type Scenario, violated } from '../scenario';
import { KEYS } from '../store';
import { listViolations, Writers } from '../writers';

export const primaryLost: Scenario = {
  name: 'primary-lost',
  fault: 'the primary killed under 32 writers, its synchronous standby promoted',
  promise: 'no acknowledged write lost or duplicated, writes work again within 10 s',
  control: 'an asynchronous standby on a slow network',
  async run({ lab, guarded, quick }) {
    const times = quick || !guarded ? 1 : 5;
    let [acknowledged, lost, doubled, back] = [0, 0, 0, 0];
    const broken: string[] = [];
    for (let i = 0; i < times; i++) {
      const primary = await lab.postgres({ synchronous_standby_names: guarded ? 'standby' : '' });
      const standby = await lab.postgres();
      await primary.start();
      const line = await lab.proxy(primary.administrator);
      await standby.follow(line.through(primary.administrator));
      await standby.start();
      await until(
        async () =>
          (await primary.query(`SELECT FROM pg_stat_replication WHERE state = 'streaming'`)).length > 0,
      );
      // The one URL that the service knows, whichever server is behind it.
      const address = await lab.proxy(primary.url);
      const service = await lab.service(address.through(primary.url));
      await service.start();
      if (!guarded) Object.assign(line, { delay: 300, bytes_per_second: 100_000 });

      const writers = new Writers(() => service.url, KEYS.slice(0, 32), {
        name: `primary-${i}`,
        idempotent: true,
      });
      await sleep(2000);
      await primary.kill();
      const killed = performance.now();
      await standby.promote();
      address.turnTo(standby.url);
      const before = writers.count;
      await until(() => writers.count > before, 30_000);
      back = Math.max(back, performance.now() - killed);
      await sleep(500);
      await writers.stop();
      const reckoning = await writers.compare(standby.url);
      acknowledged += reckoning.acknowledged;
      lost += reckoning.lost;
      doubled += reckoning.doubled;
      broken.push(...listViolations(reckoning));
      await lab.clear();
    }
    broken.push(...violated([back > 10_000, `writes worked again after ${back.toFixed(0)} ms`]));
    return {
      happened: `${times} times, ${acknowledged} writes acknowledged: ${lost} lost, ${doubled} duplicated; writes worked again after ${(back / 1000).toFixed(1)} s`,
      broken,
    };
  },
};
