import { once } from 'node:events';
import { connect } from 'node:net';
import { baseUrl, useStore } from '../support/app';
import { send } from '../support/http';
import { sendRaw } from '../support/raw';

useStore();

const get = (path: string, ...headers: string[]) =>
  ['GET ' + path + ' HTTP/1.1', 'Host: localhost', ...headers, '', ''].join('\r\n');

describe.each<[string, string | Buffer, number, string]>([
  ['bytes that are not HTTP', 'GET / JUNK\r\n\r\n', 400, 'malformed request'],
  ['an unknown method', 'BREW / HTTP/1.1\r\nHost: localhost\r\n\r\n', 405, 'method not allowed'],
  ['TRACE', 'TRACE / HTTP/1.1\r\nHost: localhost\r\n\r\n', 405, 'method not allowed'],
  ['CONNECT', 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n', 405, 'method not allowed'],
  ['no Host header', 'GET / HTTP/1.1\r\n\r\n', 400, 'exactly one Host header is required'],
  ['two Host headers', get('/', 'Host: other'), 400, 'exactly one Host header is required'],
  [
    'two Content-Length headers',
    get('/', 'Content-Length: 1', 'Content-Length: 2'),
    400,
    'malformed request',
  ],
  [
    'Content-Length and Transfer-Encoding',
    get('/', 'Content-Length: 5', 'Transfer-Encoding: chunked'),
    400,
    'malformed request',
  ],
  [
    'a bad chunk',
    'POST /x HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n',
    404,
    'invalid api endpoint',
  ],
  [
    'a header block over 16 KiB',
    get('/', `X-Big: ${'x'.repeat(17_000)}`),
    431,
    'request header fields too large',
  ],
  [
    'more than 100 headers',
    get('/', ...Array.from({ length: 100 }, (_, i) => `X-${i}: 1`)),
    431,
    'request header fields too large',
  ],
  ['a URL over 16 KiB', get(`/?${'x'.repeat(17_000)}`), 414, 'URL too long'],
  ['a NUL in a header', get('/', 'X-Nul: a\0b'), 400, 'malformed request'],
  [
    'a control character in a credential',
    get('/profile', 'Authorization: Bearer a\x01b'),
    401,
    'invalid key',
  ],
  ['a NUL in a credential', get('/profile', 'X-A: b', 'authorization: a\0b', 'X-C: d'), 401, 'invalid key'],
  [
    'a credential of a megabyte',
    get('/profile', `Authorization: Bearer ${'x'.repeat(1_000_000)}`),
    431,
    'request header fields too large',
  ],
  ['a credential that is not text', get('/profile', 'Authorization: Bearer \xff\xfe'), 401, 'invalid key'],
  ['a broken percent in the path', get('/health/%'), 404, 'invalid api endpoint'],
  ['an absolute target without a host', get('http://[::1/profile'), 401, 'authentication required'],
  ['a target with another scheme', get('ftp://example.com/profile'), 400, 'malformed request'],
  ['a target that is not a URL', get('profile'), 400, 'malformed request'],
  ['an asterisk', get('*'), 400, 'malformed request'],
  ['an absolute target', get('http://example.com/nowhere'), 404, 'invalid api endpoint'],
  ['a path of dot segments', get('/../../etc/passwd'), 404, 'invalid api endpoint'],
  ['a path of slashes', get('//'), 404, 'invalid api endpoint'],
  ['a trailing slash', get('/health/live/'), 404, 'invalid api endpoint'],
  ['uppercase letters in the path', get('/Health/Live'), 404, 'invalid api endpoint'],
])('%s', (_name, bytes, status, text) => {
  test(`returns ${status} in the envelope with a request ID and echoes nothing`, async () => {
    const response = await sendRaw(bytes);
    expect({ status: response.status, body: response.body }).toEqual({
      status,
      body: JSON.stringify({ errors: [text] }),
    });
    expect(response.headers['content-type']).toBe('application/json');
    expect(response.headers['x-request-id']).toMatch(/^[\w-]{36}$/);
    expect(response.headers['x-content-type-options']).toBe('nosniff');
    expect(response.headers.allow).toEqual(
      status === 405 ? expect.stringContaining('GET, HEAD, OPTIONS') : undefined,
    );
    expect(response.headers['content-security-policy']).toBe(
      "default-src 'none'; base-uri 'none'; frame-ancestors 'none'",
    );
  });
});

// The parser keeps no earlier chunks, so a header whose name was in an earlier chunk can't be attributed.
test('rejects a control character in a credential wherever the request is split in two', async () => {
  const request = get('/profile', 'Authorization: Bearer a\x01b');
  const [name, character] = [request.indexOf('Authorization'), request.indexOf('\x01')];
  const seen = await Promise.all(
    Array.from({ length: request.length - 1 }, async (_, i) => {
      const { status, body } = await sendRaw([request.slice(0, i + 1), request.slice(i + 1)]);
      return { at: i + 1, response: `${status} ${body}` };
    }),
  );
  for (const { at, response } of seen) {
    const nameless = at > name && at <= character ? ['400 {"errors":["malformed request"]}'] : [];
    expect(['401 {"errors":["invalid key"]}', ...nameless]).toContain(response);
  }
});

test('accepts exactly 100 headers', async () => {
  const response = await sendRaw(get('/', ...Array.from({ length: 99 }, (_, i) => `X-${i}: 1`)));
  expect(response.status).toBe(200);
});

test('survives a CONNECT whose client disconnects before the response', async () => {
  const { hostname, port } = new URL(baseUrl());
  for (let i = 0; i < 50; i++) {
    const socket = connect(Number(port), hostname);
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    socket.write('CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\n\r\n', () =>
      socket.resetAndDestroy(),
    );
    await once(socket, 'close');
  }
  expect((await send('GET', '/health/live')).status).toBe(200);
});

test('returns 408 when headers take longer than ten seconds', async () => {
  const response = await sendRaw('GET / HTTP/1.1\r\nHost: localhost\r\n');
  expect({ status: response.status, body: response.body }).toEqual({
    status: 408,
    body: '{"errors":["request timeout"]}',
  });
  expect(response.ms).toBeLessThan(10_000);
});

test('keeps a valid request ID and replaces any other', async () => {
  const id = async (given: string) =>
    (await send('GET', '/', { headers: { 'x-request-id': given } })).headers.get('x-request-id');
  expect(await id('trace-1.2:3_4')).toBe('trace-1.2:3_4');
  expect(await id('x'.repeat(65))).toMatch(/^[\w-]{36}$/);
  expect(await id('two words')).toMatch(/^[\w-]{36}$/);
});

test('allows browser games on any origin, without cookies', async () => {
  const preflight = await send('OPTIONS', '/profile', {
    headers: { origin: 'https://game.example', 'access-control-request-method': 'GET' },
  });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get('access-control-allow-origin')).toBe('*');
  expect(preflight.headers.get('access-control-allow-headers')).toMatch(/Authorization/);
  expect(preflight.headers.get('access-control-allow-credentials')).toBeNull();
});

test('does not reveal what software the service uses', async () => {
  const { headers } = await send('GET', '/');
  expect(headers.get('x-powered-by')).toBeNull();
  expect(headers.get('server')).toBeNull();
  expect(headers.get('etag')).toBeNull();
});
