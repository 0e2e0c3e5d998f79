import { TokensService } from '../../src/auth/jwt/tokens.service';
import { sendRaw } from '../support/raw';
import { Actor, anonymous } from '../support/actor';
import { openApp, theApp, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { ROOT_SCOPES } from '../../src/auth/access/scopes';

useStore();

/** The path of a request with the actor's key in the path and no header. */
const inPath = (actor: Actor, path: string) => `/api/1/${encodeURIComponent(actor.key!)}${path}`;

async function store() {
  const { owner, admin, developer, stranger } = await actors();
  const game = await make.game({
    owner,
    admins: [admin],
    title: 'X-Moon',
    slug: 'x-moon',
    short_text: 'A moon',
    cover_url: 'https://img.example/1.png',
    type: 'html',
    classification: 'tool',
    traits: ['p_windows', 'p_android', 'can_be_bought'],
    published_at: '2013-03-03T23:02:14.987Z',
    created_at: '2013-03-01T01:02:03+02:00',
    min_price: 250,
    views_count: 9,
    downloads_count: 8,
    purchases_count: 2,
  });
  await sql(`INSERT INTO game_earnings VALUES ($1, 'USD', 5047), ($1, 'EUR', 100)`, [game.id]);
  return { owner, admin, developer, stranger, game };
}

describe('location of the credential', () => {
  test.each([
    ['key', (key: string) => `Bearer ${key}`],
    ['key', (key: string) => key],
    ['key', (key: string) => `bearer   ${key} `],
  ])('accepts %s in the path and the key in the header', async (segment, header) => {
    const { owner } = await actors();
    const { status } = await send('GET', `/api/1/${segment}/me`, {
      headers: { authorization: header(owner.key!) },
    });
    expect(status).toBe(200);
  });

  test('accepts the key in the path and ignores the header', async () => {
    const { owner, stranger } = await actors();
    const path = inPath(owner, '/me');
    for (const actor of [anonymous, stranger, anonymous.with('nonsense'), anonymous.with('a.b.c')])
      expect(await actor.get(path)).toMatchObject({ status: 200, body: { user: { id: owner.id } } });
  });

  test('accepts percent-encoded imported keys in any format', async () => {
    const { owner } = await actors();
    for (const key of ['my key/with+all?of#it%', 'ключ 🔑', 'a.b', '..%2f', 'me'])
      expect(
        await anonymous.get(inPath(owner.with(await make.key({ owner, text: key })), '/me')),
      ).toMatchObject({
        status: 200,
        body: { user: { id: owner.id } },
      });
  });

  test('decodes a key before it checks its format', async () => {
    const { owner } = await actors();
    const key = await make.key({ owner, text: 'a+b' });
    expect((await send('GET', `/api/1/${key}/me`)).status).toBe(200);
    expect((await send('GET', '/api/1/a%2Bb/me')).status).toBe(200);
    expect((await send('GET', '/api/1/a%20b/me')).status).toBe(401);
  });

  test.each([
    ['/api/1/key/me', undefined, 'authentication required'],
    ['/api/1/jwt/me', undefined, 'authentication required'],
    ['/api/1/key/me', 'Bearer', 'authentication required'],
    ['/api/1/key/me', 'Bearer nonsense', 'invalid key'],
    ['/api/1/jwt/me', 'Bearer nonsense', 'invalid token'],
    ['/api/1/key/me', 'Bearer aaaa.bbbb.cccc', 'invalid key'],
    ['/api/1/jwt/me', 'Bearer aaaa.bbbb.cccc', 'invalid token'],
    ['/api/1/nonsense/me', undefined, 'invalid key'],
    ['/api/1/aaaa.bbbb.cccc/me', undefined, 'invalid key'],
    ['/api/1/KEY/me', undefined, 'invalid key'],
    ['/api/1/x/me', undefined, 'invalid key'],
    ['/api/1/%20/me', undefined, 'invalid key'],
    ['/api/1/%00/me', undefined, 'invalid key'],
    ['/api/1/__proto__/me', undefined, 'invalid key'],
    ['/api/1/constructor/me', undefined, 'invalid key'],
    [`/api/1/${'k'.repeat(15_000)}/me`, undefined, 'invalid key'],
  ])('%.40s with %s', async (path, authorization, text) => {
    const { status, body, headers } = await send('GET', path, {
      headers: authorization ? { authorization } : {},
    });
    expect({ status, body }).toEqual(failure(401, text));
    expect(headers.get('www-authenticate')).toMatch(/^Bearer realm="gamewharf"/);
  });

  test('accepts jwt in the path and a JWT in the header, with or without Bearer', async () => {
    const { owner } = await actors();
    const { key, expires_at } = await theApp()
      .get(TokensService)
      .issue({ user_id: owner.id, game_id: 1, scopes: ['profile:me'], api_key_id: null });
    for (const authorization of [`Bearer ${key}`, key]) {
      const ask = (path: string) => send('GET', path, { headers: { authorization } });
      expect((await ask('/api/1/jwt/credentials/info')).body).toEqual({
        scopes: ['profile:me'],
        expires_at: new Date(expires_at * 1000).toISOString().slice(0, 19).replace('T', ' '),
      });
      expect((await ask('/api/1/jwt/me')).body).toMatchObject({ user: { id: owner.id } });
      expect((await ask('/api/1/jwt/my-games')).body).toEqual({
        errors: ['token does not permit `profile:games`'],
      });
      expect((await ask('/api/1/key/me')).body).toEqual({ errors: ['invalid key'] });
    }
    expect(await anonymous.get(`/api/1/${key}/me`)).toEqual(failure(401, 'invalid key'));
  });

  test('rejects an API key where the path announces a JWT', async () => {
    const { owner } = await actors();
    expect(await owner.get('/api/1/jwt/me')).toEqual(failure(401, 'invalid token'));
  });

  test('rejects a revoked key', async () => {
    const { owner } = await actors();
    await sql('UPDATE api_keys SET revoked_at = now() WHERE user_id = $1', [owner.id]);
    expect(await anonymous.get(inPath(owner, '/me'))).toEqual(failure(401, 'invalid key'));
    expect(await owner.get('/api/1/key/me')).toEqual(failure(401, 'invalid key'));
  });

  test.each([
    ['/api/1//me', 404, 'invalid api endpoint'],
    ['/api/1/me', 404, 'invalid api endpoint'],
    ['/api/1/', 404, 'invalid api endpoint'],
    ['/api/1/secret', 404, 'invalid api endpoint'],
    ['/api/1/secret/', 404, 'invalid api endpoint'],
    ['/api/1/secret/me/', 404, 'invalid api endpoint'],
    ['/api/1/secret/Me', 404, 'invalid api endpoint'],
    ['/api/1/secret//me', 404, 'invalid api endpoint'],
    ['/API/1/secret/me', 404, 'invalid api endpoint'],
    ['/api/1/secret/collections', 404, 'invalid api endpoint'],
    ['/api/1/secret/profile', 404, 'invalid api endpoint'],
    ['/api/1/secret/wharf', 404, 'invalid api endpoint'],
    ['/api/1/x/wharf/latest?target=a/b&channel_name=c', 404, 'invalid api endpoint'],
    ['/api/2/secret/me', 404, 'invalid api endpoint'],
    ['/api/1/secret%/me', 400, 'malformed request'],
    ['/api/1/secret%E0%A4%A/me', 400, 'malformed request'],
    ['/api/1/secret%ff/me', 400, 'malformed request'],
    ['/api/1/secret%zz/nothing', 404, 'invalid api endpoint'],
    [`/api/1/secret${'k'.repeat(17_000)}/me`, 414, 'URL too long'],
  ])('%.40s', async (path, status, text) => {
    const { body, headers, ...response } = await sendRaw(
      `GET ${path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n`,
    );
    expect({ status: response.status, body }).toEqual({ status, body: JSON.stringify({ errors: [text] }) });
    expect(JSON.stringify(headers)).not.toContain('secret');
  });

  test('rejects another method', async () => {
    const { owner } = await actors();
    for (const method of ['POST', 'PUT', 'DELETE']) {
      const { status, body, headers } = await send(method, inPath(owner, '/me'));
      expect({ status, body }).toEqual(failure(405, 'method not allowed'));
      expect(headers.get('allow')).toBe('GET, HEAD, OPTIONS');
    }
  });
});

describe('scopes', () => {
  test.each([
    ['/me', 'profile:me', 'profile:games'],
    ['/my-games', 'profile:games', 'profile:me'],
    ['/game/1/purchases', 'game:view:purchases', 'collection'],
    ['/game/1/download_keys', 'game:view:purchases', 'profile'],
  ])('%s needs %s', async (path, needed, other) => {
    const { owner } = await actors();
    const few = owner.with(await make.key({ owner, scopes: [other] }));
    expect(await anonymous.get(inPath(few, path))).toEqual(
      failure(403, `api key does not permit \`${needed}\``),
    );
    const enough = owner.with(await make.key({ owner, scopes: [needed.split(':')[0]!] }));
    expect((await anonymous.get(inPath(enough, path))).status).not.toBe(403);
  });

  test('returns credentials/info without a scope and without a type', async () => {
    const { owner } = await actors();
    const few = owner.with(await make.key({ owner, scopes: ['profile:me', 'game:view'] }));
    expect(await few.get('/api/1/key/credentials/info')).toEqual(ok({ scopes: ['game:view', 'profile:me'] }));
    expect(await anonymous.get(inPath(owner, '/credentials/info'))).toEqual(ok({ scopes: ROOT_SCOPES }));
  });
});

test('returns the profile as /me', async () => {
  const { owner } = await actors();
  expect(await owner.get('/api/1/key/me')).toEqual(await owner.get('/profile'));
});

test('lists my-games with booleans for platforms, spaces in timestamps and no classification', async () => {
  const { owner, admin, stranger, game } = await store();
  const expected = {
    id: game.id,
    title: 'X-Moon',
    short_text: 'A moon',
    url: `https://${owner.username}.gamewharf.example/x-moon`,
    cover_url: 'https://img.example/1.png',
    type: 'html',
    p_android: true,
    p_linux: false,
    p_osx: false,
    p_windows: true,
    published: true,
    published_at: '2013-03-03 23:02:14',
    created_at: '2013-02-28 23:02:03',
    min_price: 250,
    views_count: 9,
    downloads_count: 8,
    purchases_count: 2,
    earnings: [
      { currency: 'EUR', amount_formatted: '€1.00', amount: 100 },
      { currency: 'USD', amount_formatted: '$50.47', amount: 5047 },
    ],
  };
  for (const actor of [owner, admin])
    expect(await actor.get('/api/1/key/my-games')).toEqual(ok({ games: [expected] }));
  const { body } = await owner.get('/api/1/key/my-games');
  expect(Object.keys((body as { games: object[] }).games[0]!)).toEqual(Object.keys(expected));
  expect(await stranger.get('/api/1/key/my-games')).toEqual(ok({ games: [] }));
});

test('lists my-games for an unpublished game with all optional fields missing', async () => {
  const { owner } = await actors();
  await make.game({ owner, published_at: null, traits: ['p_linux', 'p_osx'] });
  const { body } = await owner.get('/api/1/key/my-games');
  expect(body).toMatchObject({
    games: [
      {
        published: false,
        published_at: null,
        short_text: null,
        cover_url: null,
        p_linux: true,
        p_osx: true,
        p_windows: false,
        earnings: [],
      },
    ],
  });
});

describe('download keys', () => {
  test('are found as in the current API, apart from the timestamp', async () => {
    const { owner, admin, stranger, game } = await store();
    const key = await make.downloadKey({
      game,
      user_id: stranger.id,
      email: 'a+b@example.com',
      downloads: 3,
      created_at: '2014-04-05T06:07:08Z',
    });
    for (const query of [
      { download_key: key.key },
      { user_id: stranger.id },
      { email: 'A+B@example.com' },
      { email: 'a b@example.com' },
    ]) {
      const modern = (await owner.get(`/games/${game.id}/download_keys`, query)).body as {
        download_key: Record<string, unknown>;
      };
      const expected = ok({ download_key: { ...modern.download_key, created_at: '2014-04-05 06:07:08' } });
      expect(await owner.get(`/api/1/key/game/${game.id}/download_keys`, query)).toEqual(expected);
      expect(await anonymous.get(inPath(admin, `/game/${game.id}/download_keys`), query)).toEqual(expected);
    }
  });

  test('have no owner without an account', async () => {
    const { owner, game } = await store();
    const { key } = await make.downloadKey({ game });
    const { body } = await owner.get(`/api/1/key/game/${game.id}/download_keys`, { download_key: key });
    expect(Object.keys((body as { download_key: object }).download_key)).toEqual([
      'id',
      'created_at',
      'downloads',
      'key',
      'game_id',
    ]);
  });

  test.each([
    [{}, failure(400, 'exactly one of download_key, user_id, email is required')],
    [
      { user_id: 1, email: 'a@example.com' },
      failure(400, 'exactly one of download_key, user_id, email is required'),
    ],
    [{ user_id: 'abc' }, failure(400, 'user_id must be an integer')],
    [{ download_key: 'nothing' }, failure(404, 'invalid download key')],
    [{ email: 'nobody@example.com' }, failure(404, 'no download key found')],
    [{ user_id: '9007199254740993' }, failure(404, 'no download key found')],
  ])('%j', async (query, expected) => {
    const { owner, game } = await store();
    expect(await owner.get(`/api/1/key/game/${game.id}/download_keys`, query)).toEqual(expected);
    expect(await owner.get(`/games/${game.id}/download_keys`, query)).toEqual(expected);
  });
});

describe('purchases', () => {
  test('have only the fields of the first version', async () => {
    const { owner, stranger, game } = await store();
    const other = await make.game({ owner });
    const purchase = await make.purchase({
      games: [game],
      email: 'p@example.com',
      created_at: '2015-05-06T07:08:09Z',
      sale_rate: 12.5,
    });
    const bundle = await make.purchase({
      games: [game, other],
      purchase_type: 'bundle',
      email: 'p@example.com',
      created_at: '2015-05-06T07:08:10Z',
      currency: 'JPY',
      user_id: stranger.id,
    });
    expect(await owner.get(`/api/1/key/game/${game.id}/purchases`, { email: 'p@example.com' })).toEqual(
      ok({
        purchases: [
          {
            id: bundle.id,
            donation: false,
            email: 'p@example.com',
            created_at: '2015-05-06 07:08:10',
            source: 'card',
            currency: 'JPY',
            price: '¥500',
            sale_rate: 0,
            game_id: [game.id, other.id],
          },
          {
            id: purchase.id,
            donation: false,
            email: 'p@example.com',
            created_at: '2015-05-06 07:08:09',
            source: 'card',
            currency: 'USD',
            price: '$5.00',
            sale_rate: 12.5,
            game_id: game.id,
          },
        ],
      }),
    );
  });

  test.each([
    [{}, failure(400, 'exactly one of email, user_id is required')],
    [{ download_key: 'a' }, failure(400, 'exactly one of email, user_id is required')],
    [{ email: 'nobody@example.com' }, ok({ purchases: [] })],
  ])('%j', async (query, expected) => {
    const { owner, game } = await store();
    expect(await owner.get(`/api/1/key/game/${game.id}/purchases`, query)).toEqual(expected);
  });
});

test('rejects a game that the caller cannot edit, a missing game and invalid IDs', async () => {
  const { developer, stranger, game } = await store();
  for (const lookup of ['purchases', 'download_keys']) {
    for (const actor of [developer, stranger])
      for (const id of [game.id, 0, '2147483648', '9007199254740993'])
        expect(await actor.get(`/api/1/key/game/${id}/${lookup}`, { email: 'a@example.com' })).toEqual(
          failure(404, 'invalid game'),
        );
    for (const id of ['abc', '1.5', '0x10', '9223372036854775808', '%20'])
      expect(await developer.get(`/api/1/key/game/${id}/${lookup}`, { email: 'a@example.com' })).toEqual(
        failure(400, 'game_id must be an integer'),
      );
  }
});

test('returns error statuses and ignores a key in the query without LENIENT_CLIENTS', async () => {
  const { owner } = await actors();
  expect((await send('GET', `/profile?api_key=${owner.key}`)).status).toBe(401);
  expect((await send('GET', `/api/1/key/me?api_key=${owner.key}`)).status).toBe(401);
});

describe('LEGACY_HOST', () => {
  const ask = (host: string, path: string, base?: string) =>
    sendRaw(`GET ${path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`, { base });

  test('unset: accepts every host name', async () => {
    const { owner } = await actors();
    for (const host of ['a.example', 'b.example:8080', '127.0.0.1'])
      expect((await ask(host, inPath(owner, '/me'))).status).toBe(200);
  });

  test('set: serves the legacy API only there and other routes everywhere', async () => {
    const { owner } = await actors();
    const replica = await openApp({ LEGACY_HOST: 'Legacy.Example' });
    try {
      const base = await replica.getUrl();
      const { key } = owner;
      for (const host of ['legacy.example', 'LEGACY.example', 'legacy.example:3000']) {
        expect((await ask(host, `/api/1/${key}/me`, base)).status).toBe(200);
        expect((await ask(host, '/health/live', base)).status).toBe(200);
      }
      for (const host of ['api.example', 'legacy.example.evil.example', 'xlegacy.example', '127.0.0.1'])
        for (const path of [`/api/1/${key}/me`, '/api/1/key/me', '/api/1/x', '/api/1/%/me'])
          expect(await ask(host, path, base)).toMatchObject({
            status: 404,
            body: '{"errors":["invalid api endpoint"]}',
          });
      expect((await ask('api.example', '/health/live', base)).status).toBe(200);
    } finally {
      await replica.close();
    }
  });
});
