import { Client } from 'pg';
import { cloneDatabase, withDatabase } from '../support/database';
import { until } from '../support/time';

const connected = async (url: string) => {
  const client = new Client({ connectionString: url });
  await client.connect();
  return client;
};

test('creates separate databases and drops them', async () => {
  const [first, second] = await Promise.all([cloneDatabase(), cloneDatabase()]);
  const [one, other] = [await connected(first.url), await connected(second.url)];
  await one.query('CREATE TABLE only_here ()');
  expect((await other.query(`SELECT to_regclass('only_here') AS found`)).rows).toEqual([{ found: null }]);
  await one.end();
  await other.end();
  await first.drop();
  await second.drop();
  await expect(connected(first.url)).rejects.toMatchObject({ code: '3D000' });
});

test('waits to clone until the template is unused', async () => {
  const busy = await connected(
    withDatabase(process.env.TEST_SERVER_URL ?? '', process.env.TEST_TEMPLATE ?? ''),
  );
  let done = false;
  const clone = cloneDatabase().then((database) => {
    done = true;
    return database;
  });
  const cloning = `SELECT FROM pg_stat_activity WHERE state = 'active' AND query LIKE 'CREATE DATABASE%'`;
  await until(async () => (await busy.query(cloning)).rows.length > 0);
  expect(done).toBe(false);
  await busy.end();
  await (await clone).drop();
});
