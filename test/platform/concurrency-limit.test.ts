import { setImmediate as nextTick } from 'node:timers/promises';
import * as fc from 'fast-check';
import { TestClock } from '../support/clock';
import { ConcurrencyLimit, type Limits, type Work } from '../../src/platform/limits/concurrency-limit';

type Client = Work['client'];

const client = (networks?: Client['networks']): Client => ({ queues: new Map(), networks });

/** A job that records its state. */
class Job implements Work {
  state: 'new' | 'running' | 'rejected' | 'ended' = 'new';

  constructor(
    readonly client: Client,
    private readonly limit: ConcurrencyLimit,
  ) {
    if (!limit.enter(this)) this.state = 'rejected';
  }

  begin(): void {
    this.state = 'running';
  }

  reject(): void {
    this.state = 'rejected';
  }

  end(): void {
    this.state = 'ended';
    this.limit.leave(this.client);
  }
}

const jobs = (count: number, of: Client, limit: ConcurrencyLimit) =>
  Array.from({ length: count }, () => new Job(of, limit));
const running = (all: Job[]) => all.filter(({ state }) => state === 'running').length;
const createLimit = (limits: Partial<Limits> = {}) =>
  new ConcurrencyLimit({ accepted: 100, each: 2, ...limits });

test("queues the rest of a client's work, first in, first out", async () => {
  const limit = createLimit();
  const all = jobs(4, client(), limit);
  expect(all.map(({ state }) => state)).toEqual(['running', 'running', 'new', 'new']);
  all[1]!.end();
  await nextTick();
  expect(all.map(({ state }) => state)).toEqual(['running', 'ended', 'running', 'new']);
  expect(limit.accepted).toBe(3);
});

test('does not delay another client by queued work', () => {
  const limit = createLimit();
  jobs(50, client(), limit);
  expect(running(jobs(3, client(), limit))).toBe(2);
});

test('alternates between clients', async () => {
  const limit = createLimit({ running: 1 });
  const [first, other] = [client(), client()];
  const all = [...jobs(3, first, limit), ...jobs(2, other, limit)];
  const order: number[] = [];
  for (let i = 0; i < all.length; i++) {
    const current = all.findIndex(({ state }) => state === 'running');
    order.push(current);
    all[current]!.end();
    await nextTick();
  }
  expect(order).toEqual([0, 1, 3, 2, 4]);
});

test('allows more work for a client while it is alone', async () => {
  const limit = createLimit({ soleClientLimit: 5 });
  const alone = jobs(9, client(), limit);
  expect(running(alone)).toBe(5);
  jobs(1, client(), limit);
  alone[0]!.end();
  await nextTick();
  expect(running(alone)).toBe(4);
});

test('a client is alone a second after its first request since those of others', async () => {
  const clock = new TestClock();
  clock.stop();
  const limit = new ConcurrencyLimit({ accepted: 100, each: 2, soleClientLimit: 5 }, clock);
  const [foreign] = jobs(1, client(), limit);
  const own = jobs(7, client(), limit);
  clock.advance(999);
  foreign!.end();
  await nextTick();
  expect(running(own)).toBe(2);
  clock.advance(1);
  own[0]!.end();
  await nextTick();
  expect(running(own)).toBe(5);
});

test('is stuck since the first rejection, until work begins or ends', async () => {
  const clock = new TestClock();
  clock.stop();
  const limit = new ConcurrencyLimit({ accepted: 1 }, clock);
  const [first] = jobs(1, client(), limit);
  expect(limit.stuckFor).toBe(0);
  jobs(1, client(), limit);
  clock.advance(700);
  jobs(1, client(), limit);
  clock.advance(300);
  expect(limit.stuckFor).toBe(1000);
  first!.end();
  await nextTick();
  expect(limit.stuckFor).toBe(0);
});

test('starts no more work in the tick in which other work ends', async () => {
  const limit = createLimit();
  const owner = client();
  const all = jobs(2, owner, limit);
  for (const one of all) one.end();
  const more = jobs(2, owner, limit);
  expect(running(more)).toBe(0);
  await nextTick();
  expect(running(more)).toBe(2);
});

test('rejects the newest work of the busiest client when the queue is full', () => {
  const limit = createLimit({ accepted: 10 });
  const flood = jobs(12, client(), limit);
  expect(flood.map(({ state }) => state).slice(9)).toEqual(['new', 'rejected', 'rejected']);
  const other = jobs(6, client(), limit);
  expect(other.map(({ state }) => state)).toEqual([
    ...Array(2).fill('running'),
    ...Array(3).fill('new'),
    'rejected',
  ]);
  expect(flood.filter(({ state }) => state === 'rejected')).toHaveLength(7);
  expect(limit.accepted).toBe(10);
});

