import { Database } from '../../src/platform/database/database';
import { logged, openApp, useStore } from '../support/app';

useStore();

test('responds with 503 before the first connection, and logs no errors', async () => {
  jest.spyOn(Database.prototype, 'connect').mockResolvedValueOnce();
  const starting = await openApp({ TRUSTED_IDENTITY_HEADER: 'X-Store-User', TRUSTED_PROXIES: 'loopback' });
  const url = await starting.getUrl();
  logged.length = 0;
  const page = { accept: 'text/html', 'x-store-user': 'player' };
  for (const [path, init] of [
    ['/profile', { headers: { authorization: 'Bearer x' } }],
    ['/user/settings/api-keys', { headers: page }],
    ['/user/settings/api-keys', { headers: { ...page, cookie: `gamewharf_session=${'x'.repeat(43)}` } }],
    ['/oauth/revoke', { method: 'POST', body: new URLSearchParams({ client_id: 'x', token: 'x' }) }],
  ] as const)
    expect([path, (await fetch(url + path, init)).status]).toEqual([path, 503]);
  await starting.close();
  expect(logged.filter((line) => line.includes('"level":"error"'))).toEqual([]);
});

test('the token endpoint asks clients to retry while the database is unavailable', async () => {
  const cutOff = await openApp();
  const url = await cutOff.getUrl();
  await cutOff.get(Database).onApplicationShutdown();
  const response = await fetch(`${url}/oauth/token`, {
    method: 'POST',
    body: new URLSearchParams({ grant_type: 'refresh_token', client_id: 'x', refresh_token: 'x' }),
  });
  expect({ status: response.status, body: await response.json() }).toMatchObject({
    status: 503,
    body: { error: 'temporarily_unavailable', errors: ['service unavailable'] },
  });
  expect(response.headers.get('retry-after')).not.toBeNull();
  await cutOff.close();
});
