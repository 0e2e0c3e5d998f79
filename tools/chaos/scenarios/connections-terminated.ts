import { sleep } from '../../../test/support/time';
import { type Scenario, violated } from '../scenario';
import { KEYS } from '../store';
import { violationsOf, Writers } from '../writers';

export const connectionsTerminated: Scenario = {
  name: 'connections-terminated',
  fault: 'all connections to PostgreSQL terminated once a second, under 16 writers',
  promise: 'the process survives, rejections are 503, no acknowledged write lost or duplicated',
  control: 'no error listeners: the process ends',
  async run({ lab, guarded, quick }) {
    const kills = quick || !guarded ? 10 : 60;
    const postgres = await lab.postgres();
    await postgres.start();
    const service = await lab.service(postgres.url, { without: guarded ? undefined : 'error listeners' });
    await service.start();
    const how = { name: 'terminated', idempotent: true };
    const writers = new Writers(() => service.url, KEYS.slice(0, 16), how);
    let ended = 0;
    for (let i = 0; i < kills && service.running; i++) {
      await sleep(1000);
      ended += await postgres.terminateConnections();
    }
    const { running } = service;
    if (!running) await service.start();
    await writers.stop();
    const reckoning = await writers.compare(postgres.url);
    return {
      happened: `${ended} connections terminated; ${reckoning.acknowledged} writes acknowledged, ${reckoning.lost} lost`,
      broken: [
        ...violated([!running, 'the process ended'], [reckoning.acknowledged === 0, 'no write succeeded']),
        ...violationsOf(reckoning),
      ],
    };
  },
};
