import { htmlThread } from '../../src/collections/html-thread';
import { type Actor } from '../support/actor';
import { baseUrl, databaseUrl, openApp, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { make, useGame } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useStore();

const store = useGame();
let id: number;

beforeEach(async () => {
  ({ id } = await make.collection({
    owner: store.owner,
    games: [store.game],
    title: 'Old',
    description: 'old',
    layout: 'list',
  }));
});

type Fields = Record<string, unknown>;

/** The four ways in which a client can send the same parameters. */
const WAYS: Record<
  string,
  (actor: Actor, path: string, fields: Fields) => Promise<{ status: number; body: unknown }>
> = {
  form: (actor, path, fields) => actor.post(path, fields),
  json: (actor, path, fields) => actor.postJson(path, fields),
  async query(actor, path, fields) {
    const text = Object.entries(fields).map(([name, value]): [string, string] => [name, toText(value)]);
    const { status, body } = await send('POST', `${path}?${new URLSearchParams(text).toString()}`, {
      headers: actor.headers,
    });
    return { status, body };
  },
  async multipart(actor, path, fields) {
    const form = new FormData();
    for (const [name, value] of Object.entries(fields)) form.set(name, toText(value));
    const { status, body } = await send('POST', path, { headers: actor.headers, body: form });
    return { status, body };
  },
};
const toText = (value: unknown) => (typeof value === 'object' ? JSON.stringify(value) : String(value));

/** Sends requests that the API description does not document but the service accepts. */
async function postUndescribed(path: string, fields: Record<string, string> | string) {
  const isJson = typeof fields === 'string';
  const response = await fetch(baseUrl() + path, {
    method: 'POST',
    headers: { ...store.owner.headers, ...(isJson && { 'content-type': 'application/json' }) },
    body: isJson ? fields : new URLSearchParams(fields),
  });
  return { status: response.status, body: await response.json() };
}

const collection = async () =>
  ((await store.owner.get(`/collections/${id}`)).body as { collection: Fields }).collection;
const entries = async () =>
  (
    (await store.owner.get(`/collections/${id}/collection-games`)).body as { collection_games: Fields[] }
  ).collection_games.map(({ game_id, blurb }) => [game_id, blurb]);

describe.each(Object.keys(WAYS))('parameters by %s', (way) => {
  const post = (path: string, fields: Fields = {}) => WAYS[way]!(store.owner, path, fields);

  test('updates a collection', async () => {
    const fields = {
      title: '  Nüw 🎲 ',
      description: '<b>n</b><i onclick="x">w</i>',
      private: true,
      layout: 'grid',
      on_profile: true,
    };
    const response = await post(`/collections/${id}`, fields);
    expect(response).toMatchObject({
      status: 200,
      body: {
        collection: { title: 'Nüw 🎲', description: '<b>n</b><i>w</i>', private: true, layout: 'grid' },
      },
    });
    expect(response.body).toEqual({ collection: await collection() });
    expect(await sql('SELECT user_id FROM profile_collections WHERE collection_id = $1', [id])).toEqual([
      { user_id: store.owner.id },
    ]);
  });

  test('creates; adds, updates, orders and removes entries', async () => {
    const other = await make.game({ owner: store.owner });
    expect(
      await post('/collections', { title: 'T', game_id: store.game.id, blurb: '<b>x</b>' }),
    ).toMatchObject({
      status: 200,
      body: { collection: { title: 'T', games_count: 1, layout: 'list' } },
    });
    expect(await post(`/collections/${id}/add-game`, { game_id: other.id, blurb: 'a<br>b' })).toMatchObject({
      status: 200,
      body: { collection_game: { position: 2, blurb: 'a<br />b' } },
    });
    expect(
      await post(`/collections/${id}/collection-games/${store.game.id}`, { blurb: 'x & y' }),
    ).toMatchObject({
      status: 200,
      body: { collection_game: { position: 1, blurb: 'x &amp; y' } },
    });
    expect(await post(`/collections/${id}/order`, { game_ids: [other.id, store.game.id] })).toEqual(
      ok({ success: true }),
    );
    expect(await entries()).toEqual([
      [other.id, 'a<br />b'],
      [store.game.id, 'x &amp; y'],
    ]);
    expect(await post(`/collections/${id}/order`, { game_ids: [], remove_game_ids: [other.id] })).toEqual(
      ok({ success: true }),
    );
    expect(await post(`/collections/${id}/remove-game`, { game_id: store.game.id })).toEqual(
      ok({ success: true, removed: true }),
    );
    expect(await entries()).toEqual([]);
  });
});

describe('changes only the parameters that are sent', () => {
  const OLD = { title: 'Old', description: 'old', private: false, layout: 'list' };

  test.each([[{ title: 'New' }], [{ description: 'new' }], [{ private: true }], [{ layout: 'grid' }]])(
    '%j',
    async (fields: Fields) => {
      const before = await sql('SELECT updated_at FROM collections WHERE id = $1', [id]);
      expect((await store.owner.post(`/collections/${id}`, fields)).status).toBe(200);
      expect(await collection()).toMatchObject({ ...OLD, ...fields });
      expect(await sql('SELECT updated_at FROM collections WHERE id = $1', [id])).not.toEqual(before);
    },
  );

  test('changes nothing without parameters', async () => {
    const before = await sql('SELECT * FROM collections WHERE id = $1', [id]);
    expect((await store.owner.post(`/collections/${id}`, {})).status).toBe(200);
    expect(await sql('SELECT * FROM collections WHERE id = $1', [id])).toEqual(before);
  });

  test('clears a field with an empty string', async () => {
    await store.owner.post(`/collections/${id}/collection-games/${store.game.id}`, { blurb: 'x' });
    expect(await store.owner.post(`/collections/${id}`, { description: '' })).toMatchObject({
      body: { collection: { description: null } },
    });
    expect(await store.owner.post(`/collections/${id}/collection-games/${store.game.id}`, {})).toMatchObject({
      body: { collection_game: { blurb: 'x' } },
    });
    expect(
      await store.owner.post(`/collections/${id}/collection-games/${store.game.id}`, {
        blurb: '<script></script>',
      }),
    ).toMatchObject({
      body: { collection_game: { blurb: null } },
    });
  });
});

describe('on_profile', () => {
  test('stores on_profile separately for the owner and each admin', async () => {
    const admin = await make.user();
    await sql('INSERT INTO collection_admins (collection_id, user_id) VALUES ($1, $2)', [id, admin.id]);
    const shown = async () =>
      (
        await sql<{ user_id: number }>('SELECT user_id FROM profile_collections WHERE collection_id = $1', [
          id,
        ])
      ).map(({ user_id }) => user_id);
    await admin.post(`/collections/${id}`, { on_profile: 'yes' });
    expect(await shown()).toEqual([admin.id]);
    await store.owner.post(`/collections/${id}`, { on_profile: 'off' });
    expect(await shown()).toEqual([admin.id]);
    await store.owner.post(`/collections/${id}`, { on_profile: '1' });
    await store.owner.post(`/collections/${id}`, { on_profile: '1' });
    await admin.post(`/collections/${id}`, { on_profile: '0' });
    expect(await shown()).toEqual([store.owner.id]);
    expect(await store.stranger.post(`/collections/${id}`, { on_profile: '1' })).toEqual(
      failure(403, "you can't edit this collection"),
    );
    expect(await shown()).toEqual([store.owner.id]);
  });
});

describe('titles', () => {
  test.each([
    '',
    '   ',
    '\u3000\n\t',
    '\u200b',
    ' \u200d\u00ad\u2060 ',
    '\u3164\uffa0\u115f',
    '\ufe0f\u{e0041}\u{e0100}',
    '\u2800\u2028',
  ])('treats %j as blank: the default on create, an error on update', async (title) => {
    expect(await postUndescribed('/collections', { title })).toMatchObject({
      body: { collection: { title: `${store.owner.username}'s Collection` } },
    });
    expect(await store.owner.post(`/collections/${id}`, { title })).toEqual(
      failure(400, 'title must not be blank'),
    );
  });

  test('truncates the default to fit, whatever the username', async () => {
    const long = await make.user({ username: 'a'.repeat(63) });
    expect(await long.post('/collections')).toMatchObject({
      status: 200,
      body: { collection: { title: `${'a'.repeat(47)}'s Collection` } },
    });
  });

  test('allows 60 code points, counted after trimming', async () => {
    const title = '🎲'.repeat(60);
    expect(await postUndescribed(`/collections/${id}`, { title: `  ${title}  ` })).toMatchObject({
      body: { collection: { title } },
    });
    for (const path of ['/collections', `/collections/${id}`])
      expect(await store.owner.post(path, { title: `${title}x` })).toEqual(
        failure(400, 'title must be at most 60 characters'),
      );
  });

  test.each(['a\tb', 'a\nb', '\x1b[1m', 'a\x7f', '\u0085', '\u200b\r\u200b'])(
    'rejects %j because of its control characters',
    async (title) => {
      for (const path of ['/collections', `/collections/${id}`])
        expect(await store.owner.post(path, { title })).toEqual(
          failure(400, 'title must not contain control characters'),
        );
    },
  );

  test('trims all kinds of white space', async () => {
    expect(
      await postUndescribed(`/collections/${id}`, { title: '\n\t Tri\u00adm \u200d x\u3000\r\n' }),
    ).toMatchObject({
      body: { collection: { title: 'Tri\u00adm \u200d x' } },
    });
  });

  test.each([[1], [{}], [[]], [true]])('rejects %j in JSON', async (title: unknown) => {
    expect(await store.owner.postJson(`/collections/${id}`, { title })).toEqual(
      failure(400, 'title must be a string'),
    );
    expect(await collection()).toMatchObject({ title: 'Old' });
  });
});

describe('JSON', () => {
  const json = (fields: string, path = `/collections/${id}`) => store.owner.postJson(path, `{${fields}}`);

  test('accepts null where an empty string clears, so that a response can be sent back', async () => {
    await store.owner.post(`/collections/${id}/collection-games/${store.game.id}`, { blurb: 'x' });
    expect(await json('"description":null')).toMatchObject({ body: { collection: { description: null } } });
    expect(await json('"blurb":null', `/collections/${id}/collection-games/${store.game.id}`)).toMatchObject({
      body: { collection_game: { blurb: null } },
    });
    const read = await collection();
    expect(await store.owner.postJson(`/collections/${id}`, read)).toEqual(ok({ collection: read }));
  });

  test('ignores other parameters that are null', async () => {
    const before = await collection();
    expect(
      await json('"title":null,"private":null,"layout":null,"on_profile":null,"collection_id":null'),
    ).toEqual(ok({ collection: before }));
    expect(await json('"game_id":null', `/collections/${id}/add-game`)).toEqual(
      failure(400, 'game_id is required'),
    );
    expect(await json('"game_ids":null', `/collections/${id}/order`)).toEqual(
      failure(400, 'game_ids is required'),
    );
    expect(await json('"title":null', `/collections/${id}?title=New`)).toMatchObject({
      body: { collection: { title: 'New' } },
    });
    expect(await json('"description":null', `/collections/${id}?description=x`)).toEqual(
      failure(400, 'description must be given once'),
    );
  });

  test.each([
    ['1e6', 200],
    ['1000000.0', 200],
    ['10000000e-1', 200],
    ['9007199254740993', 404],
    ['9223372036854775807', 404],
    ['9.223372036854775807e18', 404],
    ['9223372036854775808', 400],
    ['1e19', 400],
    ['1.5', 400],
    ['-1', 400],
    ['9007199254740991.4', 400],
  ])('reads the number %s as an ID: %i', async (number, status) => {
    await sql(
      `INSERT INTO games (id, user_id, slug, title, published_at) VALUES (1000000, $1, 'million', 'M', now())
       ON CONFLICT DO NOTHING`,
      [store.owner.id],
    );
    const response = await json(`"game_id":${number}`, `/collections/${id}/add-game`);
    expect(response.status).toBe(status);
    if (status === 400) expect(response).toEqual(failure(400, 'game_id must be an integer'));
    if (status === 200) expect(response.body).toMatchObject({ collection_game: { game_id: 1_000_000 } });
  });

  test('distinguishes IDs beyond 2^53 in a list, none of which match a game', async () => {
    const ask = (ids: string) => json(`"game_ids":${ids}`, `/collections/${id}/order`);
    expect(
      await postUndescribed(`/collections/${id}/order`, '{"game_ids":[9007199254740992,9007199254740993]}'),
    ).toEqual(ok({ success: true }));
    expect(await ask(`[${store.game.id}.0, 9223372036854775807]`)).toEqual(ok({ success: true }));
    expect(await ask('[9007199254740993,9007199254740993]')).toEqual(
      failure(400, 'game_ids must not contain an id twice'),
    );
    expect(await ask(`[1, 1e0]`)).toEqual(failure(400, 'game_ids must not contain an id twice'));
    for (const ids of [
      '[9223372036854775808]',
      '[1.5]',
      '[1, true]',
      '[1, null]',
      '[1, [2]]',
      '[1, "x,y"]',
      '["1e3"]',
    ])
      expect(await ask(ids)).toEqual(failure(400, NOT_A_LIST));
  });

  test('rejects a repeated name, whatever its values', async () => {
    for (const fields of [
      '"title":"a","title":"b"',
      '"title":"a","title":null,"title":1',
      '"title":["a,b"],"title":[1]',
    ])
      expect(await json(fields)).toEqual(failure(400, 'title must be given once'));
    expect(await json('"other":["a,b"],"other":[1],"\\u0074itle":"New"')).toMatchObject({
      body: { collection: { title: 'New' } },
    });
  });
});

describe('a path parameter that is repeated in the query or body', () => {
  test('is ignored if it has the same value', async () => {
    const path = `/collections/${id}`;
    for (const response of [
      await store.owner.get(`${path}?collection_id=${id}`),
      await store.owner.post(`${path}?collection_id=${id}`, { title: 'New' }),
      await store.owner.post(path, { collection_id: id, title: 'New' }),
      await store.owner.postJson(path, { collection_id: id, title: 'New' }),
      await store.owner.postJson(path, { collection_id: String(id), title: 'New' }),
    ])
      expect(response.status).toBe(200);
    expect(await collection()).toMatchObject({ title: 'New' });
  });

  test('is rejected if its value differs or it is repeated', async () => {
    const path = `/collections/${id}`;
    const once = failure(400, 'collection_id must be given once');
    for (const query of [`${id + 1}`, `0${id}`, `${id}.0`, '', ` ${id}`, 'x', `${id}&collection_id=${id}`])
      expect(await store.owner.get(`${path}?collection_id=${query}`)).toEqual(once);
    expect(await store.owner.postJson(path, { collection_id: id + 1 })).toEqual(once);
    expect(await store.owner.postJson(path, { collection_id: true })).toEqual(once);
    expect(await store.owner.get('/collections/9007199254740993?collection_id=9007199254740995')).toEqual(
      once,
    );
    expect(await store.owner.get('/collections/9007199254740993?collection_id=9007199254740993')).toEqual(
      failure(404, 'invalid collection'),
    );
  });
});

const NOT_A_LIST = 'game_ids must be a JSON array of integers';

describe('invalid input changes nothing', () => {
  test.each<[string, Fields, string[]]>([
    ['add-game', {}, ['game_id is required']],
    ['add-game', { game_id: '' }, ['game_id must be an integer']],
    ['add-game', { game_id: '1e3' }, ['game_id must be an integer']],
    [
      'add-game',
      { game_id: 'x', blurb: 'x\0' },
      ['game_id must be an integer', 'blurb must be valid Unicode text without NUL'],
    ],
    ['remove-game', {}, ['game_id is required']],
    ['remove-game', { 'game_id[]': '1' }, ['game_id must be a single value']],
    ['order', {}, ['game_ids is required']],
    ['order', { 'game_ids[]': '3' }, ['game_ids must be one JSON array, such as [3,1,2]']],
    ['order', { game_ids: '' }, [NOT_A_LIST]],
    ['order', { game_ids: '1,2' }, [NOT_A_LIST]],
    ['order', { game_ids: '{}' }, [NOT_A_LIST]],
    ['order', { game_ids: '["1"]' }, [NOT_A_LIST]],
    ['order', { game_ids: '[1.5]' }, [NOT_A_LIST]],
    ['order', { game_ids: '[1,null]' }, [NOT_A_LIST]],
    ['order', { game_ids: '[[1]]' }, [NOT_A_LIST]],
    ['order', { game_ids: '[1,1]' }, ['game_ids must not contain an id twice']],
    [
      'order',
      { game_ids: JSON.stringify(Array.from({ length: 501 }, (_, i) => i + 1)) },
      ['game_ids must have at most 500 ids'],
    ],
    ['order', { game_ids: '[]', remove_game_ids: '[2,2]' }, ['remove_game_ids must not contain an id twice']],
    ['order', { game_ids: '[]', remove_game_ids: '2' }, ['remove_game_ids must be a JSON array of integers']],
    [
      'order',
      { game_ids: '[]', remove_game_ids: JSON.stringify(Array.from({ length: 501 }, (_, i) => i + 1)) },
      ['remove_game_ids must have at most 500 ids'],
    ],
    [
      '',
      { layout: 'tiles', private: 'maybe', on_profile: '' },
      ['private must be a boolean', 'layout must be one of grid, list', 'on_profile must be a boolean'],
    ],
    ['', { layout: '' }, ['layout must be one of grid, list']],
    ['', { description: 'x'.repeat(20_001) }, ['description must be at most 20000 characters']],
    ['', { description: '<'.repeat(19_000) }, ['description must be at most 20000 characters']],
    ['', { 'title[a]': 'x' }, ['title must be a single value']],
    ['collection-games/abc', { blurb: 'x' }, ['game_id must be an integer']],
  ])('%s %j', async (action, fields, problems) => {
    const path = action ? `/collections/${id}/${action}` : `/collections/${id}`;
    const before = await sql('SELECT * FROM collections WHERE id = $1', [id]);
    expect(await store.owner.post(path, fields)).toEqual(failure(400, ...problems));
    expect(await sql('SELECT * FROM collections WHERE id = $1', [id])).toEqual(before);
    expect(await entries()).toEqual([[store.game.id, null]]);
  });

  test('accepts an HTML bomb that fits into a body', async () => {
    expect(await store.owner.post(`/collections/${id}`, { description: '<p>x</p>'.repeat(10_000) })).toEqual(
      failure(400, 'description must be at most 20000 characters'),
    );
    expect(await store.owner.post(`/collections/${id}`, { description: '<b>'.repeat(26_000) })).toMatchObject(
      {
        body: { collection: { description: null } },
      },
    );
    // Sanitizing would remove all of it, so it isn't parsed.
    expect(await store.owner.post(`/collections/${id}`, { description: '<b>'.repeat(27_000) })).toEqual(
      failure(400, 'description must be at most 20000 characters'),
    );
  });

  test('accepts 500 IDs, including those of missing games', async () => {
    const ids = [store.game.id, ...Array.from({ length: 499 }, (_, i) => 1_000_000 + i)];
    expect(
      await store.owner.post(`/collections/${id}/order`, { game_ids: ids, remove_game_ids: ids.slice(1) }),
    ).toEqual(ok({ success: true }));
    expect(await store.owner.post(`/collections/${id}/order`, { game_ids: '[9007199254740993, 0]' })).toEqual(
      ok({ success: true }),
    );
    expect(await entries()).toEqual([[store.game.id, null]]);
    expect(await store.owner.post(`/collections/${id}/add-game`, { game_id: '9007199254740993' })).toEqual(
      failure(404, 'invalid game'),
    );
  });

  test('rejects the same name in query and body', async () => {
    expect(
      await store.owner.post(`/collections/${id}/add-game?game_id=${store.game.id}`, {
        game_id: store.game.id,
      }),
    ).toEqual(failure(400, 'game_id must be given once'));
  });

  test('limits the length of the sanitized description', async () => {
    expect(
      await store.owner.post(`/collections/${id}`, {
        description: `<script>${'x'.repeat(30_000)}</script>${'🎲'.repeat(20_000)}`,
      }),
    ).toMatchObject({ status: 200, body: { collection: { description: '🎲'.repeat(20_000) } } });
  });

  test('ignores an unknown parameter', async () => {
    expect(
      (await store.owner.post(`/collections/${id}`, { constructor: 'x', __proto__: 'y', user_id: 1 })).status,
    ).toBe(200);
    expect(await collection()).toMatchObject({ user_id: store.owner.id });
  });

  test('rejects a file in a form', async () => {
    const form = new FormData();
    form.set('title', new Blob(['x']), 'x.txt');
    const response = await fetch(`${baseUrl()}/collections/${id}`, {
      method: 'POST',
      headers: store.owner.headers,
      body: form,
    });
    expect(response.status).toBe(400);
  });
});

test.each(['', '; name=""'])('ignores a part of a multipart body without a name%s', async (name) => {
  const parts = [
    ['; name="title"', 'New'],
    [name, 'nobody'],
  ].map(([given, value]) => `--b\r\nContent-Disposition: form-data${given}\r\n\r\n${value}\r\n`);
  const { status, body } = await send('POST', `/collections/${id}`, {
    headers: { ...store.owner.headers, 'content-type': 'multipart/form-data; boundary=b' },
    body: `${parts.join('')}--b--\r\n`,
  });
  expect([status, body]).toMatchObject([200, { collection: { title: 'New' } }]);
});

test('accepts only JSON white space in a list', async () => {
  const order = (game_ids: string) => store.owner.post(`/collections/${id}/order`, { game_ids });
  expect(await order(` [ ${store.game.id}\t,\r\n999 ] `)).toEqual(ok({ success: true }));
  expect(await order(`[${store.game.id}\u00a0]`)).toEqual(
    failure(400, 'game_ids must be a JSON array of integers'),
  );
});

test('long HTML of a few clients doesn’t block that of others', async () => {
  const app = await openApp({ DATABASE_URL: databaseUrl(), TRUSTED_PROXIES: 'loopback' });
  const url = `${await app.getUrl()}/collections/${id}`;
  let ended = 0;
  const post = async (address: string, fields: Fields) => {
    const { status } = await fetch(url, {
      method: 'POST',
      headers: { ...store.owner.headers, 'x-forwarded-for': address },
      body: new URLSearchParams({ description: '<p>Long</p>'.repeat(200), ...fields }),
    });
    ended++;
    return status;
  };
  // Waits end only when the thread sanitizes.
  const timeout = jest.spyOn(AbortSignal, 'timeout').mockImplementation(() => new AbortController().signal);
  let release = () => {};
  const sanitized = new Promise<string>((resolve) => (release = () => resolve('<p>Long</p>')));
  const thread = jest.spyOn(htmlThread as never, 'onThread').mockReturnValue(sanitized as never);
  const others = Array.from({ length: 8 * 16 }, (_, i) => post(`203.0.113.${i % 8}`, { title: '' }));
  // The queue is full.
  await until(() => ended > 0);
  const status = post('203.0.113.100', {});
  const before = ended;
  await until(() => ended > before);
  release();
  expect(await status).toBe(200);
  await Promise.all(others);
  thread.mockRestore();
  timeout.mockRestore();
  await app.close();
});
