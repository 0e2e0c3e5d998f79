import { Audit } from '../../src/audit/audit';
import { MAX_GAMES } from '../../src/games/editing/game-edits.service';
import { holdLocks, untilBlocked } from '../support/locks';
import { type Actor } from '../support/actor';
import { theApp, useStore } from '../support/app';
import { failure, type HttpResponse, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';

useStore();

let owner: Actor;
let admin: Actor;
let stranger: Actor;

beforeAll(async () => {
  ({ owner, admin, stranger } = await actors());
  await sql('UPDATE users SET developer = true WHERE id = $1', [owner.id]);
});

interface Game {
  id: number;
  title: string;
  url: string;
  published_at: string | null;
}
const readGame = ({ body }: HttpResponse) => (body as { game: Game }).game;
const stored = async (id: number) => (await sql('SELECT * FROM games WHERE id = $1', [id]))[0];
const once = (path: string, key: string, fields: object, who = owner) =>
  send('POST', path, {
    headers: { ...who.headers, 'content-type': 'application/json', 'idempotency-key': key },
    body: JSON.stringify(fields),
  });

async function events(game_id: number) {
  await theApp().get(Audit).flush();
  return sql(
    `SELECT event, user_id, details - 'game_id' AS details FROM audit_events
     WHERE (details->>'game_id')::bigint = $1 ORDER BY id`,
    [game_id],
  );
}

describe('create', () => {
  test('a title is enough: a private, unpublished, free game with a slug from the title', async () => {
    const response = await owner.post('/games', { title: ' Röde Orm 2! ' });
    const { id } = readGame(response);
    expect(response).toEqual(
      ok({
        game: {
          id,
          title: 'Röde Orm 2!',
          short_text: null,
          url: `https://${owner.username}.gamewharf.example/rode-orm-2`,
          cover_url: null,
          type: 'default',
          classification: 'game',
          traits: [],
          published: false,
          published_at: null,
          created_at: expect.any(String),
          min_price: 0,
          views_count: 0,
          downloads_count: 0,
          purchases_count: 0,
          earnings: [],
        },
      }),
    );
    expect(await stored(id)).toMatchObject({ user_id: owner.id, visibility: 'private', slug: 'rode-orm-2' });
    expect(await events(id)).toEqual([{ event: 'game.created', user_id: owner.id, details: {} }]);
    expect(await stranger.get(`/games/${id}`)).toEqual(failure(404, 'invalid game'));
  });

  test('stores every field', async () => {
    const fields = {
      title: 'Everything',
      slug: 'All_of.it-1',
      short_text: 'A short text',
      cover_url: 'HTTPS://cdn.example.com/1.png',
      type: 'html',
      min_price: 499,
      visibility: 'public',
      published: true,
    };
    const game = readGame(await owner.postJson('/games', fields));
    const { slug, visibility, ...shown } = fields;
    expect(game).toMatchObject({ ...shown, traits: ['can_be_bought'], published_at: expect.any(String) });
    expect(await stored(game.id)).toMatchObject({ slug, visibility });
    expect((await stranger.get(`/games/${game.id}`)).status).toBe(200);
  });

  test('lists all invalid fields', async () => {
    expect(
      await owner.postJson('/games', {
        title: ' \u200b ',
        slug: 'no spaces',
        short_text: 'x'.repeat(1001),
        cover_url: 'javascript:alert(1)',
        type: 'exe',
        min_price: -1,
        visibility: 'secret',
        published: 'maybe',
      }),
    ).toEqual(
      failure(
        400,
        'title must not be blank',
        'slug must consist of letters, digits, _, . and -',
        'short_text must be at most 1000 characters',
        'cover_url must be an http or https URL',
        'type must be one of default, flash, unity, java, html',
        'min_price must be between 0 and 9007199254740991',
        'visibility must be one of public, restricted, private',
        'published must be a boolean',
      ),
    );
    expect(await owner.post('/games')).toEqual(failure(400, 'title is required'));
    expect(await owner.post('/games', { title: 'a\tb' })).toEqual(
      failure(400, 'title must not contain control characters'),
    );
    expect(await owner.post('/games', { title: 'x'.repeat(501) })).toEqual(
      failure(400, 'title must be at most 500 characters'),
    );
    // The URL of a game with this slug would be that of another page.
    for (const slug of ['.', '..'])
      expect(await owner.post('/games', { title: 'Dots', slug })).toEqual(
        failure(400, 'slug must consist of letters, digits, _, . and -'),
      );
  });

  test('a title without Latin letters needs a slug', async () => {
    expect(await owner.post('/games', { title: '月光' })).toEqual(
      failure(400, 'slug is required, as the title has no Latin letters or digits'),
    );
    expect((await owner.post('/games', { title: '月光', slug: 'moon' })).status).toBe(200);
  });

  test('the owner can have a slug once', async () => {
    await owner.post('/games', { title: 'Twice' });
    expect(await owner.post('/games', { title: 'Twice' })).toEqual(
      failure(400, 'slug is taken by another game'),
    );
    const other = await make.user({ developer: true });
    expect((await other.post('/games', { title: 'Twice' })).status).toBe(200);
  });

  test('requires a developer account', async () => {
    expect(await stranger.post('/games', { title: 'Mine' })).toEqual(
      failure(403, 'developer account required'),
    );
  });

  test(`stops at ${MAX_GAMES} games, however many are created at once`, async () => {
    const seller = await make.user({ developer: true });
    await sql(
      `INSERT INTO games (user_id, slug, title) SELECT $1, 'g' || n, 'G' FROM generate_series(1, $2) n`,
      [seller.id, MAX_GAMES - 1],
    );
    const responses = await Promise.all(
      ['One', 'Two', 'Three'].map((title) => seller.post('/games', { title })),
    );
    expect(responses.map(({ status }) => status).toSorted()).toEqual([200, 400, 400]);
    expect(responses).toContainEqual(failure(400, 'too many games'));
  });

  test('a retry with the same key creates no second game', async () => {
    const [first, second] = [
      await once('/games', 'create-1', { title: 'Only once' }),
      await once('/games', 'create-1', { title: 'Only once' }),
    ];
    expect(second.body).toEqual(first.body);
    expect(await sql(`SELECT count(*) FROM games WHERE title = 'Only once'`)).toEqual([{ count: 1 }]);
    expect(await events(readGame(first).id)).toHaveLength(1);
  });
});

describe('update', () => {
  test('changes only the fields that are sent', async () => {
    const game = await make.game({ owner, admins: [admin], short_text: 'Old', min_price: 100 });
    const response = await admin.postJson(`/games/${game.id}`, { title: 'New', cover_url: null });
    expect(response).toEqual(await owner.post(`/games/${game.id}`));
    expect(readGame(response)).toMatchObject({ title: 'New', short_text: 'Old', min_price: 100 });
    expect(await stored(game.id)).toMatchObject({ slug: game.slug, visibility: 'public' });
    expect(await events(game.id)).toEqual([
      { event: 'game.updated', user_id: admin.id, details: { fields: ['title', 'cover_url'] } },
      { event: 'game.updated', user_id: owner.id, details: { fields: [] } },
    ]);
  });

  test('null and an empty text clear the texts that can be missing', async () => {
    const texts = { short_text: 'Text', cover_url: 'https://example.com/1.png' };
    const game = await make.game({ owner, ...texts });
    expect(
      readGame(await owner.postJson(`/games/${game.id}`, { short_text: null, cover_url: '' })),
    ).toMatchObject({
      short_text: null,
      cover_url: null,
    });
  });

  test('publishing sets the time once; a game can be unpublished', async () => {
    const game = await make.game({ owner, published_at: null });
    const published = readGame(await owner.post(`/games/${game.id}`, { published: true }));
    expect(published).toMatchObject({ published: true, published_at: expect.any(String) });
    await sql(`UPDATE games SET published_at = '2020-01-01' WHERE id = $1`, [game.id]);
    expect(readGame(await owner.post(`/games/${game.id}`, { published: true })).published_at).toBe(
      '2020-01-01T00:00:00Z',
    );
    expect(readGame(await owner.post(`/games/${game.id}`, { published: false }))).toMatchObject({
      published: false,
      published_at: null,
    });
  });

  test('a price adds the trait of games that can be bought, which stays', async () => {
    const game = await make.game({ owner, traits: '{p_linux}' });
    const traits = async (min_price: number) =>
      (readGame(await owner.post(`/games/${game.id}`, { min_price })) as unknown as { traits: string[] })
        .traits;
    expect(await traits(0)).toEqual(['p_linux']);
    expect(await traits(500)).toEqual(['p_linux', 'can_be_bought']);
    expect(await traits(0)).toEqual(['p_linux', 'can_be_bought']);
  });

  test('another slug changes the URL, and must be free', async () => {
    const [game, other] = [await make.game({ owner }), await make.game({ owner })];
    expect(await owner.post(`/games/${game.id}`, { slug: other.slug })).toEqual(
      failure(400, 'slug is taken by another game'),
    );
    const response = await owner.post(`/games/${game.id}`, { slug: 'new-slug' });
    expect(readGame(response).url).toBe(`https://${owner.username}.gamewharf.example/new-slug`);
  });

  test('a blank title is rejected; a title can’t be cleared', async () => {
    const game = await make.game({ owner });
    expect(await owner.post(`/games/${game.id}`, { title: ' ' })).toEqual(
      failure(400, 'title must not be blank'),
    );
    expect(readGame(await owner.postJson(`/games/${game.id}`, { title: null })).title).toBe(game.title);
  });

  test('a game that the caller can’t edit is the 404 of one that doesn’t exist', async () => {
    const game = await make.game({ owner });
    expect(await stranger.post(`/games/${game.id}`, { title: 'Taken' })).toEqual(
      failure(404, 'invalid game'),
    );
    expect(await stored(game.id)).toMatchObject({ title: game.title });
  });

  test('a retry gets the first response; other parameters are an error', async () => {
    const game = await make.game({ owner });
    const path = `/games/${game.id}`;
    const first = await once(path, 'update-1', { title: 'First' });
    await owner.post(path, { title: 'Second' });
    expect((await once(path, 'update-1', { title: 'First' })).body).toEqual(first.body);
    expect(await stored(game.id)).toMatchObject({ title: 'Second' });
    expect((await once(path, 'update-1', { title: 'Third' })).body).toEqual(
      failure(400, 'Idempotency-Key was used with other parameters').body,
    );
  });
});

describe('delete', () => {
  const remove = (id: number, who = owner) => who.post(`/games/${id}/delete`);

  test('deletes the game with its files and builds, and removes it from collections', async () => {
    const game = await make.game({ owner, admins: [admin] });
    await make.upload({ game, external_url: 'https://example.com/' });
    await make.build({ game });
    const rest = await make.game({ owner });
    const collection = await make.collection({ owner: stranger, games: [game, rest] });
    expect(await remove(game.id)).toEqual(ok({ success: true }));
    expect(await stored(game.id)).toBeUndefined();
    expect(await sql('SELECT games_count FROM collections WHERE id = $1', [collection.id])).toEqual([
      { games_count: 1 },
    ]);
    expect(await events(game.id)).toEqual([{ event: 'game.deleted', user_id: owner.id, details: {} }]);
    expect(await remove(game.id)).toEqual(failure(404, 'invalid game'));
  });

  test('a game with purchases or keys stays, and the error says what it has', async () => {
    const game = await make.game({ owner });
    await make.upload({ game, external_url: 'https://example.com/' });
    await make.purchase({ games: [game] });
    await make.purchase({ games: [game], status: 'refunded' });
    await make.downloadKey({ game });
    expect(await remove(game.id)).toEqual(
      failure(400, 'the game has 2 purchases and 1 download key: make it private instead'),
    );
    expect(await sql('SELECT count(*) FROM uploads WHERE game_id = $1', [game.id])).toEqual([{ count: 1 }]);
  });

  test('requires the owner', async () => {
    const game = await make.game({ owner, admins: [admin] });
    expect(await remove(game.id, admin)).toEqual(failure(403, "you can't delete this game"));
    expect(await remove(game.id, stranger)).toEqual(failure(404, 'invalid game'));
    expect(await stored(game.id)).toBeDefined();
  });

  test('a sale that is committed while the deletion waits prevents it', async () => {
    const game = await make.game({ owner });
    const sale = await holdLocks(`SELECT FROM games WHERE id = ${game.id} FOR NO KEY UPDATE`);
    const deleted = remove(game.id);
    await untilBlocked();
    await sale.query(`INSERT INTO download_keys (key, game_id) VALUES ('sold meanwhile', ${game.id})`);
    await sale.commit();
    expect(await deleted).toEqual(failure(400, 'the game has 1 download key: make it private instead'));
  });

  test('a retry gets the first response', async () => {
    const game = await make.game({ owner });
    const path = `/games/${game.id}/delete`;
    const first = await once(path, 'delete-1', {});
    expect(first.body).toEqual({ success: true });
    expect((await once(path, 'delete-1', {})).body).toEqual({ success: true });
    expect((await once(path, 'delete-2', {})).body).toEqual(failure(404, 'invalid game').body);
  });
});

test('the scope includes the keys of games, and a narrower one is not enough', async () => {
  const game = await make.game({ owner });
  const [edits, keys] = await Promise.all(
    ['game:edit', 'game:edit:keys'].map((scope) => make.key({ owner, scopes: [scope] })),
  );
  expect((await owner.with(edits).post(`/games/${game.id}/download_keys`, { count: 1 })).status).toBe(200);
  expect(await owner.with(keys).post(`/games/${game.id}`, { title: 'X' })).toEqual(
    failure(403, 'api key does not permit `game:edit`'),
  );
});
