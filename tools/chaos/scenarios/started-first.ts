import { sleep, until } from '../../../test/support/time';
import { ask } from '../ask';
import { type Scenario, violated } from '../scenario';

export const startedFirst: Scenario = {
  name: 'started-first',
  fault: 'the service started 3 s before its database',
  promise: 'it survives and reports that it is not ready, and serves within 2 s of the database',
  control: 'no database error mapping',
  long: true,
  async run({ lab, guarded }) {
    const postgres = await lab.postgres();
    const service = await lab.service(postgres.url, {
      without: guarded ? undefined : 'database error mapping',
    });
    const fetchStatus = (path: string) =>
      ask(`${service.url}${path}`, { timeout: 3000 }).then(
        ({ status }) => status,
        () => 0,
      );
    service.spawn();
    await until(async () => !service.running || (await fetchStatus('/health/live')) === 200, 30_000);
    await sleep(3000);
    const [alive, ready] = [await fetchStatus('/health/live'), await fetchStatus('/health/ready')];
    await postgres.start();
    const started = performance.now();
    const served = await until(() => service.isReady(), 5000).then(
      () => performance.now() - started,
      () => Infinity,
    );
    return {
      happened: `before: alive ${alive}, ready ${ready}; ${served < Infinity ? `ready after ${served.toFixed(0)} ms` : 'never ready'}`,
      broken: violated(
        [alive !== 200, `alive ${alive}`],
        [ready !== 503, `ready ${ready}`],
        [served > 2000, served < Infinity ? `ready after ${served.toFixed(0)} ms` : 'never ready'],
      ),
    };
  },
};
