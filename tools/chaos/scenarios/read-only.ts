import { sleep } from '../../../test/support/time';
import { Clients } from '../clients';
import { type Scenario, violated } from '../scenario';
import { readOrWrite } from '../traffic';

export const readOnly: Scenario = {
  name: 'read-only',
  fault: 'the database becomes read-only, under 30 clients',
  promise: 'reads 200, writes 503; all 200 when it accepts writes again',
  control: 'no database error mapping',
  long: true,
  async run({ lab, guarded }) {
    const { postgres, service } = await lab.started({
      without: guarded ? undefined : 'database error mapping',
    });
    const traffic = async () => {
      const ask = readOrWrite(service, { timeout: 5000 });
      const reads = new Clients(20, (client, agent) => ask(client * 3 + 1, agent), { pause: 10 });
      const writes = new Clients(10, (client, agent) => ask(client * 3, agent), { pause: 10 });
      await sleep(2000);
      return { reads: await reads.stop(), writes: await writes.stop() };
    };
    const set = async (value: string) => {
      await postgres.query(`ALTER SYSTEM SET default_transaction_read_only = ${value}`);
      await postgres.query('SELECT pg_reload_conf()');
      await sleep(500);
    };
    await set('on');
    const during = await traffic();
    await set('off');
    const after = await traffic();
    return {
      happened: `reads: ${during.reads}; writes: ${during.writes}; afterwards ${after.reads}, ${after.writes}`,
      broken: violated(
        [during.reads.other(200) > 0, `reads: ${during.reads}`],
        [during.writes.other(503) > 0, `writes: ${during.writes}`],
        [after.reads.other(200) + after.writes.other(200) > 0, `afterwards ${after.reads}, ${after.writes}`],
      ),
    };
  },
};
