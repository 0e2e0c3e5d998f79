import { setTimeout as sleep } from 'node:timers/promises';
import { Client } from 'pg';
import {
  bothWays,
  game,
  importDirectly,
  imported,
  OPERATOR_TOKEN,
  purchase,
  salesAsKept,
  salesByDefinition,
  sendImport,
  sendSmall,
  user,
} from './support/importing';
import { databaseUrl, ok, sql, useStore } from './support/store';
import { until } from './support/time';

useStore({ OPERATOR_TOKEN, RATE_LIMIT: 'off' });

beforeEach(async () => {
  await sql('TRUNCATE users, games, purchases, download_keys, collections CASCADE');
  await imported(user(1), game(1));
});

const holders: Client[] = [];
afterEach(async () => void (await Promise.all(holders.splice(0).map((holder) => holder.end()))));

/** Holds what the statements lock, until it is released. */
async function hold(statements: string) {
  const holder = new Client({ connectionString: databaseUrl() });
  holders.push(holder);
  await holder.connect();
  await holder.query(`BEGIN; ${statements}`);
  return { release: () => holder.query('ROLLBACK'), commit: () => holder.query('COMMIT') };
}

/** Until so many transactions wait for a lock. */
const blocked = (count = 1) =>
  until(async () => {
    const waiting = await sql(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    return waiting.length >= count;
  });

const key = { type: 'download_key', id: 1, key: 'a-key', game_id: 1 };
const summaryOf = (...summary: string[]) => ok(expect.objectContaining({ summary }));

/** Users are looked for before purchases are, and keys behind them. */
const holdUser = () => hold('SELECT FROM users WHERE id = 1 FOR UPDATE');
const holdKey = () => hold('SELECT FROM download_keys WHERE id = 1 FOR UPDATE');
const otherUser = user(1, { gamer: false });
const otherKey = { ...key, downloads: 5 };

bothWays('a purchase that others write while an import runs', () => {
  afterEach(async () => expect(await salesAsKept()).toEqual(await salesByDefinition()));

  test('before it is looked for, is one sale', async () => {
    const { release } = await holdUser();
    const answer = sendImport([otherUser, purchase(1)]);
    await blocked();
    await sendSmall([purchase(1)]);
    await release();
    expect(await answer).toEqual(
      summaryOf('users 0 new, 1 changed, 0 unchanged', 'purchases 0 new, 0 changed, 1 unchanged'),
    );
  });

  test('after it was not found, is one sale', async () => {
    await imported(key);
    const { release } = await holdKey();
    const answer = sendImport([purchase(1, { amount: 700 }), otherKey]);
    await blocked();
    await sendSmall([purchase(1)]);
    await release();
    expect(await answer).toEqual(
      summaryOf('purchases 0 new, 1 changed, 0 unchanged', 'download_keys 0 new, 1 changed, 0 unchanged'),
    );
  });

  test('and delete before it is looked for, is sold anew', async () => {
    await imported(purchase(1, { status: 'refunded' }));
    const { release } = await holdUser();
    const answer = sendImport([otherUser, purchase(1, { status: 'complete' })]);
    await blocked();
    await sendSmall([{ type: 'purchase', id: 1, deleted: true }]);
    await release();
    expect(await answer).toEqual(
      summaryOf('users 0 new, 1 changed, 0 unchanged', 'purchases 1 new, 0 changed, 0 unchanged'),
    );
  });

  test('and delete after it was found to be the same, is gone', async () => {
    await imported(purchase(1), purchase(2), key);
    const { release } = await holdKey();
    const answer = sendImport([purchase(1), purchase(2, { amount: 700 }), otherKey]);
    await blocked();
    await sendSmall([{ type: 'purchase', id: 1, status: 'refunded' }]);
    await sendSmall([{ type: 'purchase', id: 1, deleted: true }]);
    await release();
    expect(await answer).toEqual(
      summaryOf('purchases 0 new, 1 changed, 1 unchanged', 'download_keys 0 new, 1 changed, 0 unchanged'),
    );
    expect(await sql('SELECT id FROM purchases')).toEqual([{ id: 2 }]);
  });

  test('and delete while it is about to change, is sold anew', async () => {
    await imported(purchase(1, { status: 'refunded' }));
    const { commit } = await hold('DELETE FROM purchases WHERE id = 1');
    const answer = sendImport([purchase(1, { status: 'complete' })]);
    await blocked();
    await commit();
    expect(await answer).toEqual(summaryOf('purchases 1 new, 0 changed, 0 unchanged'));
  });

  test('and refund after it was found to be the same, stays refunded', async () => {
    await imported(purchase(1), key);
    const { release } = await holdKey();
    const answer = sendImport([purchase(1), otherKey]);
    await blocked();
    await sendSmall([{ type: 'purchase', id: 1, status: 'refunded' }]);
    await release();
    await answer;
    expect(await sql('SELECT status FROM purchases')).toEqual([{ status: 'refunded' }]);
  });
});

describe('ids', () => {
  test('an id that the service has drawn is not taken for a stored record that somebody gives meanwhile', async () => {
    // A transaction that writes purchases keeps the large import from moving the sequence.
    const { release } = await hold('LOCK TABLE purchases IN ROW EXCLUSIVE MODE');
    const large = importDirectly([purchase(900_000), { ...purchase(2), id: undefined, reference: 'made' }]);
    await blocked();
    const [{ last }] = (await sql('SELECT last_value AS last FROM purchases_id_seq')) as [{ last: number }];
    const given = [];
    for (let id = last; id < last + 3; id++) given.push(purchase(id, { amount: 1 }));
    expect(await sendSmall(given)).toMatchObject({ status: 200 });
    await release();
    await large;
    expect(await sql(`SELECT count(*) AS count FROM purchases WHERE amount = 1`)).toEqual([{ count: 3 }]);
    expect(await salesAsKept()).toEqual(await salesByDefinition());
  });

  test('a sequence is not moved back, whoever moves it at the same time', async () => {
    // Whoever moves it waits here, after it has looked where it stands.
    const { release } = await hold('ALTER SEQUENCE users_id_seq CACHE 1');
    const far = sendSmall([user(9_000_000)]);
    await sleep(80);
    const near = importDirectly([user(900_000)]);
    await sleep(120);
    await release();
    expect(await far).toMatchObject({ status: 200 });
    await near;
    const [made] = await sql<{ id: number }>(`INSERT INTO users (username) VALUES ('made') RETURNING id`);
    expect(made!.id).toBeGreaterThan(9_000_000);
  });
});
