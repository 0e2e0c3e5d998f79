import { until, moment } from '../../../test/support/time';
import { startPooler } from '../../../test/support/pgbouncer';
import { type Scenario, which } from '../scenario';
import { KEYS } from '../store';
import { promisesBroken, Writers } from '../writers';

const SERVED_AGAIN = 30_000;
/** For a node that comes back, rewinds and follows. */
const PATIENCE = 180_000;

export const failover: Scenario = {
  name: 'failover',
  fault:
    'two PostgreSQL under Patroni behind PgBouncer: the primary killed, then the other one frozen, under 16 writers',
  promise: 'no acknowledged write lost or doubled, no 500, no process ends, writes back within 30 s',
  control: 'an asynchronous standby on a slow line',
  long: true,
  async run({ lab, guarded }) {
    const { cluster, url, administrator } = await lab.patroni({ synchronous: guarded });
    const pooler = await startPooler(url, { server_login_retry: '1', server_connect_timeout: '2' });
    const service = await lab.service(pooler.through(url), { DATABASE_PREPARED_STATEMENTS: 'false' });
    const broken: string[] = [];
    const back: number[] = [];
    try {
      await service.start();
      const writers = new Writers(() => service.url, KEYS.slice(0, 16), {
        name: 'failover',
        idempotent: true,
      });
      const writesAreBack = async () => {
        const begun = performance.now();
        // An answer that was on its way when the primary stopped says nothing of the next one.
        await moment(1000);
        const before = writers.count;
        await until(() => writers.count > before, 60_000).catch(() => undefined);
        back.push(performance.now() - begun);
        await moment(2000);
      };

      await moment(2000);
      const [primary, standby] = await cluster.roles();
      if (!guarded) Object.assign(primary.line, { delay: 300, bytes_per_second: 100_000 });
      await moment(1000);
      await primary.kill();
      await writesAreBack();

      if (guarded) {
        primary.start();
        await until(() => primary.isSynchronous(), PATIENCE);
        await moment(2000);
        await standby.freeze();
        await writesAreBack();
        await standby.thaw();
        // It takes no writes beside the new primary.
        await until(async () => !(await standby.isReady()), PATIENCE);
      }

      await writers.stop();
      const reckoning = await writers.reckon(administrator());
      broken.push(
        ...promisesBroken(reckoning),
        ...which(
          [Math.max(...back) > SERVED_AGAIN, `writes back after ${Math.max(...back).toFixed(0)} ms`],
          [!service.running, 'the service ended'],
        ),
      );
      const times = back.map((ms) => `${(ms / 1000).toFixed(1)} s`).join(' and ');
      return {
        happened: `${reckoning.acknowledged} writes acknowledged: ${reckoning.lost} lost, ${reckoning.doubled} doubled; writes back after ${times}`,
        broken,
      };
    } finally {
      await pooler.stop();
    }
  },
};
