import { useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';

useStore();

const MISSING = failure(404, 'invalid collection');
const FORBIDDEN = failure(403, "you can't edit this collection");
const TIMESTAMP = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);

type Fields = Record<string, unknown>;

const readCollection = ({ body }: { body: unknown }) =>
  (body as { collection: Fields & { id: number } }).collection;

describe('GET /collections/ID', () => {
  test('returns a collection', async () => {
    const { owner, stranger } = await actors();
    const game = await make.game({ owner });
    const { id } = await make.collection({
      owner,
      games: [game],
      title: 'Été à la mer!',
      description: '<b>x</b>',
      created_at: '2024-05-06T07:08:09.9Z',
      updated_at: '2024-05-07T07:08:09.9Z',
    });
    expect(await stranger.get(`/collections/${id}`)).toEqual(
      ok({
        collection: {
          id,
          title: 'Été à la mer!',
          url: `https://gamewharf.example/c/${id}/ete-a-la-mer`,
          user_id: owner.id,
          games_count: 1,
          private: false,
          description: '<b>x</b>',
          layout: 'grid',
          created_at: '2024-05-06T07:08:09Z',
          updated_at: '2024-05-07T07:08:09Z',
        },
      }),
    );
  });

  test('returns a private collection only to its editors', async () => {
    const { owner, admin, stranger } = await actors();
    const { id } = await make.collection({ owner, admins: [admin], private: true });
    expect(await stranger.get(`/collections/${id}`)).toEqual(MISSING);
    expect(await stranger.get(`/collections/${id + 1000}`)).toEqual(MISSING);
    expect((await owner.get(`/collections/${id}`)).status).toBe(200);
    expect((await admin.get(`/collections/${id}`)).status).toBe(200);
  });

  test.each(['2147483648', '9007199254740993', '9223372036854775807', '0'])(
    'returns 404 for the ID %s',
    async (id) => {
      const { owner } = await actors();
      expect(await owner.get(`/collections/${id}`)).toEqual(MISSING);
    },
  );

  test.each(['abc', '1.5', '1e3', '0x10', '%2012%20', '+5', '%D9%A1', '%00', '99999999999999999999'])(
    'returns 400 for the ID %s',
    async (id) => {
      const { owner } = await actors();
      expect(await owner.get(`/collections/${id}`)).toEqual(failure(400, 'collection_id must be an integer'));
    },
  );
});

describe('POST /collections', () => {
  test('returns a URL without characters that need escaping', async () => {
    const { owner } = await actors();
    const { id, url } = readCollection(await owner.post('/collections', { title: 'ночь 𐱅!' }));
    expect(url).toBe(`https://gamewharf.example/c/${id}/%D0%BD%D0%BE%D1%87%D1%8C-%F0%90%B1%85`);
  });

  test('creates an empty collection with default values if no parameters are sent', async () => {
    const { owner } = await actors();
    const response = await owner.post('/collections');
    const { id } = readCollection(response);
    expect(response).toEqual(
      ok({
        collection: {
          id,
          title: `${owner.username}'s Collection`,
          url: `https://gamewharf.example/c/${id}/${owner.username}s-collection`,
          user_id: owner.id,
          games_count: 0,
          private: false,
          description: null,
          layout: 'grid',
          created_at: TIMESTAMP,
          updated_at: TIMESTAMP,
        },
      }),
    );
    expect(await owner.get(`/collections/${id}`)).toEqual(response);
  });

  test('adds a game with a blurb to the new collection', async () => {
    const { owner } = await actors();
    const game = await make.game({ owner });
    const response = await owner.post('/collections', {
      game_id: game.id,
      blurb: '<b>x</b>',
      title: ' A ',
      private: 'yes',
    });
    expect(readCollection(response)).toMatchObject({
      games_count: 1,
      layout: 'list',
      title: 'A',
      private: true,
    });
    expect(await owner.get(`/collections/${readCollection(response).id}/collection-games`)).toMatchObject({
      body: {
        page: 1,
        per_page: 100,
        collection_games: [{ game_id: game.id, position: 1, blurb: '<b>x</b>' }],
      },
    });
  });

  test('sets the layout to list for a game with a blurb, unless another is requested', async () => {
    const { owner } = await actors();
    const { id: game_id } = await make.game({ owner });
    const cases: [Fields, string, number][] = [
      [{ game_id }, 'grid', 1],
      [{ blurb: 'x' }, 'grid', 0],
      [{ game_id, blurb: '' }, 'grid', 1],
      [{ game_id, blurb: 'x', layout: 'grid' }, 'grid', 1],
      [{ layout: 'list' }, 'list', 0],
    ];
    for (const [fields, layout, games_count] of cases)
      expect(readCollection(await owner.post('/collections', fields))).toMatchObject({ layout, games_count });
  });

  test('creates nothing if the caller cannot view the game', async () => {
    const { owner, stranger } = await actors();
    const game = await make.game({ owner, visibility: 'private' });
    expect(await stranger.post('/collections', { game_id: game.id })).toEqual(failure(404, 'invalid game'));
    expect(await stranger.get('/profile/collections')).toEqual(ok({ collections: [] }));
  });
});

