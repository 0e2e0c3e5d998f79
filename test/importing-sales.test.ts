import * as fc from 'fast-check';
import {
  bothWays,
  game,
  imported,
  OPERATOR_TOKEN,
  problemsOf,
  purchase,
  salesAsKept,
  salesByDefinition,
  user,
} from './support/importing';
import { sql, useStore } from './support/store';

useStore({ OPERATOR_TOKEN, RATE_LIMIT: 'off' });

beforeEach(async () => {
  await sql('TRUNCATE users, games, purchases CASCADE');
});

bothWays('sales', () => {
  test('a bundle is split evenly, the rest to the lowest ids, and every change is followed', async () => {
    await imported(user(1), game(1), game(2), game(3));
    const kept = () => salesAsKept();
    await imported(purchase(1, { game_id: [3, 1, 2], amount: 500 }), purchase(2, { amount: 0 }));
    expect(await kept()).toMatchObject([
      { id: 1, purchases_count: 2, earnings: { USD: 167 } },
      { id: 2, purchases_count: 1, earnings: { USD: 167 } },
      { id: 3, purchases_count: 1, earnings: { USD: 166 } },
    ]);
    await imported(purchase(1, { game_id: [1, 2], currency: 'JPY' }), purchase(2, { status: 'refunded' }));
    expect(await kept()).toMatchObject([
      { id: 1, purchases_count: 1, earnings: { JPY: 250 } },
      { id: 2, purchases_count: 1, earnings: { JPY: 250 } },
      { id: 3, purchases_count: 0, earnings: null },
    ]);
  });

  test('games that no changed purchase touches are not written', async () => {
    await imported(user(1), game(1), game(2), purchase(1), purchase(2, { game_id: 2 }));
    const version = async () => (await sql('SELECT xmin::text, ctid::text FROM games WHERE id = 1'))[0];
    const before = await version();
    await imported(purchase(1), purchase(2, { game_id: 2, amount: 700 }));
    expect(await version()).toEqual(before);
  });

  test('days are those of the purchase in UTC, and a purchase takes its share along to another day', async () => {
    await imported(user(1), game(1), game(2));
    const days = async () => (await salesAsKept()).map((one) => one.days);
    await imported(
      purchase(1, { game_id: [1, 2], amount: 501, created_at: '2024-03-01T00:30:00+01:00' }),
      purchase(2, { amount: 0, created_at: '2024-02-29T23:59:59Z' }),
    );
    expect(await days()).toEqual([{ '2024-02-29 USD': [2, 251] }, { '2024-02-29 USD': [1, 250] }]);
    await imported({ type: 'purchase', id: 1, created_at: '2024-03-01T00:00:00Z' });
    expect(await days()).toEqual([
      { '2024-02-29 USD': [1, 0], '2024-03-01 USD': [1, 251] },
      { '2024-03-01 USD': [1, 250] },
    ]);
    await imported({ type: 'purchase', id: 1, status: 'refunded' });
    expect(await days()).toEqual([{ '2024-02-29 USD': [1, 0] }, null]);
  });

  test('however purchases come, change and go, counts, earnings and days are what they come to', async () => {
    const games = [1, 2, 3, 4];
    const amount = fc.integer({ min: 0, max: 1000 });
    const created_at = fc.constantFrom(
      '2024-02-28T23:59:59Z',
      '2024-02-29T00:00:00Z',
      '2024-02-29T23:30:00-01:00',
      undefined,
    );
    const whole = fc.record({
      game_id: fc.oneof(fc.constantFrom(...games), fc.subarray(games, { minLength: 1 })),
      amount,
      currency: fc.constantFrom('USD', 'EUR'),
      status: fc.constantFrom('complete', 'complete', 'refunded', 'pending', undefined),
      created_at,
    });
    const part = fc.oneof(
      fc.record({ status: fc.constantFrom('complete', 'refunded') }),
      fc.record({ amount }),
      fc.record({ created_at, game_id: fc.subarray(games, { minLength: 1 }) }),
      fc.constant({ deleted: true }),
    );
    const onePurchase = fc.record({ id: fc.integer({ min: 1, max: 6 }), whole, part });
    const imports = fc.uniqueArray(onePurchase, { selector: ({ id }) => id, minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(fc.array(imports, { minLength: 1, maxLength: 4 }), async (rounds) => {
        await sql('TRUNCATE users, games, purchases CASCADE');
        const statuses = new Map<number, string>();
        // In the first round the games are new, too.
        const store = [user(1), ...games.map((id) => game(id))];
        for (const [i, round] of rounds.entries()) {
          const records = round.map(({ id, whole, part }) => {
            const known = statuses.get(id);
            // What is new is whole, and what is complete must not be deleted. Half of the others are changed in part.
            const isPart = known && whole.amount % 2 === 0 && !('deleted' in part && known === 'complete');
            if (!isPart) {
              statuses.set(id, whole.status ?? known ?? 'complete');
              return purchase(id, whole);
            }
            if ('deleted' in part) statuses.delete(id);
            else if ('status' in part) statuses.set(id, part.status);
            return { type: 'purchase', id, ...part };
          });
          await imported(...(i === 0 ? store : []), ...records);
          expect(await salesAsKept()).toEqual(await salesByDefinition());
        }
      }),
      { numRuns: 25 },
    );
  }, 60_000);

  test('earnings beyond what a number holds', async () => {
    const amount = Number.MAX_SAFE_INTEGER;
    expect(await problemsOf(user(1), game(1), purchase(1, { amount }), purchase(2, { amount }))).toEqual([
      'game 1: earnings in USD would be more than 9007199254740991',
    ]);
  });
});
