import { Settings } from '../../src/platform/config/settings';
import { Descriptors } from '../../src/platform/server/descriptors';
import { RequestGate } from '../../src/platform/server/request-gate';
import { runIf } from '../support/run-if';
import { anonymous } from '../support/actor';
import { baseUrl, theApp, theClock, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { actors } from '../support/make';

useStore();

test('returns 404 for an unknown path', async () => {
  expect(await anonymous.get('/nowhere')).toEqual(failure(404, 'invalid api endpoint'));
});

test('returns 405 with the allowed methods for a known path', async () => {
  const { status, body, headers } = await send('POST', '/health/live');
  expect({ status, body }).toEqual(failure(405, 'method not allowed'));
  expect(headers.get('allow')).toBe('GET, HEAD, OPTIONS');
});

describe('OPTIONS', () => {
  const preflight = { origin: 'https://game.example', 'access-control-request-method': 'GET' };

  test.each([
    ['/profile', 'GET, HEAD, OPTIONS'],
    ['/collections/7', 'GET, HEAD, OPTIONS, POST'],
    ['/collections', 'OPTIONS, POST'],
    ['/wharf/latest', 'GET, HEAD, OPTIONS'],
    ['/api/1/some-key/me', 'GET, HEAD, OPTIONS'],
    ['/login', 'GET, HEAD, OPTIONS, POST'],
  ])('%s, preflight or not', async (path, allow) => {
    for (const headers of [{}, preflight]) {
      const response = await send('OPTIONS', path, { headers });
      expect([response.status, response.headers.get('allow'), response.text]).toEqual([204, allow, '']);
      expect(response.headers.get('access-control-allow-methods')).toBe('origin' in headers ? allow : null);
    }
  });

  test('lets browsers of any origin download ranges of files', async () => {
    const { headers } = await send('OPTIONS', '/profile', { headers: preflight });
    const allowed = headers.get('access-control-allow-headers')!.split(', ');
    expect(allowed).toEqual(expect.arrayContaining(['Authorization', 'If-Range', 'Range']));
    const exposed = headers.get('access-control-expose-headers')!.split(', ');
    expect(exposed).toEqual(
      expect.arrayContaining(['Accept-Ranges', 'Content-Disposition', 'Content-Range', 'Retry-After']),
    );
  });

  test('returns 404 for an unknown path', async () => {
    for (const headers of [{}, preflight])
      expect(await send('OPTIONS', '/nowhere', { headers })).toMatchObject(
        failure(404, 'invalid api endpoint'),
      );
  });
});

test.each(['/collections', '/collections/1/order', '/oauth/token'])(
  'HEAD %s is not allowed',
  async (path) => {
    const { status, headers } = await fetch(baseUrl() + path, { method: 'HEAD' });
    expect([status, headers.get('allow')]).toEqual([405, 'OPTIONS, POST']);
  },
);

test('GET / describes the service', async () => {
  expect(await anonymous.get('/')).toEqual(ok({ name: 'gamewharf', openapi: '/openapi.json' }));
});

test('health checks', async () => {
  expect(await anonymous.get('/health/live')).toEqual(ok({ status: 'ok' }));
  expect(await anonymous.get('/health/ready')).toEqual(ok({ status: 'ok' }));
});

test('is not ready until startup is complete', async () => {
  const gate = theApp().get(RequestGate);
  gate.isStarting = true;
  try {
    expect(await anonymous.get('/health/ready')).toEqual(failure(503, 'service unavailable'));
    expect(await anonymous.get('/health/live')).toEqual(ok({ status: 'ok' }));
  } finally {
    gate.isStarting = false;
  }
});

const onLinux = runIf(process.platform === 'linux', 'only Linux tells the number of descriptors');

onLinux.test(
  'is not ready while it is short of descriptors, and not alive after two minutes of it',
  async () => {
    theClock().stop();
    const descriptors = theApp().get(Descriptors);
    const { max } = descriptors;
    const statuses = async () => [
      (await anonymous.get('/health/ready')).status,
      (await anonymous.get('/health/live')).status,
    ];
    try {
      descriptors.max = 10;
      expect(await statuses()).toEqual([503, 200]);
      theClock().advance(120_001);
      expect(await statuses()).toEqual([503, 503]);
      descriptors.max = max;
      expect(await statuses()).toEqual([200, 200]);
      descriptors.max = 10;
      expect(await statuses()).toEqual([503, 200]);
    } finally {
      descriptors.max = max;
      theClock().reset();
    }
  },
);

onLinux.test('accepts fewer connections than MAX_CONNECTIONS if descriptors would run short', () => {
  const descriptors = new Descriptors(new Settings(), theClock());
  expect([Number.isInteger(descriptors.max), descriptors.max > 100]).toEqual([true, true]);
  descriptors.max = 1000;
  expect(descriptors.maxConnections).toBe(700);
  descriptors.max = Infinity;
  expect(descriptors.maxConnections).toBe(10_000);
});

test('the shared actors exist', async () => {
  const { owner } = await actors();
  expect(owner.id).toBeGreaterThan(0);
});