describe('the games of a collection', () => {
  test('adds, updates, orders and removes entries', async () => {
    const { owner, admin, stranger } = await actors();
    const games = await Promise.all([1, 2, 3].map(() => make.game({ owner })));
    const [a, b, c] = games.map(({ id }) => id) as [number, number, number];
    const { id } = await make.collection({ owner, admins: [admin] });
    expect(await stranger.post(`/collections/${id}/add-game`, { game_id: a })).toEqual(FORBIDDEN);
    for (const game_id of [a, b, c])
      expect(
        await admin.post(`/collections/${id}/add-game`, { game_id, blurb: `<i>${game_id}</i>` }),
      ).toMatchObject({
        status: 200,
        body: { collection_game: { game_id, blurb: `<i>${game_id}</i>`, user_id: admin.id } },
      });
    const list = async () => {
      const { body } = await stranger.get(`/collections/${id}/collection-games`);
      return (body as { collection_games: Fields[] }).collection_games.map(({ game_id, position }) => [
        game_id,
        position,
      ]);
    };
    expect(await list()).toEqual([
      [a, 1],
      [b, 2],
      [c, 3],
    ]);
    expect(await owner.post(`/collections/${id}/order`, { game_ids: [c, 99999, a] })).toEqual(
      ok({ success: true }),
    );
    expect(await list()).toEqual([
      [c, 1],
      [a, 2],
      [b, 3],
    ]);
    expect(await owner.post(`/collections/${id}/remove-game`, { game_id: a })).toEqual(
      ok({ success: true, removed: true }),
    );
    expect(await owner.post(`/collections/${id}/remove-game`, { game_id: a })).toEqual(
      ok({ success: true, removed: false }),
    );
    expect(await list()).toEqual([
      [c, 1],
      [b, 2],
    ]);
    expect(await owner.post(`/collections/${id}/collection-games/${b}`, { blurb: '' })).toMatchObject({
      status: 200,
      body: { collection_game: { position: 2, blurb: null } },
    });
    expect(await owner.post(`/collections/${id}/collection-games/${a}`, { blurb: '' })).toEqual(
      failure(404, 'game is not in the collection'),
    );
    expect(readCollection(await owner.get(`/collections/${id}`)).games_count).toBe(2);
    expect(await owner.post(`/collections/${id}/delete`)).toEqual(ok({ success: true }));
    expect(await owner.get(`/collections/${id}`)).toEqual(MISSING);
    expect(await sql('SELECT FROM collection_games WHERE collection_id = $1', [id])).toEqual([]);
  });
});

