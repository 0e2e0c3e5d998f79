import { moment } from '../../../test/support/time';
import { Ledger } from '../ledger';
import { type Scenario, which } from '../scenario';
import { writeKinds } from '../write-kinds';

export const connectionsTerminated: Scenario = {
  name: 'connections-terminated',
  fault: 'all connections to PostgreSQL terminated once a second, under every kind of write',
  promise: 'the process lives, refusals are 503, no acknowledged write lost',
  control: 'no error listeners: the process ends',
  async run({ lab, guarded, quick }) {
    const kills = quick || !guarded ? 10 : 60;
    const postgres = await lab.postgres();
    await postgres.start();
    const service = await lab.service(postgres.url, { without: guarded ? undefined : 'error listeners' });
    await service.start();
    const ledgers = writeKinds(service, lab.operator_token).map((kind) => new Ledger(kind));
    let ended = 0;
    for (let i = 0; i < kills && service.running; i++) {
      await moment(1000);
      ended += await postgres.terminateConnections();
    }
    const running = service.running;
    await moment(1000);
    if (!running) await service.start();
    const lost = await Promise.all(ledgers.map((ledger) => ledger.stop()));
    const all = lost.reduce((sum, each) => sum + each, 0);
    const unexpected = ledgers.flatMap((ledger) => ledger.unexpected);
    return {
      happened: `${ended} connections terminated; acknowledged ${ledgers.join(', ')}; ${all} lost`,
      broken: which(
        [!running, 'the process ended'],
        [all > 0, `${all} acknowledged writes lost`],
        [unexpected.length > 0, `${unexpected.length} other refusals, such as ${unexpected[0]}`],
        [ledgers.some(({ isEmpty }) => isEmpty), `a kind of write never succeeded`],
      ),
    };
  },
};
