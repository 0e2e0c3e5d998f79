import { randomUUID } from 'node:crypto';
import { Client } from 'pg';
import { sleep, until } from '../../../test/support/time';
import { ask } from '../ask';
import { Clients } from '../clients';
import { type Scenario, violated } from '../scenario';
import { DEVELOPER, KEYS } from '../store';
import { read } from '../traffic';

export const poolExhausted: Scenario = {
  name: 'pool-exhausted',
  fault: 'a table locked for 5 s: 40 writers use and wait for all connections of writes',
  promise: 'waiting writers get 503, readers a response within 1 s; all served within 1 s after the lock',
  control: 'no deadlines',
  long: true,
  async run({ lab, guarded }) {
    const { postgres, service } = await lab.started({
      DATABASE_POOL_SIZE: '4',
      without: guarded ? undefined : 'deadlines',
    });
    const holder = new Client({ connectionString: postgres.url });
    await holder.connect();
    await holder.query('BEGIN; LOCK TABLE collections');
    const form = { title: 'Waits' };
    // With an Idempotency-Key, a write is a transaction that waits on its connection.
    const writers = new Clients(40, (client, agent) =>
      ask(`${service.url}/collections`, {
        method: 'POST',
        key: KEYS[client],
        headers: { 'Idempotency-Key': randomUUID() },
        form,
        agent,
        timeout: 8000,
      }),
    );
    await sleep(500);
    const readers = new Clients(4, (_, agent) =>
      ask(`${service.url}/profile`, { key: DEVELOPER, agent, timeout: 8000 }),
    );
    await sleep(4500);
    const [fast, waited] = [readers.stop(), writers.stop()];
    await sleep(guarded ? 0 : 3000);
    const [tally, written] = guarded ? [await fast, await waited] : [undefined, undefined];
    await holder.query('COMMIT');
    await holder.end();
    const freed = performance.now();
    await until(async () => (await read(service)) === 200, 10_000);
    const back = performance.now() - freed;
    const [readerTally, writerTally] = [tally ?? (await fast), written ?? (await waited)];
    const after = await Promise.all(Array.from({ length: 20 }, () => read(service)));
    const slowest = readerTally.within(1);
    return {
      happened: `readers: ${readerTally}, within ${slowest.toFixed(0)} ms; writers: ${writerTally}; served again after ${back.toFixed(0)} ms`,
      broken: violated(
        [slowest > 1000, `readers got a response within ${slowest.toFixed(0)} ms`],
        [readerTally.other(200, 503) > 0, `readers: ${readerTally}`],
        [writerTally.other(503) > 0, `writers: ${writerTally}`],
        [back > 1000, `served again after ${back.toFixed(0)} ms`],
        [after.some((status) => status !== 200), `afterwards ${after.join(' ')}`],
      ),
    };
  },
};