test('skips removed entries, keeps unnamed ones in their order, and appends new games', async () => {
  const { owner } = await actors();
  const games = await Promise.all([1, 2, 3, 4, 5, 6].map(() => make.game({ owner })));
  const [a, b, c, d, e, f] = games.map(({ id }) => id) as [number, number, number, number, number, number];
  const other = await make.collection({ owner, games });
  const { id } = await make.collection({ owner, games: games.slice(0, 5) });
  const list = async (of: number) => {
    const { body } = await owner.get(`/collections/${of}/collection-games`);
    return (body as { collection_games: { game_id: number }[] }).collection_games.map(
      ({ game_id }) => game_id,
    );
  };
  const order = (fields: Fields) => owner.post(`/collections/${id}/order`, fields);
  expect(await order({ game_ids: [e, d, b, f], remove_game_ids: [d, f] })).toEqual(ok({ success: true }));
  expect(await list(id)).toEqual([e, b, a, c]);
  expect(await owner.post(`/collections/${id}/add-game`, { game_id: f })).toMatchObject({
    body: { collection_game: { position: 5 } },
  });
  // A part of the same order moves only entries whose position differs.
  for (const [game_ids, outcome] of [
    [
      [b, e],
      [b, e, a, c, f],
    ],
    [[b], [b, e, a, c, f]],
    [[e], [e, b, a, c, f]],
    [
      [e, a],
      [e, a, b, c, f],
    ],
    [
      [f, c],
      [f, c, e, a, b],
    ],
    [[], [f, c, e, a, b]],
  ]) {
    await order({ game_ids });
    expect(await list(id)).toEqual(outcome);
  }
  await owner.post(`/collections/${id}/remove-game`, { game_id: c });
  expect(await list(id)).toEqual([f, e, a, b]);
  expect(readCollection(await owner.get(`/collections/${id}`)).games_count).toBe(4);
  expect(await list(other.id)).toEqual([a, b, c, d, e, f]);
  expect(readCollection(await owner.get(`/collections/${other.id}`)).games_count).toBe(6);
});

describe('GET /profile/collections', () => {
  test('lists collections that the user owns or administers, most recently updated first', async () => {
    const { owner, admin, stranger } = await actors();
    const [held, not] = [await make.game({ owner }), await make.game({ owner })];
    const old = await make.collection({ owner: admin, games: [held], updated_at: '2024-01-01T00:00:00Z' });
    const administered = await make.collection({
      owner,
      admins: [admin],
      private: true,
      updated_at: '2024-01-03T00:00:00Z',
    });
    const both = await make.collection({
      owner: admin,
      admins: [admin],
      games: [not],
      updated_at: '2024-01-02T00:00:00Z',
    });
    await make.collection({ owner });
    const list = async (query: Fields = {}) => {
      const { status, body } = await admin.get('/profile/collections', query);
      expect(status).toBe(200);
      return (body as { collections: Fields[] }).collections;
    };
    expect((await list()).map(({ id }) => id)).toEqual([administered.id, both.id, old.id]);
    expect((await list()).some((collection) => 'has_game' in collection)).toBe(false);
    expect((await list({ game_id: held.id })).map(({ id, has_game }) => [id, has_game])).toEqual([
      [administered.id, false],
      [both.id, false],
      [old.id, true],
    ]);
    expect((await list({ game_id: '9007199254740993' })).map(({ has_game }) => has_game)).toEqual([
      false,
      false,
      false,
    ]);
    expect(await stranger.get('/profile/collections')).toEqual(ok({ collections: [] }));
    expect(await stranger.get('/profile/collections', { game_id: 'x' })).toEqual(
      failure(400, 'game_id must be an integer'),
    );
    await owner.post(`/collections/${old.id}`, { title: 'x' });
    await admin.post(`/collections/${old.id}/add-game`, { game_id: not.id });
    expect((await list())[0]).toMatchObject({ id: old.id });
  });
});

describe('permissions to change a collection', () => {
  const WRITES: [string, (game_id: number) => Fields][] = [
    ['', () => ({ title: 'x' })],
    ['/delete', () => ({})],
    ['/add-game', (game_id) => ({ game_id })],
    ['/remove-game', (game_id) => ({ game_id })],
    ['/order', (game_id) => ({ game_ids: [game_id] })],
    ['/order', (game_id) => ({ game_ids: [], remove_game_ids: [game_id] })],
    ['/collection-games/GAME', () => ({ blurb: 'x' })],
  ];

  test.each(WRITES)('%s', async (action, fields) => {
    const { owner, admin, stranger } = await actors();
    const game = await make.game({ owner });
    const games = [await make.game({ owner }), game];
    const path = (id: number) => `/collections/${id}${action.replace('GAME', String(game.id))}`;
    const open = await make.collection({ owner, admins: [admin], games });
    const closed = await make.collection({ owner, admins: [admin], games, private: true });
    const state = () =>
      sql(
        'SELECT c.*, e.* FROM collections c JOIN collection_games e ON e.collection_id = c.id ORDER BY c.id',
      );
    const before = await state();
    expect(await stranger.post(path(open.id), fields(game.id))).toEqual(FORBIDDEN);
    expect(await stranger.post(path(closed.id), fields(game.id))).toEqual(MISSING);
    expect(await owner.post(path(closed.id + 1000), fields(game.id))).toEqual(MISSING);
    const viewer = owner.with(await make.key({ owner, scopes: ['collection:view', 'profile'] }));
    expect(await viewer.post(path(open.id), fields(game.id))).toEqual(
      failure(403, 'api key does not permit `collection:edit`'),
    );
    expect(await state()).toEqual(before);
    const editor = admin.with(await make.key({ owner: admin, scopes: ['collection:edit'] }));
    expect((await editor.post(path(open.id), fields(game.id))).status).toBe(200);
    expect((await owner.post(path(closed.id), fields(game.id))).status).toBe(200);
  });
});

