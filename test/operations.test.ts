import { actors, anonymous, baseUrl, failure, ok, send, useStore } from './support/store';

useStore();

test('an unknown path', async () => {
  expect(await anonymous.get('/nowhere')).toEqual(failure(404, 'invalid api endpoint'));
});

test('a known path with another method names the methods it takes', async () => {
  const { status, body, headers } = await send('POST', '/health/live');
  expect({ status, body }).toEqual(failure(405, 'method not allowed'));
  expect(headers.get('allow')).toBe('GET, HEAD, OPTIONS');
});

test.each(['/collections', '/collections/1/order', '/oauth/token', '/operator/import'])(
  'HEAD %s is no other than the rest',
  async (path) => {
    const { status, headers } = await fetch(baseUrl() + path, { method: 'HEAD' });
    expect([status, headers.get('allow')]).toEqual([405, 'OPTIONS, POST']);
  },
);

test('GET / says what this is', async () => {
  expect(await anonymous.get('/')).toEqual(ok({ name: 'gamewharf', openapi: '/openapi.json' }));
});

test('health', async () => {
  expect(await anonymous.get('/health/live')).toEqual(ok({ status: 'ok' }));
  expect(await anonymous.get('/health/ready')).toEqual(ok({ status: 'ok' }));
});

test('people with keys', async () => {
  const { owner } = await actors();
  expect(owner.id).toBeGreaterThan(0);
});
