import { Audit } from '../../src/audit/audit';
import { logged, theApp, useStore } from '../support/app';
import { sql } from '../support/sql';

useStore();

const audit = () => theApp().get(Audit);
const rows = () => sql('SELECT event, user_id, request_id, details FROM audit_events ORDER BY id');

test('writes each event to the log and to the table', async () => {
  audit().record({ event: 'api_key.created', request_id: 'r-1', user_id: 7, api_key_id: 12 });
  audit().record({
    event: 'user.sign_in_failed',
    request_id: 'r-2',
    reason: 'wrong',
    network: '192.0.2.0/24',
  });
  await audit().flush();
  expect(await rows()).toEqual([
    { event: 'api_key.created', user_id: 7, request_id: 'r-1', details: { api_key_id: 12 } },
    {
      event: 'user.sign_in_failed',
      user_id: null,
      request_id: 'r-2',
      details: { reason: 'wrong', network: '192.0.2.0/24' },
    },
  ]);
  const lines = logged
    .filter((line) => line.includes('"audit":true'))
    .map((line) => JSON.parse(line) as object);
  expect(lines[0]).toMatchObject({
    msg: 'audit',
    event: 'api_key.created',
    user_id: 7,
    api_key_id: 12,
    request_id: 'r-1',
  });
});

test('lists events newest first, filtered by user or type', async () => {
  audit().record({ event: 'user.signed_in', request_id: 'r-3', user_id: 8 });
  await audit().flush();
  expect((await audit().newest({ count: 2 })).map(({ event }) => event)).toEqual([
    'user.signed_in',
    'user.sign_in_failed',
  ]);
  expect((await audit().newest({ user_id: 7, count: 9 })).map(({ event }) => event)).toEqual([
    'api_key.created',
  ]);
  expect((await audit().newest({ event: 'user.signed_in', count: 9 })).map(({ user_id }) => user_id)).toEqual(
    [8],
  );
});

test('writes the host of a webhook only to the table, where an erasure reaches it', async () => {
  audit().record({ event: 'webhook.created', request_id: 'r-5', user_id: 9, host: 'seller.example' });
  await audit().flush();
  expect(await sql(`SELECT details FROM audit_events WHERE request_id = 'r-5'`)).toEqual([
    { details: { host: 'seller.example' } },
  ]);
  const line = logged.find((one) => one.includes('"request_id":"r-5"'));
  expect(line).toContain('"event":"webhook.created"');
  expect(line).not.toContain('seller.example');
});

test('stores concurrent events in order, up to 100 per transaction', async () => {
  for (let i = 0; i < 1000; i++)
    audit().record({ event: 'purchase.created', request_id: `sale-${i}`, counts: { games: 1 } });
  await audit().flush();
  const stored = await sql(
    `SELECT request_id, xmin::text AS transaction FROM audit_events WHERE event = 'purchase.created' ORDER BY id`,
  );
  expect(stored.map(({ request_id }) => request_id)).toEqual(
    Array.from({ length: 1000 }, (_, i) => `sale-${i}`),
  );
  expect(new Set(stored.map(({ transaction }) => transaction)).size).toBe(10);
});

test.each(['UPDATE audit_events SET user_id = 1', 'DELETE FROM audit_events', 'TRUNCATE audit_events'])(
  'rejects %s',
  async (statement) => {
    await expect(sql(statement)).rejects.toThrow('audit events are not changed');
  },
);

test('logs an event that could not be stored', async () => {
  await sql('ALTER TABLE audit_events RENAME TO elsewhere');
  audit().record({ event: 'user.signed_out', request_id: 'r-4', user_id: 8 });
  await audit().flush();
  expect(logged.some((line) => line.includes('"request_id":"r-4"') && line.includes('request failed'))).toBe(
    true,
  );
  await sql('ALTER TABLE elsewhere RENAME TO audit_events');
  expect(logged.some((line) => line.includes('"event":"user.signed_out"'))).toBe(true);
});
