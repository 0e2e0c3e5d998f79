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
    expect(await kept()).toEqual([
      { id: 1, purchases_count: 2, earnings: { USD: 167 } },
      { id: 2, purchases_count: 1, earnings: { USD: 167 } },
      { id: 3, purchases_count: 1, earnings: { USD: 166 } },
    ]);
    await imported(purchase(1, { game_id: [1, 2], currency: 'JPY' }), purchase(2, { status: 'refunded' }));
    expect(await kept()).toEqual([
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

  test('however purchases come and change, they are what the purchases come to', async () => {
    const games = [1, 2, 3, 4];
    const onePurchase = fc.record({
      id: fc.integer({ min: 1, max: 6 }),
      game_id: fc.oneof(fc.constantFrom(...games), fc.subarray(games, { minLength: 1 })),
      amount: fc.integer({ min: 0, max: 1000 }),
      currency: fc.constantFrom('USD', 'EUR'),
      status: fc.constantFrom('complete', 'complete', 'refunded', 'pending', undefined),
    });
    const imports = fc.uniqueArray(onePurchase, { selector: ({ id }) => id, minLength: 1, maxLength: 6 });
    await fc.assert(
      fc.asyncProperty(fc.array(imports, { minLength: 1, maxLength: 4 }), async (rounds) => {
        await sql('TRUNCATE users, games, purchases CASCADE');
        // In the first round the games are new, too.
        const store = [user(1), ...games.map((id) => game(id))];
        for (const [i, round] of rounds.entries()) {
          await imported(...(i === 0 ? store : []), ...round.map((fields) => purchase(fields.id, fields)));
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
