import * as fc from 'fast-check';
import { Capacity, Sender } from '../../src/platform/http/senders';

/** How many of a capacity a sender gets until it is refused. */
function fill(capacity: Capacity, sender: Sender): number {
  let taken = 0;
  while (capacity.take(sender)) taken++;
  return taken;
}

test('one address alone gets three quarters', () => {
  const capacity = new Capacity('slots', 100);
  expect(fill(capacity, new Sender('192.0.2.1'))).toBe(75);
  expect(capacity.refusals).toBe(1);
});

test('the rest is for others, an equal part for each and one more', () => {
  const capacity = new Capacity('slots', 100);
  fill(capacity, new Sender('192.0.2.1'));
  expect(fill(capacity, new Sender('192.0.2.1'))).toBe(25);
  const crowded = new Capacity('slots', 100);
  fill(crowded, new Sender('192.0.2.1'));
  const others = Array.from({ length: 9 }, () => new Sender('192.0.2.1'));
  for (const other of others) expect(crowded.take(other)).toBe(true);
  // One hundred in parts for eleven.
  expect(others.map((other) => fill(crowded, other))).toEqual([8, 8, 0, 0, 0, 0, 0, 0, 0]);
});

test('what many addresses want is given until nothing is left', () => {
  const capacity = new Capacity('slots', 40);
  for (let i = 0; i < 40; i++) expect(capacity.take(new Sender('192.0.2.1'))).toBe(true);
  expect(capacity.take(new Sender('192.0.2.1'))).toBe(false);
});

test.each([1, 2, 3])('a capacity of %i serves somebody', (total) => {
  expect(new Capacity('slots', total).take(new Sender('192.0.2.1'))).toBe(true);
});

test('whatever is taken and given back: nobody has more than there is, and one address leaves room for another', () => {
  const step = fc.record({ who: fc.nat(3), amount: fc.integer({ min: 1, max: 9 }), back: fc.boolean() });
  fc.assert(
    fc.property(fc.integer({ min: 20, max: 60 }), fc.array(step, { maxLength: 200 }), (total, steps) => {
      const capacity = new Capacity('uploads', total);
      const senders = Array.from({ length: 4 }, () => new Sender('192.0.2.1'));
      const held = senders.map((): number[] => []);
      for (const { who, amount, back } of steps) {
        if (!back && capacity.take(senders[who]!, amount)) held[who]!.push(amount);
        else if (back && held[who]!.length > 0) capacity.giveBack(senders[who]!, held[who]!.pop());
        const sums = held.map((amounts) => amounts.reduce((sum, one) => sum + one, 0));
        const used = sums.reduce((sum, one) => sum + one, 0);
        expect([capacity.used, ...senders.map(({ uploads }) => uploads)]).toEqual([used, ...sums]);
        expect(used).toBeLessThanOrEqual(total);
        for (const sum of sums) expect(sum).toBeLessThanOrEqual(total * 0.75);
      }
      held.forEach((amounts, i) => amounts.forEach((amount) => capacity.giveBack(senders[i]!, amount)));
      expect(capacity.used).toBe(0);
      expect(fill(capacity, new Sender('192.0.2.1'))).toBe(Math.floor(total * 0.75));
    }),
  );
});
