import * as fc from 'fast-check';
import {
  importDirectly,
  importLines,
  OPERATOR_TOKEN,
  importErrors,
  storedSales,
  expectedSales,
  sendImport,
  wrongAccounts,
  wrongBuyers,
} from '../support/importing';
import { game, purchase, user } from '../support/records';
import { untilBlocked, holdLocks } from '../support/locks';
import { useStore } from '../support/app';
import { type HttpResponse, failure, send as ask } from '../support/http';
import { sql } from '../support/sql';

useStore({ OPERATOR_TOKEN, RATE_LIMIT: 'off' });

const RUNS = 4;

beforeEach(async () => {
  await sql('TRUNCATE users, games, purchases CASCADE');
});

describe('sales', () => {
  test('splits a bundle evenly, with the remainder to the lowest IDs, and follows every change', async () => {
    await importLines(user(1), game(1), game(2), game(3));
    const kept = () => storedSales();
    await importLines(purchase(1, { game_id: [3, 1, 2], amount: 500 }), purchase(2, { amount: 0 }));
    expect(await kept()).toMatchObject([
      { id: 1, purchases_count: 2, earnings: { USD: 167 } },
      { id: 2, purchases_count: 1, earnings: { USD: 167 } },
      { id: 3, purchases_count: 1, earnings: { USD: 166 } },
    ]);
    await importLines(purchase(1, { game_id: [1, 2], currency: 'JPY' }), purchase(2, { status: 'refunded' }));
    expect(await kept()).toMatchObject([
      { id: 1, purchases_count: 1, earnings: { JPY: 250 } },
      { id: 2, purchases_count: 1, earnings: { JPY: 250 } },
      { id: 3, purchases_count: 0, earnings: null },
    ]);
  });

  test('does not write games whose count is unchanged', async () => {
    await importLines(user(1), game(1), game(2), purchase(1), purchase(2, { game_id: 2 }));
    const version = () => sql('SELECT id, xmin::text, ctid::text FROM games ORDER BY id');
    const before = await version();
    await importLines(purchase(1), purchase(2, { game_id: 2, amount: 700 }));
    expect(await version()).toEqual(before);
  });

  test("assigns days and months in UTC and moves a purchase's share along with its date", async () => {
    await importLines(user(1), game(1), game(2));
    const periods = async () => (await storedSales()).map((one) => one.periods);
    await importLines(
      purchase(1, { game_id: [1, 2], amount: 501, created_at: '2024-03-01T00:30:00+01:00' }),
      purchase(2, { amount: 0, created_at: '2024-02-28T23:59:59Z' }),
    );
    expect(await periods()).toEqual([
      { 'day 2024-02-28 USD': [1, 0], 'day 2024-02-29 USD': [1, 251], 'month 2024-02-01 USD': [2, 251] },
      { 'day 2024-02-29 USD': [1, 250], 'month 2024-02-01 USD': [1, 250] },
    ]);
    await importLines({ type: 'purchase', id: 1, created_at: '2024-03-01T00:00:00Z' });
    expect(await periods()).toEqual([
      {
        'day 2024-02-28 USD': [1, 0],
        'day 2024-03-01 USD': [1, 251],
        'month 2024-02-01 USD': [1, 0],
        'month 2024-03-01 USD': [1, 251],
      },
      { 'day 2024-03-01 USD': [1, 250], 'month 2024-03-01 USD': [1, 250] },
    ]);
    await importLines({ type: 'purchase', id: 1, status: 'refunded' });
    expect(await periods()).toEqual([{ 'day 2024-02-28 USD': [1, 0], 'month 2024-02-01 USD': [1, 0] }, null]);
    // One free purchase less, and one that is more expensive than before.
    await importLines(purchase(3, { amount: 300, created_at: '2024-02-28T00:00:00Z' }));
    await importLines(
      { type: 'purchase', id: 2, status: 'refunded' },
      { type: 'purchase', id: 3, amount: 301 },
    );
    expect(await periods()).toEqual([
      { 'day 2024-02-28 USD': [1, 301], 'month 2024-02-01 USD': [1, 301] },
      null,
    ]);
    await importLines({ type: 'purchase', id: 3, amount: 0 });
    await importLines({ type: 'purchase', id: 3, status: 'refunded' });
    expect(await periods()).toEqual([null, null]);
  });

  test('counts, earnings, days and months match the purchases after any sequence of changes', async () => {
    const games = [1, 2, 3, 4];
    const amount = fc.integer({ min: 0, max: 1000 });
    const created_at = fc.constantFrom(
      '2024-02-28T23:59:59Z',
      '2024-02-29T00:00:00Z',
      '2024-02-29T23:30:00-01:00',
      '2024-03-01T12:00:00Z',
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
            // A new purchase has all fields, and a complete one can't be deleted. Half of the other changes are
            // partial.
            const isPart = known && whole.amount % 2 === 0 && !('deleted' in part && known === 'complete');
            if (!isPart) {
              statuses.set(id, whole.status ?? known ?? 'complete');
              return purchase(id, whole);
            }
            if ('deleted' in part) statuses.delete(id);
            else if ('status' in part) statuses.set(id, part.status);
            return { type: 'purchase', id, ...part };
          });
          await importLines(...(i === 0 ? store : []), ...records);
          expect(await storedSales()).toEqual(await expectedSales());
        }
      }),
      { numRuns: 25 },
    );
  });

  test('earnings beyond the range of a number', async () => {
    const amount = Number.MAX_SAFE_INTEGER;
    expect(await importErrors(user(1), game(1), purchase(1, { amount }), purchase(2, { amount }))).toEqual([
      'line 3: game 1: earnings in USD would be more than 9007199254740991',
    ]);
    await importLines(user(1), game(1), purchase(1, { amount }));
    expect(await importErrors(purchase(2, { amount: 1 }))).toEqual([
      'line 1: game 1: earnings in USD would be more than 9007199254740991',
    ]);
    await importLines(purchase(2, { amount: 1, currency: 'EUR' }), purchase(3, { amount: 0 }));
  });
});

