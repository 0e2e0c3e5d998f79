import type { NestExpressApplication } from '@nestjs/platform-express';
import { Database } from '../../src/platform/database/database';
import { sendRaw } from '../support/raw';
import { Actor } from '../support/actor';
import { baseUrl, logged, openApp, useStore } from '../support/app';
import { actors, make } from '../support/make';

// Two services on one database, one lenient and one strict.
useStore();

const OPERATOR_TOKEN = 'a token of the operator';

let lenient: NestExpressApplication;
const bases: Record<'strict' | 'lenient', string> = { strict: '', lenient: '' };

beforeAll(async () => {
  lenient = await openApp({ LENIENT_CLIENTS: 'true', OPERATOR_TOKEN });
  bases.strict = baseUrl();
  bases.lenient = await lenient.getUrl();
});

interface Request {
  method?: string;
  headers?: Record<string, string>;
  body?: string;
}

const FORM = { 'content-type': 'application/x-www-form-urlencoded' };

/** Sends the same bytes to both; fetch can't send a body with GET. */
async function both(path: string, { method = 'GET', headers = {}, body }: Request = {}) {
  const lines = Object.entries({
    ...headers,
    ...(body === undefined ? {} : { 'content-length': String(Buffer.byteLength(body)) }),
  }).map(([name, value]) => `${name}: ${value}\r\n`);
  const bytes = `${method} ${path} HTTP/1.1\r\nhost: h\r\nconnection: close\r\n${lines.join('')}\r\n${body ?? ''}`;
  const ask = async (base: string) => {
    const { status, body: text } = await sendRaw(bytes, { base });
    return { status, body: JSON.parse(text) as unknown };
  };
  return { strict: await ask(bases.strict), lenient: await ask(bases.lenient) };
}

const errors = (...texts: string[]) => ({ errors: texts });
const bearer = (actor: Actor) => ({ authorization: `Bearer ${actor.key}` });

describe('legacy errors with status 200', () => {
  test.each([
    ['/api/1/nonsense/me', 401, 'invalid key'],
    ['/api/1/key/me', 401, 'authentication required'],
    ['/api/1/nonsense/nothing', 404, 'invalid api endpoint'],
    ['/api/1/', 404, 'invalid api endpoint'],
    ['/api/1/%/me', 400, 'malformed request'],
  ])('%s', async (path, status, text) => {
    expect(await both(path)).toEqual({
      strict: { status, body: errors(text) },
      lenient: { status: 200, body: errors(text) },
    });
  });

  test('include missing scopes, parameters and objects', async () => {
    const { owner } = await actors();
    const few = await make.key({ owner, scopes: ['profile:me'] });
    for (const [path, status, text] of [
      [`/api/1/${few}/my-games`, 403, 'api key does not permit `profile:games`'],
      [`/api/1/${owner.key}/game/x/purchases?user_id=1`, 400, 'game_id must be an integer'],
      [`/api/1/${owner.key}/game/0/purchases?user_id=1`, 404, 'invalid game'],
    ] as const)
      expect(await both(path)).toEqual({
        strict: { status, body: errors(text) },
        lenient: { status: 200, body: errors(text) },
      });
  });

  test('exclude a method that no old client uses', async () => {
    const { strict, lenient } = await both('/api/1/x/me', { method: 'DELETE' });
    expect([strict.status, lenient.status]).toEqual([405, 200]);
    expect(lenient.body).toEqual(errors('method not allowed'));
  });

  test('exclude errors of the current API', async () => {
    for (const [path, status] of [
      ['/profile', 401],
      ['/nowhere', 404],
      ['/wharf/latest', 400],
      ['/api/10/x/me', 404],
    ] as const) {
      const { strict, lenient } = await both(path);
      expect([path, strict.status, lenient.status]).toEqual([path, status, status]);
    }
  });

  test('are logged with their original status', async () => {
    logged.length = 0;
    await both('/api/1/nonsense/me');
    const lines = logged.join('').trim().split('\n');
    const requests = lines.map((line) => JSON.parse(line) as object).filter((line) => 'route' in line);
    expect(requests).toEqual([
      expect.objectContaining({ route: '/api/1/:KEY/me', status: 401 }),
      expect.objectContaining({ route: '/api/1/:KEY/me', status: 401 }),
    ]);
  });

  test('exclude server errors, so that clients and proxies retry', async () => {
    const cutOff = await openApp({ LENIENT_CLIENTS: 'true' });
    try {
      const base = await cutOff.getUrl();
      await cutOff.get(Database).onApplicationShutdown();
      const request = 'GET /api/1/some-key/me HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n';
      expect((await sendRaw(request, { base })).status).toBe(503);
    } finally {
      await cutOff.close();
    }
  });
});

