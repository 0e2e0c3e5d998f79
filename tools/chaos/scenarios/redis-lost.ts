import { sleep } from '../../../test/support/time';
import { ask, keptConnections } from '../ask';
import { type Scenario, violated } from '../scenario';
import type { Service } from '../service';
import { DEVELOPER } from '../store';
import { Tally } from '../tally';

const NOT_REACHED = 'credential=9999999/1s,address=9999999/1s,misses=9999999/1s';

export const redisLost: Scenario = {
  name: 'redis-lost',
  fault: 'Redis hangs (SIGSTOP), is killed, and returns',
  promise: 'no failure, at most 60 ms added (99 of 100 requests)',
  control: 'a default Redis client',
  long: true,
  async run({ lab, guarded }) {
    const redis = await lab.redis();
    const { service } = await lab.started({
      REDIS_URL: redis.url,
      RATE_LIMIT: NOT_REACHED,
      without: guarded ? undefined : 'Redis timeouts',
    });
    await requests(service, 200);
    const healthy = await requests(service, 300);
    redis.hang();
    const hung = await requests(service, guarded ? 300 : 3);
    redis.resume();
    await redis.stop();
    const killed = await requests(service, guarded ? 300 : 3);
    await redis.start();
    await sleep(guarded ? 1500 : 0);
    const back = await requests(service, guarded ? 300 : 3);
    const usual = healthy.within(0.5, 200);
    const added = (tally: Tally) => Math.max(0, tally.within(0.99) - usual);
    const failed = [healthy, hung, killed, back].reduce((sum, tally) => sum + tally.other(200), 0);
    return {
      happened: `added ${added(hung).toFixed(0)} ms while it hung, ${added(killed).toFixed(0)} ms while it was down, ${added(back).toFixed(0)} ms afterwards; ${failed} failures`,
      broken: violated(
        [failed > 0, `${failed} failures`],
        [added(hung) > 60, `${added(hung).toFixed(0)} ms added while it hung`],
        [added(killed) > 60, `${added(killed).toFixed(0)} ms added while it was down`],
        [added(back) > 60, `${added(back).toFixed(0)} ms added afterwards`],
      ),
    };
  },
};

/** Sends requests sequentially on one connection. */
async function requests(service: Service, count: number): Promise<Tally> {
  const tally = new Tally();
  const agent = keptConnections(1);
  for (let i = 0; i < count; i++)
    await tally.of(ask(`${service.url}/profile`, { key: DEVELOPER, agent, timeout: 2000 }));
  agent.destroy();
  return tally;
}