test('cancels a wait', async () => {
  const limit = createLimit({ each: 1 });
  const owner = client();
  const [first] = jobs(1, owner, limit);
  const abort = new AbortController();
  const waiting = limit.run(owner, abort.signal, () => Promise.resolve('done'));
  const next = limit.run(owner, new AbortController().signal, () => Promise.resolve('next'));
  abort.abort();
  await expect(waiting).rejects.toMatchObject({ status: 503 });
  first!.end();
  expect(await next).toBe('next');
  await nextTick();
  expect(limit.accepted).toBe(0);
});

test('serves a client once per round, however often it has canceled all of its work', async () => {
  const limit = createLimit({ running: 1, each: 1 });
  const [holder, canceling, other] = [client(), client(), client()];
  const [first] = jobs(1, holder, limit);
  for (let i = 0; i < 5; i++) limit.cancel(new Job(canceling, limit));
  const all = [...jobs(3, canceling, limit), ...jobs(3, other, limit)];
  const order: string[] = [];
  first!.end();
  for (let i = 0; i < all.length; i++) {
    await nextTick();
    const current = all.find(({ state }) => state === 'running')!;
    order.push(current.client === other ? 'other' : 'canceling');
    current.end();
  }
  expect(order).toEqual(['canceling', 'other', 'canceling', 'other', 'canceling', 'other']);
});

test('forgets canceled work, and work that gave way to that of another client', () => {
  const limit = createLimit({ accepted: 3, running: 1 });
  const [holder, canceling, other] = [client(), client(), client()];
  jobs(1, holder, limit);
  for (let i = 0; i < 20_000; i++) limit.cancel(new Job(canceling, limit));
  expect(limit['roundRobin'].size).toBe(0);
  jobs(2, canceling, limit);
  jobs(2, other, limit);
  expect(limit['roundRobin'].size).toBe(2);
});

test('runs a multiple of the work of one client for the clients of a network', async () => {
  const limit = createLimit();
  const networks = [
    { client: client(), multiple: 2 },
    { client: client(), multiple: 40 },
  ];
  const inNetwork = Array.from({ length: 9 }, () => jobs(1, client(networks), limit)).flat();
  expect(running(inNetwork)).toBe(4);
  expect(running(jobs(3, client(), limit))).toBe(2);
  inNetwork[0]!.end();
  await nextTick();
  expect(running(inNetwork)).toBe(4);
  const wide = [{ client: client(), multiple: 40 }];
  expect(running(Array.from({ length: 90 }, () => jobs(1, client(wide), limit)).flat())).toBe(75);
});

test('holds its limits, alternates and runs all accepted work in any sequence', async () => {
  const step = fc.record({ who: fc.nat(3), what: fc.constantFrom('begin', 'begin', 'end', 'cancel') });
  await fc.assert(
    fc.asyncProperty(
      fc.integer({ min: 3, max: 9 }),
      fc.array(step, { maxLength: 60 }),
      async (total, steps) => {
        const limit = new ConcurrencyLimit({ accepted: 20, running: total, each: 3 });
        const networks = [{ client: client(), multiple: 1 }];
        const clients = [client(), client(), client(networks), client(networks)];
        const all = clients.map((): Job[] => []);
        const check = () => {
          const counts = all.map(running);
          expect(Math.max(...counts)).toBeLessThanOrEqual(3);
          expect(counts[2]! + counts[3]!).toBeLessThanOrEqual(3);
          expect(counts.reduce((a, b) => a + b)).toBeLessThanOrEqual(total);
          const waiting = all.filter((ofClient) => ofClient.some(({ state }) => state === 'new')).length;
          expect(limit['roundRobin'].size).toBe(waiting);
        };
        for (const { who, what } of steps) {
          if (what === 'end') all[who]!.find(({ state }) => state === 'running')?.end();
          else if (what === 'begin') all[who]!.push(new Job(clients[who]!, limit));
          else all[who]!.filter(({ state }) => state === 'new').forEach((waiting) => limit.cancel(waiting));
          check();
          if (what === 'end') await nextTick();
          check();
        }
        while (limit.accepted > 0) {
          for (const one of all.flat().filter(({ state }) => state === 'running')) one.end();
          await nextTick();
          check();
        }
        expect(all.flat().every(({ state }) => state === 'ended' || state === 'rejected')).toBe(true);
      },
    ),
    { numRuns: 100 },
  );
});