describe('games with restricted visibility', () => {
  test('can be added by users who can view them', async () => {
    const { owner, admin, developer, stranger } = await actors();
    const hidden = await make.game({ owner: developer, visibility: 'private' });
    const draft = await make.game({ owner: developer, published_at: null });
    const { id } = await make.collection({ owner, admins: [admin, developer] });
    for (const game_id of [hidden.id, draft.id, 999_999, 0]) {
      expect(await owner.post(`/collections/${id}/add-game`, { game_id })).toEqual(
        failure(404, 'invalid game'),
      );
      // The collection itself is checked first.
      expect(await stranger.post(`/collections/${id}/add-game`, { game_id })).toEqual(FORBIDDEN);
    }
    expect((await developer.post(`/collections/${id}/add-game`, { game_id: hidden.id })).status).toBe(200);
  });

  test('can be removed and moved, but not viewed, after they become private', async () => {
    const { owner, developer } = await actors();
    const [a, b] = [await make.game({ owner: developer }), await make.game({ owner: developer })];
    const { id } = await make.collection({ owner, admins: [developer], games: [a, b] });
    await sql(`UPDATE games SET visibility = 'private' WHERE id = $1`, [b.id]);
    const path = `/collections/${id}`;
    const before = await sql('SELECT updated_at FROM collections WHERE id = $1', [id]);
    expect(await owner.post(`${path}/collection-games/${b.id}`, { blurb: 'x' })).toEqual(
      failure(404, 'game is not in the collection'),
    );
    expect(await owner.post(`${path}/add-game`, { game_id: b.id })).toEqual(failure(404, 'invalid game'));
    expect(await sql('SELECT updated_at FROM collections WHERE id = $1', [id])).toEqual(before);
    expect(await owner.post(`${path}/order`, { game_ids: [b.id] })).toEqual(ok({ success: true }));
    expect(await owner.get(`${path}/collection-games`)).toMatchObject({
      body: { collection_games: [{ game_id: a.id, position: 2 }] },
    });
    expect(readCollection(await owner.get(path)).games_count).toBe(2);
    expect(await owner.post(`${path}/remove-game`, { game_id: b.id })).toEqual(
      ok({ success: true, removed: true }),
    );
  });
});

describe('adding a game twice', () => {
  test('returns the existing entry', async () => {
    const { owner, admin } = await actors();
    const games = await Promise.all([1, 2, 3].map(() => make.game({ owner })));
    const { id } = await make.collection({ owner, admins: [admin], games });
    const path = `/collections/${id}`;
    await owner.post(`${path}/collection-games/${games[1]!.id}`, { blurb: 'first' });
    const before = await sql('SELECT * FROM collections WHERE id = $1', [id]);
    expect(await admin.post(`${path}/add-game`, { game_id: games[1]!.id, blurb: 'second' })).toMatchObject({
      status: 200,
      body: { collection_game: { position: 2, blurb: 'first', user_id: owner.id } },
    });
    expect(await sql('SELECT * FROM collections WHERE id = $1', [id])).toEqual(before);
  });
});

