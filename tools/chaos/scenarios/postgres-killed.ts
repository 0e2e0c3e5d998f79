import { sleep, until } from '../../../test/support/time';
import type { Scenario } from '../scenario';
import { KEYS } from '../store';
import { violationsOf, Writers } from '../writers';

// Nothing writes the WAL for ten seconds: what was acknowledged in that time is only in memory.
const WITHOUT_SYNCHRONOUS_COMMIT = {
  synchronous_commit: 'off',
  wal_writer_delay: '10s',
  wal_writer_flush_after: '1GB',
  wal_buffers: '64MB',
  bgwriter_lru_maxpages: '0',
};

export const postgresKilled: Scenario = {
  name: 'postgres-killed',
  fault: 'PostgreSQL killed (kill -9, all its processes) under 32 writers',
  promise: 'no acknowledged write lost, none with an Idempotency-Key duplicated',
  control: 'synchronous_commit=off',
  async run({ lab, guarded, quick }) {
    const kills = quick ? 3 : guarded ? 20 : 5;
    const postgres = await lab.postgres(guarded ? {} : WITHOUT_SYNCHRONOUS_COMMIT);
    await postgres.start();
    const service = await lab.service(postgres.url);
    await service.start();
    const writers = new Writers(() => service.url, KEYS.slice(0, 32), { name: 'kill', idempotent: true });
    for (let i = 0; i < kills; i++) {
      const before = writers.count;
      await until(() => writers.count > before + 64, 30_000);
      await sleep(Math.random() * 300);
      await postgres.kill();
      await postgres.start();
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