describe('?api_key=', () => {
  test('works only on reads, of the current and the legacy API', async () => {
    const { owner } = await actors();
    for (const path of ['/profile', '/api/1/key/me']) {
      const { strict, lenient } = await both(`${path}?api_key=${owner.key}`);
      expect(strict).toEqual({ status: 401, body: errors('authentication required') });
      expect(lenient).toMatchObject({ status: 200, body: { user: { id: owner.id } } });
    }
  });

  test('does not work for operator tokens', async () => {
    const path = '/operator/import';
    const headers = { 'content-type': 'application/x-ndjson' };
    const inHeader = { ...headers, authorization: `Bearer ${OPERATOR_TOKEN}` };
    const inQuery = `${path}?api_key=${encodeURIComponent(OPERATOR_TOKEN)}`;
    const asked = await both(inQuery, { method: 'POST', headers, body: '' });
    expect(asked.lenient).toEqual({ status: 401, body: errors('authentication required') });
    const told = await both(path, { method: 'POST', headers: inHeader, body: '' });
    expect(told.lenient).toMatchObject({ status: 200 });
  });

  test('accepts a key in any format', async () => {
    const { owner } = await actors();
    const key = await make.key({ owner, text: 'ключ+1🔑' });
    const { lenient } = await both(`/profile?api_key=${encodeURIComponent(key)}`);
    expect(lenient).toMatchObject({ status: 200, body: { user: { id: owner.id } } });
  });

  test('does not override the header', async () => {
    const { owner, stranger } = await actors();
    const path = `/profile?api_key=${owner.key}`;
    const { strict, lenient } = await both(path, { headers: bearer(stranger) });
    expect(strict).toMatchObject({ status: 200, body: { user: { id: stranger.id } } });
    expect(lenient).toEqual(strict);
    expect((await both(path, { headers: { authorization: 'nonsense' } })).lenient).toEqual({
      status: 401,
      body: errors('invalid key'),
    });
  });

  test('is ignored when repeated, empty, wrong, malformed or bracketed', async () => {
    const { owner } = await actors();
    for (const [query, text] of [
      [`api_key=${owner.key}&api_key=${owner.key}`, 'authentication required'],
      ['api_key=', 'authentication required'],
      ['api_key=%ff', 'authentication required'],
      [`api_key[]=${owner.key}`, 'authentication required'],
      ['api_key=nonsense', 'invalid key'],
      ['xapi_key=nonsense', 'authentication required'],
    ])
      expect((await both(`/profile?${query}`)).lenient).toEqual({ status: 401, body: errors(text!) });
  });
});

test('?api_key= works on downloads with the default settings, and is in no URL that the service handles', async () => {
  const { owner } = await actors();
  const urls: string[] = [];
  const app = await openApp(
    {},
    {
      configure: (one) =>
        one.use((req: { url: string; originalUrl: string }, _: unknown, next: () => void) => {
          urls.push(req.url, req.originalUrl);
          next();
        }),
    },
  );
  const base = await app.getUrl();
  const ask = async (path: string, headers = {}) => (await fetch(base + path, { headers })).status;
  const id = 4_000_000;
  for (const path of [
    `/uploads/${id}/download`,
    `/builds/${id}/download/archive/default`,
    `/wharf/builds/${id}/files/${id}/download`,
  ]) {
    const query = `uuid=8b1f3c3e-5a3f-4c0e-9b0c-8f4f8f3e6a51`;
    for (const key of [owner.key!, 'gw_wrong']) {
      urls.length = 0;
      const status = key === owner.key ? 404 : 401;
      expect([path, await ask(`${path}?api_key=${key}&${query}`)]).toEqual([path, status]);
      expect([path, await ask(`${path}?${query}&%61pi_key=${key}`)]).toEqual([path, status]);
      expect(urls).toEqual(Array(4).fill(`${path}?${query}`));
    }
    urls.length = 0;
    await ask(`${path}?api_key=${owner.key}`, { authorization: 'Bearer gw_wrong' });
    expect(urls).toEqual([path, path]);
  }
  for (const path of ['/profile', `/uploads/${id}`, `/builds/${id}`, `/games/${id}/uploads`, `/wharf/status`])
    expect([path, await ask(`${path}?api_key=${owner.key}`)]).toEqual([path, 401]);
  expect(await ask(`/api/1/key/upload/${id}/download?api_key=${owner.key}`)).toBe(401);
  expect(logged.join('')).not.toContain(owner.key);
  await app.close();
});