describe('concurrent clients', () => {
  const GAMES = [1, 2, 3, 4, 5];
  const GIVEN_BY_ALL = [1, 2, 3];
  const fields = {
    game_id: fc.oneof(fc.constantFrom(...GAMES), fc.subarray(GAMES, { minLength: 1 })),
    amount: fc.integer({ min: 0, max: 1000 }),
    currency: fc.constantFrom('USD', 'EUR'),
    status: fc.constantFrom('complete', 'complete', 'refunded', 'pending'),
    // The time is another day, and in another month.
    created_at: fc.constantFrom('2024-02-28T23:59:59Z', '2024-02-29T00:00:00Z', '2024-03-01T00:00:00Z'),
    user_id: fc.constantFrom(1, 2, null),
    with_key: fc.boolean(),
  };
  const state = fc.record(fields);
  const step = fc.record({
    kind: fc.constantFrom(
      ...(['whole', 'whole', 'part', 'reference', 'reference', 'sell', 'sell', 'refund', 'delete'] as const),
      ...(['shared', 'game', 'wrong', 'over'] as const),
    ),
    slot: fc.integer({ min: 0, max: 3 }),
    state,
    part: fc.record(fields, { requiredKeys: [] }),
  });
  type Step = typeof step extends fc.Arbitrary<infer T> ? T : never;
  type State = Step['state'];
  const senders = fc.array(fc.array(step, { minLength: 1, maxLength: 8 }), { minLength: 4, maxLength: 6 });

  /** A purchase in its expected final state, with its games and whether their keys are revoked. */
  type Model = Omit<State, 'with_key'> & { keys: Record<number, boolean> };

  function changed(model: Model | undefined, { with_key, ...change }: Partial<State>): Model {
    const { keys, ...rest } = { keys: {}, ...model, ...change } as Model;
    const made = with_key && rest.status === 'complete' ? [rest.game_id].flat() : [];
    return { ...rest, keys: { ...Object.fromEntries(made.map((game) => [game, false])), ...keys } };
  }

  /** Retries requests that were rejected temporarily. */
  async function again(ask: () => Promise<HttpResponse>) {
    for (;;) {
      const { status, body } = await ask();
      if (status !== 503) return { status, body };
    }
  }
  const send = (...lines: object[]) => again(() => sendImport(lines));
  const post = (path: string, parameters: object) =>
    again(() =>
      ask('POST', path, {
        headers: { authorization: `Bearer ${OPERATOR_TOKEN}`, 'content-type': 'application/json' },
        body: JSON.stringify(parameters),
      }),
    );

  /** A client that waits for each response; returns the expected final state of its own purchases. */
  async function runSender(sender: number, steps: Step[]) {
    const models = new Map<string, Model>();
    const right = async (response: Promise<HttpResponse>) =>
      expect(await response).toMatchObject({ status: 200 });
    const refund = async (name: string) => {
      const [row] = await sql<{ id: number }>(
        `SELECT id FROM purchases p LEFT JOIN purchase_references r ON r.purchase_id = p.id
         WHERE coalesce(reference, id::text) = $1`,
        [name],
      );
      await right(post(`/operator/purchases/${row!.id}/refund`, {}));
      const model = models.get(name)!;
      const keys = Object.fromEntries(Object.keys(model.keys).map((game) => [game, true]));
      models.set(name, { ...model, status: 'refunded', keys });
    };
    for (const { kind, slot, state, part } of steps) {
      const id = 100 * (sender + 1) + slot;
      const reference = `sale ${sender} ${slot}`;
      const [byId, sold] = [models.get(String(id)), models.get(reference)];
      if (kind === 'whole') {
        await right(send(purchase(id, state)));
        models.set(String(id), changed(byId, state));
      } else if (kind === 'part' && byId) {
        await right(send({ type: 'purchase', id, ...part }));
        models.set(String(id), changed(byId, part));
      } else if (kind === 'reference') {
        await right(
          send(
            sold
              ? { type: 'purchase', reference, ...part }
              : { ...purchase(0, state), id: undefined, reference },
          ),
        );
        models.set(reference, changed(sold, sold ? part : state));
      } else if (kind === 'sell' && !sold) {
        const { status: _, user_id, ...rest } = state;
        const sale = { ...rest, reference, email: 'buyer@example.com', ...(user_id !== null && { user_id }) };
        await right(post('/operator/purchases', sale));
        models.set(reference, changed(undefined, { ...state, status: 'complete' }));
      } else if (kind === 'refund' && sold) await refund(reference);
      else if (kind === 'delete' && byId) {
        await refund(String(id));
        await right(send({ type: 'purchase', id, deleted: true }));
        models.delete(String(id));
      } else if (kind === 'shared') await right(send(purchase(GIVEN_BY_ALL[slot % 3]!, state)));
      else if (kind === 'game') await right(send({ type: 'game', id: GAMES[slot]!, title: `By ${sender}` }));
      else if (kind === 'over' && sold) {
        const [{ id }] = (await sql(
          `SELECT purchase_id AS id FROM purchase_references WHERE reference = $1`,
          [reference],
        )) as [{ id: number }];
        // The source's own purchase, whose ID the service has assigned to this one.
        expect(await send(purchase(id, { ...state, email: 'other@example.com' }))).toEqual(
          failure(400, `line 1: purchase ${id}: was created by this service for another buyer or game`),
        );
      } else if (kind === 'wrong')
        expect(await send(purchase(id, { ...state, game_id: 99 }))).toEqual(
          failure(400, `line 1: purchase ${id}: game 99 does not exist`),
        );
    }
    return models;
  }

  test('get their own responses and exact totals, with large imports in between', async () => {
    await fc.assert(
      fc.asyncProperty(senders, state, async (all, given) => {
        await sql('TRUNCATE users, games, purchases CASCADE');
        // IDs that the service assigns must not collide with those of the test.
        await sql(`SELECT setval('purchases_id_seq', greatest(last_value, 10000)) FROM purchases_id_seq`);
        await importLines(user(1), user(2), ...GAMES.map((id) => game(id)));
        const large = async () => {
          for (const title of ['first', 'second'])
            await importDirectly([
              ...GAMES.toReversed().map((id) => game(id, { title })),
              ...[...GIVEN_BY_ALL, 4].map((id) => purchase(id, given)),
            ]);
        };
        const [models] = await Promise.all([
          Promise.all(all.map((steps, sender) => runSender(sender, steps))),
          large(),
        ]);
        expect(await storedSales()).toEqual(await expectedSales());
        expect(await wrongBuyers()).toEqual([]);
        expect(await wrongAccounts()).toEqual([]);
        const stored = await sql<{ name: string }>(
          `SELECT coalesce(reference, id::text) AS name, amount, currency, status, user_id,
             to_char(created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS created_at,
             ARRAY(SELECT game_id FROM purchase_games WHERE purchase_id = p.id ORDER BY game_id) AS game_id,
             ARRAY(SELECT (game_id || ' ' || (revoked_at IS NOT NULL)) FROM download_keys WHERE purchase_id = p.id ORDER BY game_id) AS keys
           FROM purchases p LEFT JOIN purchase_references r ON r.purchase_id = p.id WHERE id >= 100`,
        );
        const expected = models.flatMap((model) =>
          [...model].map(([name, { game_id, keys, ...rest }]) => ({
            ...rest,
            name,
            game_id: [game_id].flat(),
            keys: Object.entries(keys).map(([game, revoked]) => `${game} ${revoked}`),
          })),
        );
        const byName = (a: { name: string }, b: { name: string }) => (a.name < b.name ? -1 : 1);
        expect(stored.sort(byName)).toEqual(expected.sort(byName));
      }),
      { numRuns: RUNS, endOnFailure: true },
    );
  });

  test('write the same record once', async () => {
    await importLines(user(1), game(1));
    const responses = await Promise.all(
      Array.from({ length: 20 }, (_, i) => send(purchase(1, { amount: 100 + i }))),
    );
    expect(responses.map(({ status }) => status)).toEqual(responses.map(() => 200));
    const made = responses.map(
      ({ body }) => (body as { types: { purchases: { new: number } } }).types.purchases.new,
    );
    expect(made.filter((count) => count === 1)).toHaveLength(1);
    expect(await storedSales()).toEqual(await expectedSales());
  });

  test('cannot swap names between requests', async () => {
    await importLines(user(1, { username: 'one' }), user(2, { username: 'two' }));
    const responses = await Promise.all([
      send({ type: 'user', id: 1, username: 'two' }),
      send({ type: 'user', id: 2, username: 'one' }),
    ]);
    expect(responses.map(({ status }) => status)).toEqual([400, 400]);
  });

  test('can sell a game while a large import writes another', async () => {
    await importLines(user(1), game(1), game(2));
    const { commit } = await holdLocks(`UPDATE games SET title = 'held' WHERE id = 1`);
    const behind = sendImport([purchase(1)]);
    await untilBlocked();
    // The game is still locked.
    expect((await sendImport([purchase(2, { game_id: 2 })])).status).toBe(200);
    await commit();
    expect([200, 503]).toContain((await behind).status);
    expect(await storedSales()).toEqual(await expectedSales());
  });
});
