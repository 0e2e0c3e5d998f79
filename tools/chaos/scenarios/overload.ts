import type { Agent } from 'node:http';
import { sleep } from '../../../test/support/time';
import { type HttpResponse, ask, keptConnections } from '../ask';
import { Clients } from '../clients';
import { sendAtRate } from '../open-loop';
import { type Scenario, violated } from '../scenario';
import type { Service } from '../service';
import { APPLICATION } from '../store';

const AT_ONCE = 200;
const ALIVE_WITHIN = 200;
/** What the service may process at a time for one IP address, which gets three quarters of MAX_IN_FLIGHT. */
const PLACES = 12;
const MAX_IN_FLIGHT = Math.ceil((PLACES * 4) / 3);
/**
 * The latency each way between the service and its database: this is the bottleneck, and not the CPUs that generate the
 * load.
 */
const DISTANCE = 50;

export const overload: Scenario = {
  name: 'overload',
  fault: 'three times the load that the service can handle, with a distant database',
  promise: `goodput at least 85% of the best, the rest 503 within ${AT_ONCE} ms, liveness within ${ALIVE_WITHIN} ms`,
  control: 'MAX_IN_FLIGHT effectively unlimited',
  long: true,
  async run({ lab, guarded, quick }) {
    const seconds = quick ? 6 : 20;
    const postgres = await lab.postgres();
    await postgres.start();
    const line = await lab.proxy(postgres.url);
    line.delay = DISTANCE;
    const service = await lab.service(line.through(postgres.url), {
      DATABASE_POOL_SIZE: '8',
      MAX_IN_FLIGHT: guarded ? String(MAX_IN_FLIGHT) : '100000',
    });
    await service.start();
    await measureRate(service, 2);
    const best = await measureRate(service, seconds);
    const liveness = new Clients(1, () => ask(`${service.url}/health/live`, { timeout: 5000 }), {
      pause: 50,
    });
    const agent = keptConnections();
    const tally = await sendAtRate(3 * best, seconds, () => write(service, agent));
    agent.destroy();
    const alive = await liveness.stop();
    const goodput = tally.count(200) / seconds / best;
    const rejected = tally.within(0.95, 503);
    const slowest = alive.within(0.95, 200);
    return {
      happened: `best ${best.toFixed(0)} per second; goodput ${percent(goodput)} of it; 95% of ${tally.count(503)} rejections within ${rejected.toFixed(0)} ms; liveness within ${slowest.toFixed(0)} ms`,
      broken: violated(
        [goodput < 0.85, `goodput ${percent(goodput)}`],
        [rejected > AT_ONCE, `rejections within ${rejected.toFixed(0)} ms`],
        [slowest > ALIVE_WITHIN, `liveness within ${slowest.toFixed(0)} ms`],
        [alive.other(200) > 0, `liveness: ${alive}`],
        [tally.other(200, 503) > 0, `neither served nor rejected: ${tally}`],
      ),
    };
  },
};

/** A transaction of several round trips to the database on its own connection. None waits for another's lock. */
const write = (service: Service, agent: Agent): Promise<HttpResponse> =>
  ask(`${service.url}/oauth/device`, {
    method: 'POST',
    form: { client_id: APPLICATION, scope: 'profile:me' },
    agent,
    timeout: 10_000,
  });

/** Responses with 200 per second, with as many clients as the concurrency limit. */
async function measureRate(service: Service, seconds: number): Promise<number> {
  const clients = new Clients(PLACES, (_, agent) => write(service, agent));
  await sleep(seconds * 1000);
  return (await clients.stop()).count(200) / seconds;
}

const percent = (share: number) => `${(share * 100).toFixed(0)} %`;
