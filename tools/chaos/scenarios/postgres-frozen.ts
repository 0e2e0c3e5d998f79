import { sleep, until } from '../../../test/support/time';
import { ask } from '../ask';
import { Clients } from '../clients';
import { type Scenario, violated } from '../scenario';
import { read, readOrWrite } from '../traffic';

export const postgresFrozen: Scenario = {
  name: 'postgres-frozen',
  fault: 'PostgreSQL hangs (SIGSTOP, all its processes) under 40 clients',
  promise: 'every response 503 within 2.5 s, liveness 200 within 200 ms, served again within 1 s',
  control: 'no deadlines',
  async run({ lab, guarded, quick }) {
    const times = quick || !guarded ? 1 : 5;
    const { postgres, service } = await lab.started({ without: guarded ? undefined : 'deadlines' });
    let [responses, slowest, alive, recovery] = [0, 0, 0, 0];
    const broken: string[] = [];
    for (let i = 0; i < times; i++) {
      const before = new Clients(20, readOrWrite(service, { timeout: 6000 }));
      await sleep(500);
      await postgres.freeze();
      // A response in this moment may belong to an earlier request.
      await sleep(50);
      const during = new Clients(20, readOrWrite(service, { timeout: 6000 }));
      const liveness = new Clients(1, () => ask(`${service.url}/health/live`, { timeout: 6000 }), {
        pause: 50,
      });
      await sleep(4000);
      const [caught, tally, live] = await Promise.all([before.stop(), during.stop(), liveness.stop()]);
      await postgres.thaw();
      const thawed = performance.now();
      await until(async () => (await read(service)) === 200, 10_000);
      recovery = Math.max(recovery, performance.now() - thawed);
      const after = await Promise.all(Array.from({ length: 20 }, () => read(service)));
      responses += tally.total;
      slowest = Math.max(slowest, caught.within(1), tally.within(1));
      alive = Math.max(alive, live.within(1));
      broken.push(
        ...violated(
          [caught.other(200, 503) > 0, `requests in progress: ${caught}`],
          [tally.other(503) > 0, `answered ${tally}`],
          [live.other(200) > 0, `liveness ${live}`],
          [after.some((status) => status !== 200), `afterwards ${after.join(' ')}`],
        ),
      );
    }
    broken.push(
      ...violated(
        [slowest > 2500, `response within ${slowest.toFixed(0)} ms`],
        [alive > 200, `liveness within ${alive.toFixed(0)} ms`],
        [recovery > 1000, `served again after ${recovery.toFixed(0)} ms`],
      ),
    );
    return {
      happened: `${times} times: ${responses} responses, the slowest after ${slowest.toFixed(0)} ms; liveness within ${alive.toFixed(0)} ms; served again after ${recovery.toFixed(0)} ms`,
      broken,
    };
  },
};