test('a key in the query is removed from the URL', async () => {
  const { owner } = await actors();
  const urls: string[] = [];
  const app = await openApp(
    { LENIENT_CLIENTS: 'true' },
    {
      configure: (one) =>
        one.use((req: { url: string; originalUrl: string }, _: unknown, next: () => void) => {
          urls.push(req.url, req.originalUrl);
          next();
        }),
    },
  );
  const response = await fetch(
    `${await app.getUrl()}/profile/owned-keys?page=1&api_key=${owner.key}&per_page=2`,
  );
  expect(response.status).toBe(200);
  expect(await response.json()).toMatchObject({ page: 1, per_page: 2 });
  expect(urls).toEqual(Array(2).fill('/profile/owned-keys?page=1&per_page=2'));
  await app.close();
});

describe('a whole redirect fragment as Authorization', () => {
  const fragment = (key: string, more = '&token_type=bearer&scope=profile%3Agames&iss=http%3A%2F%2Fh') => ({
    authorization: `access_token=${encodeURIComponent(key)}${more}`,
  });

  test('is read as its token', async () => {
    const { owner } = await actors();
    const { strict, lenient } = await both('/profile', { headers: fragment(owner.key!) });
    expect(strict).toEqual({ status: 401, body: errors('invalid key') });
    expect(lenient).toMatchObject({ status: 200, body: { user: { id: owner.id } } });
  });

  test('is invalid without a token or a type, and no operator token', async () => {
    const { owner } = await actors();
    for (const headers of [fragment(''), fragment(owner.key!, ''), fragment(owner.key!, '&token_type=mac')])
      expect((await both('/profile', { headers })).lenient).toEqual({
        status: 401,
        body: errors('invalid key'),
      });
    const headers = { 'content-type': 'application/x-ndjson', ...fragment(OPERATOR_TOKEN) };
    expect((await both('/operator/import', { method: 'POST', headers, body: '' })).lenient.status).toBe(401);
  });
});

/** The same fields in each content type that is read. */
const BODIES: [type: string, encode: (fields: Record<string, string>) => string][] = [
  ['application/x-www-form-urlencoded', (fields) => new URLSearchParams(fields).toString()],
  ['application/json', (fields) => JSON.stringify(fields)],
  [
    'multipart/form-data; boundary=b',
    (fields) =>
      `${Object.entries(fields)
        .map(([name, value]) => `--b\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`)
        .join('')}--b--\r\n`,
  ],
];

