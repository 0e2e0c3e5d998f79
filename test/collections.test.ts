import { actors, failure, make, ok, sql, useStore } from './support/store';

useStore();

const MISSING = failure(404, 'invalid collection');
const FORBIDDEN = failure(403, "you can't edit this collection");
const TIMESTAMP = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);

type Fields = Record<string, unknown>;

const collectionOf = ({ body }: { body: unknown }) =>
  (body as { collection: Fields & { id: number } }).collection;

describe('GET /collections/ID', () => {
  test('a collection', async () => {
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

  test('a private one is there for those who can edit it, and for nobody else', async () => {
    const { owner, admin, stranger } = await actors();
    const { id } = await make.collection({ owner, admins: [admin], private: true });
    expect(await stranger.get(`/collections/${id}`)).toEqual(MISSING);
    expect(await stranger.get(`/collections/${id + 1000}`)).toEqual(MISSING);
    expect((await owner.get(`/collections/${id}`)).status).toBe(200);
    expect((await admin.get(`/collections/${id}`)).status).toBe(200);
  });

  test.each(['2147483648', '9007199254740993', '9223372036854775807', '0'])(
    'the id %s is not found',
    async (id) => {
      const { owner } = await actors();
      expect(await owner.get(`/collections/${id}`)).toEqual(MISSING);
    },
  );

  test.each(['abc', '1.5', '1e3', '0x10', '%2012%20', '+5', '%D9%A1', '%00', '99999999999999999999'])(
    'the id %s is no integer',
    async (id) => {
      const { owner } = await actors();
      expect(await owner.get(`/collections/${id}`)).toEqual(failure(400, 'collection_id must be an integer'));
    },
  );
});

describe('POST /collections', () => {
  test('with nothing said', async () => {
    const { owner } = await actors();
    const answer = await owner.post('/collections');
    const { id } = collectionOf(answer);
    expect(answer).toEqual(
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
    expect(await owner.get(`/collections/${id}`)).toEqual(answer);
  });

  test('with a game and a note on it', async () => {
    const { owner } = await actors();
    const game = await make.game({ owner });
    const answer = await owner.post('/collections', {
      game_id: game.id,
      blurb: '<b>x</b>',
      title: ' A ',
      private: 'yes',
    });
    expect(collectionOf(answer)).toMatchObject({ games_count: 1, layout: 'list', title: 'A', private: true });
    expect(await owner.get(`/collections/${collectionOf(answer).id}/collection-games`)).toMatchObject({
      body: {
        page: 1,
        per_page: 100,
        collection_games: [{ game_id: game.id, position: 1, blurb: '<b>x</b>' }],
      },
    });
  });

  test('a game that cannot be seen creates nothing', async () => {
    const { owner, stranger } = await actors();
    const game = await make.game({ owner, visibility: 'private' });
    expect(await stranger.post('/collections', { game_id: game.id })).toEqual(failure(404, 'invalid game'));
    expect(await stranger.get('/profile/collections')).toEqual(ok({ collections: [] }));
  });
});

describe('the games of a collection', () => {
  test('add, update, order, remove', async () => {
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
    expect(collectionOf(await owner.get(`/collections/${id}`)).games_count).toBe(2);
    expect(await owner.post(`/collections/${id}/delete`)).toEqual(ok({ success: true }));
    expect(await owner.get(`/collections/${id}`)).toEqual(MISSING);
    expect(await sql('SELECT FROM collection_games WHERE collection_id = $1', [id])).toEqual([]);
  });
});
