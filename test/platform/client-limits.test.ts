import * as fc from 'fast-check';
import { Client, Clients, Quota } from '../../src/platform/limits/client-limits';

/** The share of a quota that a client gets before it is rejected. */
function fill(quota: Quota, client: Client): number {
  let taken = 0;
  while (quota.take(client)) taken++;
  return taken;
}

test('an IPv6 client belongs to the networks of a household and a site, and an IPv4 client to none', () => {
  const clients = new Clients();
  const readNetworks = (address: string) =>
    clients.of(address).networks?.map(({ client }) => (client as Client).network);
  expect(readNetworks('2001:db8:0:12ab::1')).toEqual(['2001:db8:0:1200::/56', '2001:db8:0::/48']);
  expect(readNetworks('192.0.2.1')).toEqual([]);
  expect(readNetworks('::ffff:192.0.2.1')).toEqual([]);
  const [household] = clients.of('2001:db8:0:1234::1').networks!;
  expect(clients.of('2001:db8:0:12ab::1').networks![0]!.client).toBe(household!.client);
});

test('a network stays the same while one of its clients has a connection', () => {
  const clients = new Clients();
  const connected = clients.of('2001:db8:0:1234::1');
  new Quota(10).take(connected);
  clients.forgetIdle();
  expect(clients.of('2001:db8:0:12ab::1').networks![0]!.client).toBe(connected.networks![0]!.client);
});

test('grants three quarters to a single IP address', () => {
  const quota = new Quota(100);
  expect(fill(quota, new Client('192.0.2.1'))).toBe(75);
  expect(quota.rejected).toBe(1);
});

test('divides the rest equally among other clients and one more', () => {
  const quota = new Quota(100);
  fill(quota, new Client('192.0.2.1'));
  expect(fill(quota, new Client('192.0.2.1'))).toBe(25);
  const crowded = new Quota(100);
  fill(crowded, new Client('192.0.2.1'));
  const others = Array.from({ length: 9 }, () => new Client('192.0.2.1'));
  for (const other of others) expect(crowded.take(other)).toBe(true);
  // The share of each client is one hundred divided by eleven.
  expect(others.map((other) => fill(crowded, other))).toEqual([8, 8, 0, 0, 0, 0, 0, 0, 0]);
});

test('grants many IP addresses what they request until nothing is left', () => {
  const quota = new Quota(40);
  for (let i = 0; i < 40; i++) expect(quota.take(new Client('192.0.2.1'))).toBe(true);
  expect(quota.take(new Client('192.0.2.1'))).toBe(false);
});

test.each([1, 2, 3])('a quota of %i accepts a client', (total) => {
  expect(new Quota(total).take(new Client('192.0.2.1'))).toBe(true);
});

test('never exceeds the total, and one IP address leaves a share for another, in any sequence', () => {
  const step = fc.record({ who: fc.nat(3), amount: fc.integer({ min: 1, max: 9 }), back: fc.boolean() });
  fc.assert(
    fc.property(fc.integer({ min: 20, max: 60 }), fc.array(step, { maxLength: 200 }), (total, steps) => {
      const quota = new Quota(total);
      const clients = Array.from({ length: 4 }, () => new Client('192.0.2.1'));
      const held = clients.map((): number[] => []);
      for (const { who, amount, back } of steps) {
        if (!back && quota.take(clients[who]!, amount)) held[who]!.push(amount);
        else if (back && held[who]!.length > 0) quota.release(clients[who]!, held[who]!.pop());
        const sums = held.map((amounts) => amounts.reduce((sum, one) => sum + one, 0));
        const used = sums.reduce((sum, one) => sum + one, 0);
        expect([quota.used, ...clients.map((client) => client.used.get(quota) ?? 0)]).toEqual([
          used,
          ...sums,
        ]);
        expect(used).toBeLessThanOrEqual(total);
        for (const sum of sums) expect(sum).toBeLessThanOrEqual(total * 0.75);
      }
      held.forEach((amounts, i) => amounts.forEach((amount) => quota.release(clients[i]!, amount)));
      expect(quota.used).toBe(0);
      expect(fill(quota, new Client('192.0.2.1'))).toBe(Math.floor(total * 0.75));
    }),
  );
});
