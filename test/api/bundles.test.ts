import { Audit } from '../../src/audit/audit';
import { OPERATOR_TOKEN } from '../support/importing';
import { Actor, anonymous } from '../support/actor';
import { theApp, useStore } from '../support/app';
import { failure, type HttpResponse, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { forge } from '../support/tokens';

useStore({ OPERATOR_TOKEN });

type Game = Awaited<ReturnType<typeof make.game>>;
type Bundle = Awaited<ReturnType<typeof make.bundle>>;

const ADDRESS = 'player@example.com';

let owner: Actor;
let stranger: Actor;
let player: Actor;
let games: Game[];
let bundle: Bundle;

beforeAll(async () => {
  ({ owner, stranger } = await actors());
});

beforeEach(async () => {
  player = await make.user({ emails: [{ email: `${ADDRESS}${Math.random()}`, verified: true }] });
  games = await Promise.all([0, 1, 2].map(() => make.game({ owner })));
  bundle = await make.bundle({ owner, games });
});

const operator = (path: string, fields: object) =>
  new Actor(0, 'operator', OPERATOR_TOKEN).postJson(path, fields);

const invalidBundle = failure(404, 'invalid bundle');
const invalidGame = failure(404, 'invalid game');

const buy = (fields: object = {}) =>
  make.purchase({
    games,
    user_id: player.id,
    purchase_type: 'bundle',
    bundle_id: bundle.id,
    created_at: '2026-01-02T03:04:05Z',
    ...fields,
  });

const claim = (game: { id: number }, actor = player, of = bundle) =>
  actor.post(`/bundles/${of.id}/claim-game`, { game_id: game.id });
const listed = (actor = player, query = {}) => actor.get(`/bundles/${bundle.id}/bundle-games`, query);
const listOwnedBundles = async (actor: Actor) =>
  ((await actor.get('/profile/owned-bundles')).body as { bundle_keys: Record<string, unknown>[] })
    .bundle_keys;
const listOwnedKeys = async (actor: Actor) =>
  ((await actor.get('/profile/owned-keys')).body as { owned_keys: { id: number; game_id: number }[] })
    .owned_keys;
const keyIn = ({ status, body }: HttpResponse) => {
  expect(status).toBe(200);
  return (body as { download_key: { id: number; purchase_id: number } }).download_key;
};

describe('the bundles of a player', () => {
  test('are listed with the newest purchase of each', async () => {
    const first = await buy();
    const other = await make.bundle({
      owner,
      games: [games[2]!],
      slug: 'for-rain',
      title: 'For rain | and wind',
      cover_url: 'https://images.example.com/b.png',
      created_at: '2025-01-02T03:04:05Z',
      updated_at: '2025-02-02T03:04:05Z',
      version: 7,
    });
    const second = await buy({ bundle_id: other.id, games: [games[2]!], created_at: '2026-03-01T00:00:00Z' });
    const third = await buy({ created_at: '2026-02-01T00:00:00Z' });
    expect(first.id).toBeLessThan(third.id);
    expect(await player.get('/profile/owned-bundles')).toEqual(
      ok({
        bundle_keys: [
          {
            id: second.id,
            bundle_id: other.id,
            purchase_id: second.id,
            created_at: '2026-03-01T00:00:00Z',
            bundle: {
              id: other.id,
              title: 'For rain | and wind',
              url: `https://gamewharf.example/b/${other.id}/for-rain`,
              cover_url: 'https://images.example.com/b.png',
              games_count: 1,
              version: 7,
              created_at: '2025-01-02T03:04:05Z',
              updated_at: '2025-02-02T03:04:05Z',
            },
          },
          expect.objectContaining({
            id: third.id,
            purchase_id: third.id,
            bundle: expect.objectContaining({ id: bundle.id, games_count: 3, version: 1, cover_url: null }),
          }),
        ],
      }),
    );
  });

  test('are those bought with a verified email address, too', async () => {
    const [{ email }] = (await sql('SELECT email FROM user_emails WHERE user_id = $1', [player.id])) as [
      { email: string },
    ];
    await buy({ user_id: null, email: email.toUpperCase() });
    expect(await listOwnedBundles(player)).toHaveLength(1);
    expect(await listed()).toMatchObject({ status: 200 });
    expect((await claim(games[0]!)).status).toBe(200);
  });

  test.each(['pending', 'failed', 'refunded'])('are not those of a %s purchase', async (status) => {
    await buy({ status });
    expect(await listOwnedBundles(player)).toEqual([]);
    expect(await listed()).toEqual(invalidBundle);
    expect(await claim(games[0]!)).toEqual(invalidBundle);
  });

  test('are not those of another player, nor of an unverified email address', async () => {
    const address = `open${Math.random()}@example.com`;
    await sql('INSERT INTO user_emails (user_id, email, verified) VALUES ($1, $2, false)', [
      stranger.id,
      address,
    ]);
    await buy({ email: address });
    expect(await listOwnedBundles(stranger)).toEqual([]);
    expect(await listed(stranger)).toEqual(invalidBundle);
    expect(await claim(games[0]!, stranger)).toEqual(invalidBundle);
    // Selling a bundle is not owning it.
    expect(await listed(owner)).toEqual(invalidBundle);
  });

  test('are at most 100, the newest', async () => {
    await sql(
      `WITH many AS (
         INSERT INTO bundles (user_id, slug, title) SELECT $1, 'many', 'Many' FROM generate_series(1, 101) RETURNING id)
       INSERT INTO purchases (email, source, currency, amount, user_id, bundle_id, purchase_type, created_at)
       SELECT 'many@example.com', 'card', 'USD', 1, $2, id, 'bundle', '2026-01-01'::timestamptz + id * interval '1 s'
       FROM many`,
      [owner.id, player.id],
    );
    const found = await listOwnedBundles(player);
    expect(found).toHaveLength(100);
    const ids = found.map(({ bundle_id }) => bundle_id as number);
    expect(ids).toEqual(ids.toSorted((a, b) => b - a));
  });
});

describe('the games of a bundle', () => {
  test('are listed in its order, with their owner, also if they are hidden', async () => {
    await buy();
    await sql(`UPDATE games SET visibility = 'private' WHERE id = $1`, [games[0]!.id]);
    await sql('UPDATE games SET published_at = NULL WHERE id = $1', [games[1]!.id]);
    await sql('UPDATE bundles SET min_price = 500 WHERE id = $1', [bundle.id]);
    await sql('UPDATE bundle_games SET position = 4 - position WHERE bundle_id = $1', [bundle.id]);
    const { status, body } = await listed();
    expect(status).toBe(200);
    const { page, per_page, bundle_games } = body as {
      page: number;
      per_page: number;
      bundle_games: { game_id: number }[];
    };
    expect({ page, per_page }).toEqual({ page: 1, per_page: 100 });
    expect(bundle_games.map(({ game_id }) => game_id)).toEqual(games.map(({ id }) => id).toReversed());
    expect(bundle_games[2]).toEqual({
      bundle_id: bundle.id,
      game_id: games[0]!.id,
      position: 3,
      min_price: 500,
      created_at: expect.stringMatching(/^\d{4}-.*Z$/),
      updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
      game: expect.objectContaining({
        id: games[0]!.id,
        title: games[0]!.title,
        user: expect.objectContaining({ id: owner.id, username: owner.username }),
      }),
    });
  });

  test('are read in pages, which an empty one ends', async () => {
    await buy();
    const page = async (page: number) =>
      ((await listed(player, { page, per_page: 2 })).body as { bundle_games: { position: number }[] })
        .bundle_games;
    expect((await page(1)).map(({ position }) => position)).toEqual([1, 2]);
    expect((await page(2)).map(({ position }) => position)).toEqual([3]);
    expect(await listed(player, { page: 3, per_page: 2 })).toEqual(
      ok({ page: 3, per_page: 2, bundle_games: [] }),
    );
    expect(await listed(player, { per_page: 501 })).toEqual(
      failure(400, 'per_page must be between 1 and 500'),
    );
    expect((await listed(player, { page: 1_000_000, per_page: 500 })).status).toBe(200);
  });

  test('fail with 404 for an unknown bundle', async () => {
    expect(await player.get('/bundles/9223372036854775807/bundle-games')).toEqual(invalidBundle);
    expect(await player.get('/bundles/x/bundle-games')).toEqual(failure(400, 'bundle_id must be an integer'));
  });
});

describe('a claim', () => {
  test('creates a key of the player for the newest purchase, and returns it again', async () => {
    await buy();
    const newest = await buy({ created_at: '2026-05-01T00:00:00Z' });
    await buy({ created_at: '2026-04-01T00:00:00Z' });
    const response = await claim(games[1]!);
    expect(response).toEqual(
      ok({
        download_key: {
          id: expect.any(Number),
          game_id: games[1]!.id,
          purchase_id: newest.id,
          created_at: expect.stringMatching(/^\d{4}-.*Z$/),
          updated_at: expect.stringMatching(/^\d{4}-.*Z$/),
          downloads: 0,
          game: expect.objectContaining({
            id: games[1]!.id,
            user: expect.objectContaining({ id: owner.id }),
          }),
        },
      }),
    );
    expect(await claim(games[1]!)).toEqual(response);
    expect(await listOwnedKeys(player)).toEqual([(response.body as { download_key: object }).download_key]);
    const { id } = keyIn(response);
    expect(
      await sql('SELECT user_id, account_id, purchase_id FROM download_keys WHERE id = $1', [id]),
    ).toEqual([{ user_id: player.id, account_id: player.id, purchase_id: newest.id }]);
    // A seller finds the key, like every other one.
    const { body } = await owner.get(`/games/${games[1]!.id}/download_keys`, { user_id: player.id });
    expect(body).toMatchObject({ download_key: { id, owner: { id: player.id } } });
  });

  test('returns a key that the player already has', async () => {
    await buy();
    const { id } = await make.downloadKey({ game: games[0]!, user_id: player.id });
    expect(keyIn(await claim(games[0]!)).id).toBe(id);
    expect(await listOwnedKeys(player)).toHaveLength(1);
  });

  test('ignores revoked keys and those of others', async () => {
    await buy();
    await make.downloadKey({ game: games[0]!, user_id: player.id, revoked_at: '2026-01-01T00:00:00Z' });
    await make.downloadKey({ game: games[0]!, user_id: stranger.id });
    const { id } = keyIn(await claim(games[0]!));
    expect((await listOwnedKeys(player)).map((key) => key.id)).toEqual([id]);
  });

  test("fails with 404 for a game that isn't in the bundle, and for an unknown bundle", async () => {
    await buy();
    const other = await make.game({ owner });
    expect(await claim(other)).toEqual(invalidGame);
    expect(await claim({ id: 4_000_000 })).toEqual(invalidGame);
    expect(await claim(games[0]!, player, { ...bundle, id: 4_000_000 })).toEqual(invalidBundle);
    expect(await player.post(`/bundles/${bundle.id}/claim-game`)).toEqual(
      failure(400, 'game_id is required'),
    );
    expect(await listOwnedKeys(player)).toEqual([]);
  });

  test('fails with 404 for a game that was added after the purchase, until a purchase has it', async () => {
    const added = await make.game({ owner });
    await buy();
    await sql('INSERT INTO bundle_games (bundle_id, game_id, position) VALUES ($1, $2, 4)', [
      bundle.id,
      added.id,
    ]);
    expect(await claim(added)).toEqual(invalidGame);
    const { id } = await make.purchase({ games: [added], user_id: player.id, donation: true });
    expect(keyIn(await claim(added)).purchase_id).toBe(id);
  });

  test('creates one key from forty concurrent requests', async () => {
    await buy();
    await buy();
    const responses = await Promise.all(Array.from({ length: 40 }, () => claim(games[2]!)));
    // On a busy machine, requests beyond those that one client can run at a time may wait for too long.
    const served = responses.filter(({ status }) => status !== 503);
    expect(served.length).toBeGreaterThanOrEqual(16);
    expect(new Set(served.map((response) => keyIn(response).id)).size).toBe(1);
    expect(await sql('SELECT FROM download_keys WHERE game_id = $1', [games[2]!.id])).toHaveLength(1);
  });

  test('is repeated with an Idempotency-Key', async () => {
    await buy();
    const claimOnce = async (game: Game) => {
      const { status, body } = await send('POST', `/bundles/${bundle.id}/claim-game`, {
        headers: {
          ...player.headers,
          'content-type': 'application/json',
          'idempotency-key': `claim ${bundle.id}`,
        },
        body: JSON.stringify({ game_id: game.id }),
      });
      return { status, body };
    };
    const first = await claimOnce(games[0]!);
    expect(first.status).toBe(200);
    expect(await claimOnce(games[0]!)).toEqual(first);
    expect(await claimOnce(games[1]!)).toEqual(
      failure(400, 'Idempotency-Key was used with other parameters'),
    );
  });

  test('is audited once, without the text of the key', async () => {
    await buy();
    const { id } = keyIn(await claim(games[0]!));
    await claim(games[0]!);
    await theApp().get(Audit).flush();
    const found = await sql(
      `SELECT details FROM audit_events WHERE event = 'download_key.claimed' AND user_id = $1`,
      [player.id],
    );
    expect(found).toEqual([{ details: expect.objectContaining({ download_key_id: id }) }]);
    expect(JSON.stringify(found)).not.toContain('gwdl_');
  });
});

describe('ownership and downloads', () => {
  test('hold before a claim, and looking at something creates no key', async () => {
    await buy();
    const [game] = games as [Game];
    await sql('UPDATE games SET min_price = 500 WHERE id = $1', [game.id]);
    const { id: upload_id } = await make.upload({ game, external_url: 'https://files.example.com/game.zip' });
    expect(await player.get(`/games/${game.id}/ownership`)).toEqual(ok({ owns: true }));
    expect((await player.get(`/games/${game.id}/uploads`)).status).toBe(200);
    expect((await player.get(`/uploads/${upload_id}/download`)).status).toBe(302);
    expect((await stranger.get(`/uploads/${upload_id}/download`)).status).toBe(403);
    await listed();
    await listOwnedBundles(player);
    expect(await listOwnedKeys(player)).toEqual([]);
    expect(await sql('SELECT FROM download_keys WHERE game_id = $1', [game.id])).toEqual([]);
  });

  test('end with a refund, which revokes claimed keys', async () => {
    const sold = await operator('/operator/purchases', {
      bundle_id: bundle.id,
      user_id: player.id,
      currency: 'USD',
      amount: 1000,
    });
    const { purchase } = sold.body as { purchase: { id: number } };
    await claim(games[0]!);
    expect(await player.get(`/games/${games[0]!.id}/ownership`)).toEqual(ok({ owns: true }));
    expect((await operator(`/operator/purchases/${purchase.id}/refund`, {})).status).toBe(200);
    expect(await player.get(`/games/${games[0]!.id}/ownership`)).toEqual(ok({ owns: false }));
    expect(await listOwnedKeys(player)).toEqual([]);
    expect(await claim(games[0]!)).toEqual(invalidBundle);
  });
});

describe('scopes', () => {
  const withScopes = async (...scopes: string[]) => player.with(await make.key({ owner: player, scopes }));

  test('profile:owned reads and claims; the scope for claims only claims', async () => {
    await buy();
    const lists = await withScopes('profile:me', 'profile:games');
    expect(await lists.get('/profile/owned-bundles')).toEqual(
      failure(403, 'api key does not permit `profile:owned`'),
    );
    expect(await listed(lists)).toEqual(failure(403, 'api key does not permit `profile:owned`'));
    expect(await claim(games[0]!, lists)).toEqual(
      failure(403, 'api key does not permit `profile:owned:claim`'),
    );
    const claims = await withScopes('profile:owned:claim');
    expect((await claim(games[0]!, claims)).status).toBe(200);
    expect((await listed(claims)).status).toBe(403);
    for (const scope of ['profile', 'profile:owned']) {
      const both = await withScopes(scope);
      expect((await listed(both)).status).toBe(200);
      expect((await claim(games[1]!, both)).status).toBe(200);
    }
    expect(await claim(games[0]!, anonymous)).toEqual(failure(401, 'authentication required'));
  });

  test("a game's JWT can't claim, not even with a scope above", async () => {
    await buy();
    for (const scope of ['profile:owned', 'profile:owned:claim']) {
      const game = player.with(await forge({ sub: player.id, scope, claims: { game_id: games[0]!.id } }));
      expect(await claim(games[0]!, game)).toEqual(
        failure(403, 'token does not permit `profile:owned:claim`'),
      );
    }
  });
});