describe('api_key in the body of a GET', () => {
  test.each(BODIES)('%s', async (type, encode) => {
    const { owner } = await actors();
    const game = await make.game({ owner });
    const { key } = await make.downloadKey({ game });
    const asked = (path: string, fields: Record<string, string>) =>
      both(path, { headers: { 'content-type': type }, body: encode({ api_key: owner.key!, ...fields }) });
    for (const path of ['/profile', '/api/1/key/me']) {
      const { strict, lenient } = await asked(path, {});
      expect(strict).toEqual({ status: 401, body: errors('authentication required') });
      expect(lenient).toMatchObject({ status: 200, body: { user: { id: owner.id } } });
    }
    // The form has all parameters, or some of them are in the query.
    const lookup = await asked(`/games/${game.id}/download_keys`, { download_key: key });
    expect(lookup.lenient).toMatchObject({ status: 200, body: { download_key: { key } } });
    const rest = await asked(`/games/${game.id}/download_keys?download_key=${key}`, {});
    expect(rest.lenient).toMatchObject({ status: 200, body: { download_key: { key } } });
  });

  test('works for a POST on a legacy read and for no POST of the current API', async () => {
    const { owner } = await actors();
    const request = { method: 'POST', headers: FORM, body: `api_key=${owner.key}` };
    expect((await both('/api/1/key/me', request)).lenient).toMatchObject({
      body: { user: { id: owner.id } },
    });
    for (const response of Object.values(await both('/collections', request)))
      expect(response).toEqual({ status: 401, body: errors('authentication required') });
  });

  test('does not override the header, the query or the path', async () => {
    const { owner, stranger } = await actors();
    const request = { headers: FORM, body: `api_key=${owner.key}` };
    const empty = await both('/profile?api_key=', request);
    expect(empty.lenient).toMatchObject({ status: 200, body: { user: { id: owner.id } } });
    const users = [
      await both('/profile', { ...request, headers: { ...FORM, ...bearer(stranger) } }),
      await both(`/profile?api_key=${stranger.key}`, request),
      await both(`/api/1/${stranger.key}/me`, request),
    ].map(({ lenient }) => lenient.body);
    expect(users).toMatchObject(users.map(() => ({ user: { id: stranger.id } })));
  });

  test.each([
    ['application/json', '{"api_key":1}'],
    ['application/json', '{"api_key":null}'],
    ['application/json', '{"api_key":'],
    ['application/json', '[]'],
    [FORM['content-type'], 'api_key='],
    [FORM['content-type'], 'api_key=a&api_key=a'],
    [FORM['content-type'], 'api_key=%ff'],
    [FORM['content-type'], 'a=1&'.repeat(1001)],
    ['multipart/form-data', 'api_key'],
    ['text/plain', 'api_key=a'],
  ])('ignores a %s body of %.20s', async (type, body) => {
    const { lenient } = await both('/profile', { headers: { 'content-type': type }, body });
    expect(lenient).toEqual({ status: 401, body: errors('authentication required') });
  });

  test('reports an invalid body where parameters are read', async () => {
    const { owner } = await actors();
    const asked = (body: string) =>
      both('/games/1/purchases', { headers: { ...bearer(owner), 'content-type': 'application/json' }, body });
    expect((await asked('{"user_id":')).lenient).toEqual({
      status: 400,
      body: errors('the body must be a JSON object'),
    });
    expect((await asked('{"user_id":1}'.padEnd(600_000))).lenient).toEqual({
      status: 413,
      body: errors('request too large'),
    });
  });

  test('does not work for operator tokens', async () => {
    const { lenient } = await both('/operator/import', { headers: FORM, body: `api_key=${OPERATOR_TOKEN}` });
    expect(lenient).toEqual({ status: 405, body: errors('method not allowed') });
  });
});

test('ignores an empty Authorization header', async () => {
  const { owner } = await actors();
  for (const authorization of ['', '  ']) {
    const headers = { authorization };
    const { strict, lenient } = await both(`/profile?api_key=${owner.key}`, { headers });
    expect(strict).toEqual({ status: 401, body: errors('authentication required') });
    expect(lenient).toMatchObject({ status: 200, body: { user: { id: owner.id } } });
    const inBody = await both('/profile', { headers: { ...FORM, ...headers }, body: `api_key=${owner.key}` });
    expect(inBody.lenient).toMatchObject({ status: 200, body: { user: { id: owner.id } } });
  }
});

describe('parameters in the body of a GET', () => {
  async function lookup() {
    const { owner } = await actors();
    const game = await make.game({ owner });
    const { key } = await make.downloadKey({ game, email: 'a+b@example.com' });
    return { game, key, headers: bearer(owner) };
  }

  test.each(BODIES)('%s', async (type, encode) => {
    const { game, key, headers } = await lookup();
    for (const path of [`/games/${game.id}/download_keys`, `/api/1/key/game/${game.id}/download_keys`]) {
      const { strict, lenient } = await both(path, {
        headers: { ...headers, 'content-type': type },
        body: encode({ download_key: key }),
      });
      expect(strict).toEqual({
        status: 400,
        body: errors('exactly one of download_key, user_id, email is required'),
      });
      expect(lenient).toMatchObject({ status: 200, body: { download_key: { key } } });
    }
  });

  test('rejects the same name in body and query, as for POST', async () => {
    const { game, key, headers } = await lookup();
    const path = `/games/${game.id}/download_keys?download_key=${key}`;
    const { strict, lenient } = await both(path, {
      headers: { ...headers, ...FORM },
      body: `download_key=${key}`,
    });
    expect(strict.status).toBe(200);
    expect(lenient).toEqual({ status: 400, body: errors('download_key must be given once') });
  });

  test('ignores a body of another type or an empty one', async () => {
    const { game, key, headers } = await lookup();
    const path = `/games/${game.id}/download_keys?download_key=${key}`;
    for (const [type, body] of [
      ['text/plain', 'download_key=x'],
      ['application/octet-stream', '\0'],
      ['application/json', ''],
    ])
      for (const response of Object.values(
        await both(path, { headers: { ...headers, 'content-type': type! }, body }),
      ))
        expect(response).toMatchObject({ status: 200, body: { download_key: { key } } });
  });
});