describe('updated_at', () => {
  test('changes with every update, and with nothing else', async () => {
    const { owner } = await actors();
    const [a, b] = [await make.game({ owner }), await make.game({ owner })];
    await make.collection({ owner, games: [a, b] });
    const { id } = await make.collection({ owner, games: [a] });
    const path = `/collections/${id}`;
    const stamp = async () =>
      (await sql<{ updated_at: string }>('SELECT updated_at FROM collections WHERE id = $1', [id]))[0]!
        .updated_at;
    const moves = async (action: string, fields: Fields) => {
      const before = await stamp();
      expect((await owner.post(path + action, fields)).status).toBe(200);
      return (await stamp()) > before;
    };
    expect(await moves('/add-game', { game_id: b.id })).toBe(true);
    expect(await moves('/add-game', { game_id: b.id })).toBe(false);
    expect(await moves(`/collection-games/${b.id}`, { blurb: 'x' })).toBe(true);
    expect(await moves(`/collection-games/${b.id}`, {})).toBe(false);
    expect(await moves(`/collection-games/${b.id}`, { blurb: ' x ' })).toBe(false);
    expect(await moves(`/collection-games/${b.id}`, { blurb: '' })).toBe(true);
    expect(await moves(`/collection-games/${b.id}`, { blurb: '' })).toBe(false);
    expect(await moves('/order', { game_ids: [b.id] })).toBe(true);
    expect(await moves('/order', { game_ids: [] })).toBe(false);
    for (const game_ids of [[b.id], [b.id, a.id], [4e6, b.id, 5e6, a.id]])
      expect(await moves('/order', { game_ids })).toBe(false);
    expect(await moves('/order', { game_ids: [a.id, b.id], remove_game_ids: [a.id, 4e6] })).toBe(true);
    expect(await moves('/order', { game_ids: [b.id], remove_game_ids: [a.id] })).toBe(false);
    expect(await moves('/add-game', { game_id: a.id })).toBe(true);
    expect(await moves('/order', { game_ids: [a.id, b.id] })).toBe(true);
    expect(await moves('/remove-game', { game_id: b.id })).toBe(true);
    expect(await moves('/remove-game', { game_id: b.id })).toBe(false);
    expect(await moves('', { title: 'x' })).toBe(true);
    expect(await moves('', {})).toBe(false);
    const { description, layout, private: hidden } = readCollection(await owner.get(path));
    const same = { title: ' x ', description: description ?? '', layout, private: hidden };
    expect(await moves('', same)).toBe(false);
    for (const changed of [{ description: 'y' }, { layout: 'list' }, { private: true }]) {
      expect(await moves('', { ...same, ...changed })).toBe(true);
      expect(await moves('', changed)).toBe(false);
    }
    for (const on_profile of [true, true, false, false]) expect(await moves('', { on_profile })).toBe(false);
  });
});

test('names the scope in a 403 for a missing permission', async () => {
  const { owner, stranger } = await actors();
  const { id } = await make.collection({ owner });
  const { status, headers } = await send('POST', `/collections/${id}/delete`, { headers: stranger.headers });
  expect([status, headers.get('www-authenticate')]).toEqual([403, 'Bearer realm="gamewharf"']);
});

describe('if a key of a new row exists', () => {
  test('the client tries again, because an import took the ID', async () => {
    const { owner } = await actors();
    const { id } = await make.collection({ owner });
    await sql(`SELECT setval(pg_get_serial_sequence('collections', 'id'), $1, false)`, [id]);
    expect(await owner.post('/collections', { title: 'Next' })).toEqual(failure(503, 'service unavailable'));
    expect((await owner.post('/collections', { title: 'Next' })).status).toBe(200);
  });

  test('it is a bug for other keys, which are not drawn', async () => {
    const { owner } = await actors();
    await sql(`
      CREATE FUNCTION twice() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        INSERT INTO profile_collections (collection_id, user_id) VALUES (NEW.id, NEW.user_id), (NEW.id, NEW.user_id);
        RETURN NULL;
      END $$;
      CREATE TRIGGER twice AFTER INSERT ON collections FOR EACH ROW EXECUTE FUNCTION twice()`);
    try {
      expect(await owner.post('/collections', { title: 'Next' })).toEqual(
        failure(500, 'internal server error'),
      );
    } finally {
      await sql('DROP TRIGGER twice ON collections');
    }
  });
});
