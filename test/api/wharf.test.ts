import { Database } from '../../src/platform/database/database';
import { NEWEST_BY_GAME, NEWEST_BY_TARGET } from '../../src/wharf/builds.service';
import { bind } from '../../src/platform/database/statement';
import { anonymous } from '../support/actor';
import { baseUrl, logged, openApp, theApp, theClock, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useStore({ LATEST_MAX_AGE: '7' });

const latest = (query: Record<string, unknown>) => anonymous.get('/wharf/latest', query);

async function gameWithBuilds(fields: Record<string, unknown> = {}) {
  const owner = await make.user();
  const game = await make.game({ owner, ...fields });
  await make.build({ game, user_version: '1.0' });
  await make.build({ game, user_version: '2.0' });
  return { owner, game, target: `${owner.username}/${game.slug}` };
}

describe('parameters', () => {
  test.each([
    [{}, ['channel_name is required', 'exactly one of game_id, target is required']],
    [{ channel_name: 'windows' }, ['exactly one of game_id, target is required']],
    [{ channel_name: 'windows', game_id: 1, target: 'a/b' }, ['exactly one of game_id, target is required']],
    [{ game_id: 1 }, ['channel_name is required']],
    [{ game_id: 1, channel_name: '' }, ['channel_name must not be empty']],
    [{ game_id: '', channel_name: 'windows' }, ['game_id must be an integer']],
    [{ game_id: '1.5', channel_name: 'windows' }, ['game_id must be an integer']],
    [{ game_id: '-1', channel_name: 'windows' }, ['game_id must be an integer']],
    [{ game_id: '9223372036854775808', channel_name: 'windows' }, ['game_id must be an integer']],
  ])('rejects %j', async (query, errors) => {
    expect(await latest(query)).toEqual(failure(400, ...errors));
  });

  test.each([
    '',
    '/',
    'leaf',
    'leaf/',
    '/x-moon',
    'leaf/x-moon/',
    'leaf/x/moon',
    '//',
    'https://leaf/x-moon',
  ])('rejects the target %j', async (target) => {
    expect(await latest({ target, channel_name: 'windows' })).toEqual(
      failure(400, 'target must be of the form user/game'),
    );
  });

  test.each([
    ['game_id=1&game_id=2&channel_name=a', 'game_id must be given once'],
    ['game_id[]=1&channel_name=a', 'game_id must be a single value'],
    ['game_id=1&channel_name=a&channel_name=b', 'channel_name must be given once'],
    ['game_id=1&channel_name=%ff', 'channel_name must be valid UTF-8 text'],
    ['game_id=1&channel_name=a%00', 'channel_name must be valid Unicode text without NUL'],
    ['target=a/b%00&channel_name=a', 'target must be valid Unicode text without NUL'],
  ])('rejects %s', async (query, problem) => {
    const { status, body } = await send('GET', `/wharf/latest?${query}`);
    expect({ status, body }).toMatchObject({
      status: 400,
      body: { errors: expect.arrayContaining([problem]) },
    });
  });

  test.each(['0', '2147483648', '9007199254740993', '9223372036854775807'])(
    'returns an error for the missing game %s',
    async (game_id) => {
      expect(await latest({ game_id, channel_name: 'windows' })).toEqual(failure(404, 'invalid game'));
    },
  );

  test('returns an error for an unknown owner, an unknown slug and very long names', async () => {
    const { owner, game } = await gameWithBuilds();
    for (const target of [
      `nobody/${game.slug}`,
      `${owner.username}/nothing`,
      `${owner.username}/${game.slug.toUpperCase()}`,
      `${'a'.repeat(4000)}/${game.slug}`,
      `${owner.username}/${game.slug}:windows`,
      `%/_`,
    ])
      expect(await latest({ target, channel_name: 'windows' })).toEqual(failure(404, 'invalid game'));
  });
});

test('responds separately to different concurrent requests', async () => {
  const many = await Promise.all(
    Array.from({ length: 12 }, async (_, i) => {
      const { game, target } = await gameWithBuilds({ visibility: i % 4 === 3 ? 'private' : 'public' });
      await make.build({ game, user_version: `3.${i}` });
      const by = i % 2 ? { target } : { game_id: game.id };
      return i % 4 === 3
        ? { by, expected: failure(404, 'invalid game') }
        : i % 4 === 2
          ? {
              by: { ...by, channel_name: 'no "such" \\ {channel}, NULL' },
              expected: failure(404, 'invalid channel'),
            }
          : { by, expected: ok({ latest: `3.${i}` }) };
    }),
  );
  for (let round = 0; round < 2; round++)
    expect(await Promise.all(many.map(({ by }) => latest({ channel_name: 'windows', ...by })))).toEqual(
      many.map(({ expected }) => expected),
    );
});

describe('the newest completed build', () => {
  test('is found by game and by target, whose owner is case-insensitive', async () => {
    const { game, owner, target } = await gameWithBuilds();
    expect(await latest({ game_id: game.id, channel_name: 'windows' })).toEqual(ok({ latest: '2.0' }));
    expect(await latest({ target, channel_name: 'windows' })).toEqual(ok({ latest: '2.0' }));
    expect(
      await latest({ target: `${owner.username.toUpperCase()}/${game.slug}`, channel_name: 'windows' }),
    ).toEqual(ok({ latest: '2.0' }));
  });

  test('has the highest ID, regardless of when it was created', async () => {
    const { game } = await gameWithBuilds();
    await make.build({ game, user_version: 'late', created_at: '2001-01-01T00:00:00Z' });
    expect(await latest({ game_id: game.id, channel_name: 'windows' })).toEqual(ok({ latest: 'late' }));
  });

  test.each(['started', 'processing', 'failed'])('is not one that is %s', async (state) => {
    const { game } = await gameWithBuilds();
    await make.build({ game, user_version: '3.0', state });
    expect(await latest({ game_id: game.id, channel_name: 'windows' })).toEqual(ok({ latest: '2.0' }));
  });

  test('returns no version if the build has none, not the version before it', async () => {
    const { game } = await gameWithBuilds();
    await make.build({ game });
    const { text } = await send('GET', `/wharf/latest?game_id=${game.id}&channel_name=windows`);
    expect(text).toBe('{}');
  });

  test.each(['nightly', 'WINDOWS', ' windows', 'windows ', "windows' OR true --", 'windows%'])(
    'returns 404 for the unknown channel %j',
    async (channel_name) => {
      const { game } = await gameWithBuilds();
      expect(await latest({ game_id: game.id, channel_name })).toEqual(failure(404, 'invalid channel'));
    },
  );

  test('returns 404 for a channel name that is too long', async () => {
    const { game } = await gameWithBuilds();
    for (const channel_name of ['x'.repeat(201), 'x'.repeat(15_000)])
      expect(await latest({ game_id: game.id, channel_name })).toEqual(failure(404, 'invalid channel'));
  });

  test('returns 404 for a channel without a completed build', async () => {
    const { game } = await gameWithBuilds();
    await make.build({ game, channel_name: 'linux', user_version: '1', state: 'processing' });
    expect(await latest({ game_id: game.id, channel_name: 'linux' })).toEqual(
      failure(404, 'invalid channel'),
    );
  });

  test.each([
    'windows beta',
    'windows+beta',
    'win&x=1',
    'ウィンドウズ',
    '🎮 é',
    'a/b',
    '100%',
    'x'.repeat(200),
  ])('is found for channel %j', async (channel_name) => {
    const { game, target } = await gameWithBuilds();
    await make.build({ game, channel_name, user_version: 'here' });
    expect(await latest({ game_id: game.id, channel_name })).toEqual(ok({ latest: 'here' }));
    expect(await latest({ target, channel_name })).toEqual(ok({ latest: 'here' }));
  });

  test('is found with a plus sign in the query as a space and %2B as a plus sign', async () => {
    const { game } = await gameWithBuilds();
    await make.build({ game, channel_name: 'a b', user_version: 'space' });
    await make.build({ game, channel_name: 'a+b', user_version: 'plus' });
    const ask = async (written: string) =>
      (await send('GET', `/wharf/latest?game_id=${game.id}&channel_name=${written}`)).body;
    expect(await ask('a+b')).toEqual({ latest: 'space' });
    expect(await ask('a%20b')).toEqual({ latest: 'space' });
    expect(await ask('a%2Bb')).toEqual({ latest: 'plus' });
  });
});

describe('access', () => {
  test('is open to anyone for a public, restricted or unpublished game', async () => {
    for (const fields of [{}, { visibility: 'restricted' }, { published_at: null }]) {
      const { game, target } = await gameWithBuilds(fields);
      expect(await latest({ game_id: game.id, channel_name: 'windows' })).toEqual(ok({ latest: '2.0' }));
      expect(await latest({ target, channel_name: 'windows' })).toEqual(ok({ latest: '2.0' }));
    }
  });

  test('is denied to everyone for a private game, including its owner', async () => {
    const { owner, game, target } = await gameWithBuilds({ visibility: 'private' });
    for (const actor of [anonymous, owner])
      for (const query of [{ game_id: game.id }, { target }])
        for (const channel_name of ['windows', 'nightly'])
          expect(await actor.get('/wharf/latest', { ...query, channel_name })).toEqual(
            failure(404, 'invalid game'),
          );
  });

  test('does not depend on a credential, even an invalid one', async () => {
    const { game } = await gameWithBuilds();
    for (const credential of ['nonsense', 'a.b.c', ''])
      expect(
        await anonymous.with(credential).get('/wharf/latest', { game_id: game.id, channel_name: 'windows' }),
      ).toEqual(ok({ latest: '2.0' }));
  });
});

describe('HTTP caching', () => {
  async function tagged() {
    const { game } = await gameWithBuilds();
    const path = `/wharf/latest?game_id=${game.id}&channel_name=windows`;
    const { headers } = await send('GET', path);
    const etag = headers.get('etag')!;
    const ask = async (known: string, method = 'GET') => {
      const response = await fetch(baseUrl() + path, { method, headers: { 'if-none-match': known } });
      return { status: response.status, text: await response.text(), headers: response.headers };
    };
    return { game, path, etag, headers, ask };
  }

  test('allows caching for the configured time with a weak ETag', async () => {
    const { etag, headers } = await tagged();
    expect(headers.get('cache-control')).toBe('public, max-age=7');
    expect(etag).toMatch(/^W\/"[\w-]{22}"$/);
  });

  test('returns 304 without a body and with the same headers', async () => {
    const { etag, ask } = await tagged();
    for (const known of [
      etag,
      etag.slice(2),
      '*',
      `"other", ${etag}`,
      `W/"a,b",${etag.slice(2)} , "c"`,
      ` ${etag} `,
    ]) {
      const { status, text, headers } = await ask(known);
      expect({ known, status, text }).toEqual({ known, status: 304, text: '' });
      expect(headers.get('etag')).toBe(etag);
      expect(headers.get('cache-control')).toBe('public, max-age=7');
      expect(headers.get('content-type')).toBeNull();
    }
  });

  test('returns the response if the ETag differs or is malformed', async () => {
    const { etag, ask } = await tagged();
    for (const known of ['"other"', '', 'W/', etag.replaceAll('"', ''), `"${etag}"`, 'W/"', '**'])
      expect(await ask(known)).toMatchObject({ status: 200, text: '{"latest":"2.0"}' });
  });

  test('returns the headers of GET and no body for HEAD', async () => {
    const { etag, ask } = await tagged();
    const { status, text, headers } = await ask('"other"', 'HEAD');
    expect({ status, text }).toEqual({ status: 200, text: '' });
    expect(headers.get('etag')).toBe(etag);
    expect(headers.get('content-length')).toBe(String('{"latest":"2.0"}'.length));
    expect((await ask(etag, 'HEAD')).status).toBe(304);
  });

  test('forbids caching of errors and never returns 304 for them', async () => {
    const { game } = await gameWithBuilds();
    for (const query of [
      'channel_name=windows',
      `game_id=${game.id}&channel_name=no`,
      'game_id=0&channel_name=a',
    ]) {
      const { status, headers } = await send('GET', `/wharf/latest?${query}`, {
        headers: { 'if-none-match': '*' },
      });
      expect(status).toBeGreaterThanOrEqual(400);
      expect(headers.get('cache-control')).toBe('no-store');
      expect(headers.get('etag')).toBeNull();
    }
  });

  test('lets a page in a browser read the ETag and send it back', async () => {
    const { headers } = await tagged();
    expect(headers.get('access-control-expose-headers')).toContain('ETag');
    const preflight = await fetch(`${baseUrl()}/wharf/latest`, {
      method: 'OPTIONS',
      headers: { origin: 'https://game.example', 'access-control-request-method': 'GET' },
    });
    expect(preflight.headers.get('access-control-allow-headers')).toContain('If-None-Match');
  });
});

const stableHeaders = ({ headers }: { headers: Headers }) =>
  Object.fromEntries(
    [...headers].filter(([name]) => !/^(date|x-request-id|x-ratelimit-(remaining|reset))$/.test(name)),
  );

describe('repeated requests', () => {
  test('get the same response, headers included, under the same route', async () => {
    const { game, target } = await gameWithBuilds();
    const replica = await openApp({ RATE_LIMIT: 'address=100/60s', LATEST_MAX_AGE: '7' });
    const url = await replica.getUrl();
    for (const question of [`game_id=${game.id}`, `target=${encodeURIComponent(target)}`]) {
      logged.length = 0;
      const ask = async () => {
        const response = await fetch(`${url}/wharf/latest?${question}&channel_name=windows`);
        return { response, text: await response.text() };
      };
      const [first, second] = [await ask(), await ask()];
      expect([second.response.status, second.text]).toEqual([200, '{"latest":"2.0"}']);
      expect(stableHeaders(second.response)).toEqual(stableHeaders(first.response));
      const left = [first, second].map(({ response }) =>
        Number(response.headers.get('x-ratelimit-remaining')),
      );
      expect(left[1]).toBeLessThan(left[0]!);
      await until(() => logged.join('').split('"route":"/wharf/latest"').length === 3);
    }
    await replica.close();
  });

  test('count toward the rate limit', async () => {
    const { game } = await gameWithBuilds();
    const replica = await openApp({ RATE_LIMIT: 'address=3/60s' });
    const url = `${await replica.getUrl()}/wharf/latest?game_id=${game.id}&channel_name=windows`;
    const responses: Response[] = [];
    for (let i = 0; i < 5; i++) responses.push(await fetch(url));
    expect(responses.map(({ status }) => status)).toEqual([200, 200, 200, 429, 429]);
    expect(await responses[4]!.json()).toEqual({ errors: ['rate limit exceeded'] });
    expect(responses[4]!.headers.get('etag')).toBeNull();
    await replica.close();
  });

  test('are different requests by ID and by name', async () => {
    const { game } = await gameWithBuilds();
    const query = { game_id: game.id, channel_name: 'windows' };
    expect(await latest(query)).toEqual(ok({ latest: '2.0' }));
    expect(await latest({ target: `${game.id}/x`, channel_name: 'windows' })).toEqual(
      failure(404, 'invalid game'),
    );
  });
});

test('fails with 500 and logs the reason if the statement fails', async () => {
  const { game } = await gameWithBuilds();
  const rows = jest.spyOn(theApp().get(Database), 'rows').mockRejectedValue(new Error('broken on purpose'));
  logged.length = 0;
  expect(await latest({ game_id: game.id, channel_name: 'windows' })).toEqual(
    failure(500, 'internal server error'),
  );
  rows.mockRestore();
  await until(() => logged.some((line) => line.includes('broken on purpose')));
  expect(await latest({ game_id: game.id, channel_name: 'windows' })).toEqual(ok({ latest: '2.0' }));
});

describe('the cache of builds', () => {
  async function shows(url: string, game: { id: number }, expected: string, channel_name = 'windows') {
    const response = await fetch(`${url}/wharf/latest?game_id=${game.id}&channel_name=${channel_name}`);
    expect(await response.text()).toBe(expected);
  }

  test('is less than a second old on every replica: new builds, new channels and games that become private', async () => {
    const { game } = await gameWithBuilds();
    const replica = await openApp();
    theClock().stop();
    try {
      const urls = [baseUrl(), await replica.getUrl()];
      for (const url of urls) {
        await shows(url, game, '{"latest":"2.0"}');
        await shows(url, game, '{"errors":["invalid channel"]}', 'linux');
      }
      await make.build({ game, user_version: '3.0' });
      await make.build({ game, user_version: '1', channel_name: 'linux' });
      theClock().advance(1000);
      for (const url of urls) {
        await shows(url, game, '{"latest":"3.0"}');
        await shows(url, game, '{"latest":"1"}', 'linux');
      }
      await sql(`UPDATE games SET visibility = 'private' WHERE id = $1`, [game.id]);
      theClock().advance(1000);
      for (const url of urls) await shows(url, game, '{"errors":["invalid game"]}');
    } finally {
      await replica.close();
    }
  });

  test.each([
    ['windows', ok({ latest: '2.0' })],
    ['nowhere', failure(404, 'invalid channel')],
  ])('needs one statement for many concurrent requests: %s', async (channel_name, expected) => {
    const { game } = await gameWithBuilds();
    theClock().stop();
    const statements = jest.spyOn(theApp().get(Database), 'rows');
    const responses = await Promise.all(
      Array.from({ length: 50 }, () => latest({ game_id: game.id, channel_name })),
    );
    expect(responses).toEqual(Array.from({ length: 50 }, () => expected));
    expect(statements.mock.calls.filter(([{ name }]) => name.startsWith('newest_build'))).toHaveLength(1);
    statements.mockRestore();
  });
});

test('needs one index probe per request, however many builds', async () => {
  const { owner } = await actors();
  await sql(
    `INSERT INTO games (user_id, slug, title) SELECT $1, 'many-' || n, 'Many' FROM generate_series(1, 20000) n`,
    [owner.id],
  );
  await sql(`INSERT INTO users (username) SELECT 'many' || n FROM generate_series(1, 20000) n`);
  await sql(
    `INSERT INTO builds (game_id, channel_name, user_version)
     SELECT g.id, 'windows', v FROM games g, generate_series(1, 10) v WHERE g.user_id = $1`,
    [owner.id],
  );
  await sql('VACUUM ANALYZE users, games, builds');
  for (const { statement, values } of [
    bind(NEWEST_BY_GAME, { game_id: '170', channel_name: 'windows' }),
    bind(NEWEST_BY_TARGET, { username: owner.username, slug: 'many-170', channel_name: 'windows' }),
  ]) {
    const literal = statement.text.replace(/\$(\d)/g, (_, n: string) => `'${values[Number(n) - 1]}'`);
    const plan = (await sql<{ 'QUERY PLAN': string }>(`EXPLAIN (COSTS OFF) ${literal}`))
      .map((row) => row['QUERY PLAN'])
      .join('\n');
    expect(plan).not.toContain('Seq Scan');
    expect(plan).not.toContain('Bitmap');
    expect(plan).not.toContain('Sort');
    expect(plan).not.toContain('Join Filter');
    expect(plan).toContain('Index Only Scan using builds_head_idx');
  }
});