describe('POST on legacy reads', () => {
  test('works like GET, with parameters in the query or body', async () => {
    const { owner } = await actors();
    const game = await make.game({ owner });
    const { key } = await make.downloadKey({ game });
    const lookup = `/api/1/${owner.key}/game/${game.id}/download_keys`;
    for (const [path, body] of [
      [`/api/1/${owner.key}/me`, ''],
      [`/api/1/${owner.key}/credentials/info`, ''],
      [`/api/1/${owner.key}/my-games`, ''],
      [`${lookup}?download_key=${key}`, ''],
      [lookup, `download_key=${key}`],
    ] as const) {
      const { strict, lenient } = await both(path, { method: 'POST', headers: FORM, body });
      expect(strict).toEqual({ status: 405, body: errors('method not allowed') });
      expect([path, lenient.status]).toEqual([path, 200]);
      expect(lenient.body).not.toHaveProperty('errors');
    }
  });

  test('is rejected on reads of the current API', async () => {
    const { owner } = await actors();
    for (const response of Object.values(
      await both('/profile', { method: 'POST', headers: bearer(owner), body: '' }),
    ))
      expect(response).toEqual({ status: 405, body: errors('method not allowed') });
  });
});

describe('wharf/latest under /api/1/KEY/', () => {
  test('accepts the methods and parameter locations of old clients', async () => {
    const { owner } = await actors();
    const game = await make.game({ owner });
    await make.build({ game, user_version: '1.2' });
    const path = '/api/1/x/wharf/latest';
    const query = `game_id=${game.id}&channel_name=windows`;
    for (const request of [
      [`${path}?${query}`],
      [`/api/1/key/wharf/latest?${query}`, { headers: { authorization: 'Bearer nonsense' } }],
      [path, { headers: FORM, body: query }],
      [path, { method: 'POST', headers: FORM, body: query }],
    ] as [string, Request?][]) {
      const { strict, lenient } = await both(...request);
      expect(strict).toEqual({ status: 404, body: errors('invalid api endpoint') });
      expect(lenient).toEqual({ status: 200, body: { latest: '1.2' } });
    }
  });

  test('returns legacy errors', async () => {
    expect(await both('/api/1/x/wharf/latest?game_id=0&channel_name=windows')).toEqual({
      strict: { status: 404, body: errors('invalid api endpoint') },
      lenient: { status: 200, body: errors('invalid game') },
    });
  });

  test('respects LEGACY_HOST', async () => {
    const replica = await openApp({ LENIENT_CLIENTS: 'true', LEGACY_HOST: 'legacy.example' });
    try {
      const ask = async (host: string) =>
        sendRaw(
          `GET /api/1/x/wharf/latest?game_id=0&channel_name=a HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`,
          { base: await replica.getUrl() },
        );
      expect(await ask('legacy.example')).toMatchObject({ status: 200, body: '{"errors":["invalid game"]}' });
      expect(await ask('other.example')).toMatchObject({
        status: 404,
        body: '{"errors":["invalid api endpoint"]}',
      });
    } finally {
      await replica.close();
    }
  });
});

test('/profile/games includes the owner of each game', async () => {
  const [owner, admin] = [await make.user(), await make.user()];
  const mine = await make.game({ owner: admin });
  const theirs = await make.game({ owner, admins: [admin] });
  const { strict, lenient } = await both('/profile/games', { headers: bearer(admin) });
  type Games = { games: { id: number; user_id?: number; user?: { id: number } }[] };
  const owners = ({ games }: Games) => games.map(({ id, user }) => [id, user?.id]);
  expect(new Map(owners(lenient.body as Games) as [number, number][])).toEqual(
    new Map([
      [mine.id, admin.id],
      [theirs.id, owner.id],
    ]),
  );
  const expected = await owner.get(`/games/${theirs.id}`);
  const shown = (lenient.body as Games).games.find(({ id }) => id === theirs.id)!;
  expect(shown.user_id).toBe(owner.id);
  expect(shown.user).toEqual((expected.body as { game: { user: object } }).game.user);
  // The other fields and the order are unchanged.
  const without = (lenient.body as Games).games.map(({ user: _, user_id: _id, ...game }) => game);
  expect(strict.body).toEqual({ games: without });
});
