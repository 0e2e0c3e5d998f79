import { Readable } from 'node:stream';
import { Settings } from '../../src/platform/config/settings';
import { connectTo, importRecords } from '../../src/operator/import/import-records';
import { type Actor, anonymous } from '../support/actor';
import { PEPPER, theApp, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { statementsAfterCredential } from '../support/statements';
import { untilBlocked, holdLocks } from '../support/locks';

useStore({ RATE_LIMIT: 'off' });

interface Game extends Record<string, unknown> {
  id: number;
}

const listGames = async (actor: Actor) =>
  ((await actor.get('/profile/games')).body as { games: Game[] }).games;
const earn = (game: { id: number }, currency: string, amount: number) =>
  sql('INSERT INTO game_earnings (game_id, currency, amount) VALUES ($1, $2, $3)', [
    game.id,
    currency,
    amount,
  ]);

describe('GET /profile', () => {
  test('returns the user of the credential', async () => {
    const user = await make.user({
      username: 'leaf',
      display_name: 'Leaf',
      developer: true,
      press_user: true,
    });
    expect(await user.get('/profile')).toEqual(
      ok({
        user: {
          id: user.id,
          username: 'leaf',
          display_name: 'Leaf',
          gamer: true,
          developer: true,
          press_user: true,
          url: 'https://leaf.gamewharf.example',
          cover_url: null,
        },
      }),
    );
  });

  test('defaults the display name to the username and other missing fields to null', async () => {
    const user = await make.user({ gamer: false, cover_url: 'https://img.example/1.png' });
    expect(await user.get('/profile')).toMatchObject(
      ok({
        user: {
          display_name: user.username,
          gamer: false,
          developer: false,
          press_user: false,
          cover_url: 'https://img.example/1.png',
        },
      }),
    );
    const unnamed = await make.user({ display_name: '' });
    expect(await unnamed.get('/profile')).toMatchObject({
      body: { user: { display_name: unnamed.username, cover_url: null } },
    });
  });

  test('ignores parameters', async () => {
    const { owner, stranger } = await actors();
    const plain = await owner.get('/profile');
    for (const query of [
      `user_id=${stranger.id}`,
      'user_id=1&user_id=2',
      'x[__proto__]=1',
      '%ff',
      '%00',
      '?',
      '&&&',
    ])
      expect(await owner.get(`/profile?${query}`)).toEqual(plain);
  });

  test.each(['/Profile', '/profile/', '//profile', '/profile/games/', '/profile%20', '/profile/gam%65s'])(
    'returns 404 for other spellings of the path: %s',
    async (path) => {
      const { owner } = await actors();
      expect(await owner.get(path)).toEqual(failure(404, 'invalid api endpoint'));
    },
  );

  test.each(['POST', 'PUT', 'DELETE', 'PATCH'])('rejects %s', async (method) => {
    const { status, body, headers } = await send(method, '/profile');
    expect({ status, body }).toEqual(failure(405, 'method not allowed'));
    expect(headers.get('allow')).toBe('GET, HEAD, OPTIONS');
  });

  test('returns 401 for a deleted user whose credential is cached', async () => {
    const user = await make.user();
    await user.get('/profile');
    await sql('DELETE FROM users WHERE id = $1', [user.id]);
    expect(await user.get('/profile')).toEqual(failure(401, 'invalid key'));
  });
});

describe('GET /profile/games', () => {
  test('returns the fields in the documented order', async () => {
    const owner = await make.user();
    await make.game({ owner });
    const fields =
      'id title short_text url cover_url type classification traits published published_at created_at min_price ' +
      'views_count downloads_count purchases_count earnings';
    const [game] = await listGames(owner);
    expect(Object.keys(game!).filter((field) => fields.split(' ').includes(field))).toEqual(
      fields.split(' '),
    );
  });

  test('returns all fields of a game', async () => {
    const owner = await make.user({ username: 'owner-of-one' });
    const game = await make.game({
      owner,
      slug: 'x-moon',
      title: 'X-Moon',
      short_text: 'Humans have been colonizing planets',
      type: 'html',
      classification: 'tool',
      traits: ['p_windows', 'p_linux', 'can_be_bought'],
      published_at: '2013-03-03T23:02:14.567Z',
      created_at: '2013-03-02T01:02:03+02:00',
      min_price: 199,
      cover_url: 'https://img.example/x.png',
      views_count: 2682,
      downloads_count: 109,
      purchases_count: 4,
    });
    await earn(game, 'USD', 5047);
    await earn(game, 'EUR', 300);
    await earn(game, 'JPY', 500);
    expect(await owner.get('/profile/games')).toEqual(
      ok({
        games: [
          {
            id: game.id,
            title: 'X-Moon',
            short_text: 'Humans have been colonizing planets',
            url: 'https://owner-of-one.gamewharf.example/x-moon',
            cover_url: 'https://img.example/x.png',
            type: 'html',
            classification: 'tool',
            traits: ['p_windows', 'p_linux', 'can_be_bought'],
            published: true,
            published_at: '2013-03-03T23:02:14Z',
            created_at: '2013-03-01T23:02:03Z',
            min_price: 199,
            views_count: 2682,
            downloads_count: 109,
            purchases_count: 4,
            earnings: [
              { currency: 'EUR', amount_formatted: '€3.00', amount: 300 },
              { currency: 'JPY', amount_formatted: '¥500', amount: 500 },
              { currency: 'USD', amount_formatted: '$50.47', amount: 5047 },
            ],
          },
        ],
      }),
    );
  });

  test('returns a draft without sales or publication date', async () => {
    const owner = await make.user();
    await make.game({ owner, published_at: null, visibility: 'private' });
    expect(await listGames(owner)).toEqual([
      expect.objectContaining({
        published: false,
        published_at: null,
        short_text: null,
        cover_url: null,
        type: 'default',
        classification: 'game',
        traits: [],
        min_price: 0,
        views_count: 0,
        earnings: [],
      }),
    ]);
  });

  test('returns an empty list', async () => {
    const { stranger } = await actors();
    expect(await stranger.get('/profile/games')).toEqual(ok({ games: [] }));
  });

  test('lists owned and administered games once each, newest first', async () => {
    const { owner, admin } = await actors();
    const old = await make.game({ owner, created_at: '2020-01-01T00:00:00Z' });
    const mine = await make.game({ owner: admin, created_at: '2022-01-01T00:00:00Z', admins: [admin] });
    const twins = [
      await make.game({ owner, created_at: '2021-01-01T00:00:00Z', admins: [admin] }),
      await make.game({ owner, created_at: '2021-01-01T00:00:00Z', admins: [admin], visibility: 'private' }),
    ];
    expect((await listGames(admin)).map(({ id }) => id)).toEqual([mine.id, twins[1]!.id, twins[0]!.id]);
    expect((await listGames(owner)).map(({ id }) => id)).toEqual([twins[1]!.id, twins[0]!.id, old.id]);
    const [first] = await listGames(admin);
    expect(first!.url).toBe(`https://${admin.username}.gamewharf.example/${mine.slug}`);
    expect((await listGames(admin))[1]!.url).toContain(`https://${owner.username}.`);
  });

  test('updates the URL of a game when its owner is renamed', async () => {
    const owner = await make.user();
    const { slug } = await make.game({ owner });
    await sql(`UPDATE users SET username = 'another-' || id WHERE id = $1`, [owner.id]);
    expect((await listGames(owner)).map(({ url }) => url)).toEqual([
      `https://another-${owner.id}.gamewharf.example/${slug}`,
    ]);
  });

  test('updates the URL of a game when its owner changes', async () => {
    const [before, after] = [await make.user(), await make.user()];
    const { id, slug } = await make.game({ owner: before });
    await sql('UPDATE games SET user_id = $2 WHERE id = $1', [id, after.id]);
    expect((await listGames(after)).map(({ url }) => url)).toEqual([
      `https://${after.username}.gamewharf.example/${slug}`,
    ]);
  });

  test('returns the right URL for a game created while its owner is renamed', async () => {
    const owner = await make.user();
    const renaming = await holdLocks(`UPDATE users SET username = 'new-' || id WHERE id = ${owner.id}`);
    const made = make.game({ owner });
    await untilBlocked();
    await renaming.commit();
    const { slug } = await made;
    expect((await listGames(owner)).map(({ url }) => url)).toEqual([
      `https://new-${owner.id}.gamewharf.example/${slug}`,
    ]);
  });

  test('needs one statement for up to 25 games, and two for more', async () => {
    const owner = await make.user();
    const statements = (games: number) =>
      statementsAfterCredential(async () => expect(await listGames(owner)).toHaveLength(games));
    for (let i = 0; i < 25; i++) await earn(await make.game({ owner }), 'USD', i + 1);
    expect(await statements(25)).toEqual(['few_editable_games']);
    await make.game({ owner });
    expect(await statements(26)).toEqual(['few_editable_games', 'editable_games']);
  });

  test('keeps all digits of numbers', async () => {
    const owner = await make.user();
    const most = Number.MAX_SAFE_INTEGER;
    await earn(await make.game({ owner, views_count: most, id: most }), 'USD', most);
    expect(await listGames(owner)).toEqual([
      expect.objectContaining({
        id: most,
        views_count: most,
        earnings: [{ currency: 'USD', amount_formatted: '$90,071,992,547,409.91', amount: most }],
      }),
    ]);
  });

  test('counts completed purchases and splits the earnings of a bundle among its games', async () => {
    const records = [
      { type: 'user', id: 9001, username: 'seller' },
      ...[9001, 9002, 9003].map((id) => ({
        type: 'game',
        id,
        user_id: 9001,
        slug: `g${id}`,
        title: `G${id}`,
      })),
      { type: 'api_key', key: "the-seller's-key", user_id: 9001 },
      ...[
        { game_id: 9001, amount: 500, currency: 'USD' },
        { game_id: 9001, amount: 500, currency: 'EUR' },
        { game_id: 9001, amount: 700, currency: 'USD', status: 'pending' },
        { game_id: 9001, amount: 700, currency: 'USD', status: 'refunded' },
        { game_id: [9003, 9001, 9002], amount: 1001, currency: 'USD' },
      ].map((purchase, i) => ({
        type: 'purchase',
        id: 9001 + i,
        email: 'buyer@example.com',
        source: 'card',
        ...purchase,
      })),
    ];
    const settings = theApp().get(Settings);
    const lines = records.map((record) => Buffer.from(`${JSON.stringify(record)}\n`));
    await importRecords(() => connectTo(settings), Readable.from(lines), { pepper: Buffer.from(PEPPER) });
    const seller = anonymous.with("the-seller's-key");
    const sales = (await listGames(seller)).map(({ id, purchases_count, earnings }) => ({
      id,
      purchases_count,
      earnings,
    }));
    const usd = (amount: number, amount_formatted: string) => ({ currency: 'USD', amount_formatted, amount });
    expect(sales).toEqual([
      { id: 9003, purchases_count: 1, earnings: [usd(333, '$3.33')] },
      { id: 9002, purchases_count: 1, earnings: [usd(334, '$3.34')] },
      {
        id: 9001,
        purchases_count: 3,
        earnings: [{ currency: 'EUR', amount_formatted: '€5.00', amount: 500 }, usd(834, '$8.34')],
      },
    ]);
  });
});
