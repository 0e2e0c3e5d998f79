import { sleep, until } from '../../../test/support/time';
import type { FaultyProxy } from '../../../test/support/proxy';
import type { Postgres, PostgresSettings } from '../postgres';
import type { Scenario } from '../scenario';
import type { Service } from '../service';
import { KEYS } from '../store';
import type { Protection } from '../without';
import { listViolations, Writers } from '../writers';

interface Running {
  postgres: Postgres;
  network: FaultyProxy;
  service: Service;
  writers: Writers;
}

interface Interruption extends Omit<Scenario, 'run'> {
  /** The number of repetitions: with the protection, as the control, and in a quick run. */
  times: [guarded: number, control: number, quick: number];
  writers: number;
  /** The control's settings of PostgreSQL. */
  settings?: PostgresSettings;
  without?: Protection;
  /** The writers of the control send no Idempotency-Key. */
  controlSendsNoKeys?: true;
  interrupt(running: Running): Promise<unknown>;
}

/**
 * Interrupts something repeatedly while writers continue, then compares their acknowledged writes with the database.
 */
const underWriters = ({ times, interrupt, ...scenario }: Interruption): Scenario => ({
  ...scenario,
  async run({ lab, guarded, quick }) {
    const postgres = await lab.postgres(guarded ? {} : scenario.settings);
    await postgres.start();
    const network = await lab.proxy(postgres.url);
    const without = guarded ? undefined : scenario.without;
    const service = await lab.service(network.through(postgres.url), { without });
    await service.start();
    const idempotent = guarded || !scenario.controlSendsNoKeys;
    const keys = KEYS.slice(0, scenario.writers);
    const writers = new Writers(() => service.url, keys, { name: scenario.name, idempotent });
    const count = times[quick ? 2 : guarded ? 0 : 1];
    for (let i = 0; i < count && service.running; i++)
      await interrupt({ postgres, network, service, writers });
    const { running } = service;
    if (!running) await service.start();
    await writers.stop();
    const report = await writers.compare(postgres.url);
    const { acknowledged, lost, doubled, retries } = report;
    return {
      happened: `${count} times, ${acknowledged} writes acknowledged, ${retries} retries: ${lost} lost, ${doubled} doubled`,
      broken: [
        ...(running ? [] : ['the process ended']),
        ...(acknowledged > 0 ? [] : ['no write succeeded']),
        ...listViolations(report),
      ],
    };
  },
});

const NOTHING_LOST = 'no acknowledged write lost, none with an Idempotency-Key duplicated';

export const WRITERS_INTERRUPTED: Scenario[] = [
  underWriters({
    name: 'postgres-killed',
    fault: 'PostgreSQL killed (kill -9, all its processes) under 32 writers',
    promise: NOTHING_LOST,
    control: 'synchronous_commit=off',
    times: [20, 5, 3],
    writers: 32,
    // Nothing writes the WAL for ten seconds: what was acknowledged in that time is only in memory.
    settings: {
      synchronous_commit: 'off',
      wal_writer_delay: '10s',
      wal_writer_flush_after: '1GB',
      wal_buffers: '64MB',
      bgwriter_lru_maxpages: '0',
    },
    async interrupt({ postgres, writers }) {
      const before = writers.count;
      await until(() => writers.count > before + 64, 30_000);
      await sleep(Math.random() * 300);
      await postgres.kill();
      await postgres.start();
    },
  }),
  underWriters({
    name: 'connections-reset',
    fault: 'connections to PostgreSQL reset in the middle of transactions, under 32 writers',
    promise: 'those requests get 503, no partial or duplicate writes, the process survives',
    control: 'writers without Idempotency-Key',
    times: [100, 100, 20],
    writers: 32,
    controlSendsNoKeys: true,
    async interrupt({ network }) {
      await sleep(50 + Math.random() * 100);
      network.reset();
    },
  }),
  underWriters({
    name: 'connections-terminated',
    fault: 'all connections to PostgreSQL terminated once a second, under 16 writers',
    promise: 'the process survives, rejections are 503, no acknowledged write lost or duplicated',
    control: 'no error listeners: the process ends',
    // In more rounds, fast machines would reach the limit of 1,000 collections per user.
    times: [8, 8, 8],
    writers: 16,
    without: 'error listeners',
    async interrupt({ postgres }) {
      await sleep(1000);
      await postgres.terminateConnections();
    },
  }),
  underWriters({
    name: 'service-killed',
    fault: 'the service killed (kill -9) under 32 writers',
    promise: NOTHING_LOST,
    control: 'writers without Idempotency-Key',
    times: [50, 15, 3],
    writers: 32,
    controlSendsNoKeys: true,
    async interrupt({ service }) {
      await sleep(100 + Math.random() * 300);
      await service.kill();
      await service.start();
    },
  }),
];
