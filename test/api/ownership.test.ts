import { createHash } from 'node:crypto';
import { createRemoteJWKSet, decodeJwt, jwtVerify } from 'jose';
import { hashApiKey } from '../../src/auth/keys/api-key';
import { type Actor, anonymous } from '../support/actor';
import { baseUrl, PEPPER, theClock, useStore } from '../support/app';
import { failure, ok } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { forge } from '../support/tokens';

useStore();

type People = Awaited<ReturnType<typeof actors>>;
type Game = Awaited<ReturnType<typeof make.game>>;

let people: People;
let owner: Actor;
let player: Actor;
const ADDRESS = 'player@example.com';

beforeAll(async () => {
  people = await actors();
  ({ owner } = people);
  player = await make.user({ username: 'player', emails: [{ email: ADDRESS, verified: true }] });
});

const owns = (actor: Actor, game: { id: number }) => actor.get(`/games/${game.id}/ownership`);
const invalidGame = failure(404, 'invalid game');

/** Every way to get a game, and whether the player then owns the game and a valid key of it. */
const WAYS: [string, boolean, boolean, (game: Game) => Promise<unknown>][] = [
  ['nothing', false, false, () => Promise.resolve()],
  ['a purchase, signed in', true, false, (game) => make.purchase({ games: [game], user_id: player.id })],
  [
    'a purchase under a verified email address',
    true,
    false,
    (game) => make.purchase({ games: [game], email: 'Player@Example.com' }),
  ],
  ['a purchase under an unowned email address', false, false, (game) => make.purchase({ games: [game] })],
  [
    'a bundle',
    true,
    false,
    async (game) =>
      make.purchase({
        games: [game, await make.game({ owner })],
        user_id: player.id,
        purchase_type: 'bundle',
      }),
  ],
  [
    'a pending purchase',
    false,
    false,
    (game) => make.purchase({ games: [game], user_id: player.id, status: 'pending' }),
  ],
  [
    'a refunded purchase',
    false,
    false,
    (game) => make.purchase({ games: [game], user_id: player.id, status: 'refunded' }),
  ],
  [
    'a refunded purchase whose key was kept',
    true,
    true,
    async (game) => {
      const { id } = await make.purchase({ games: [game], user_id: player.id, status: 'refunded' });
      await make.downloadKey({ game, purchase_id: id });
    },
  ],
  ['a claimed key', true, true, (game) => make.downloadKey({ game, user_id: player.id })],
  ['a key for a verified email address', true, true, (game) => make.downloadKey({ game, email: ADDRESS })],
  [
    'a key that another user claimed',
    false,
    false,
    async (game) => make.downloadKey({ game, email: ADDRESS, user_id: (await make.user()).id }),
  ],
  [
    'a key bought under a verified email address that another user claimed',
    true,
    false,
    async (game) => {
      const { id } = await make.purchase({ games: [game], email: ADDRESS });
      await make.downloadKey({ game, purchase_id: id, user_id: (await make.user()).id });
    },
  ],
  [
    'a revoked key',
    false,
    false,
    (game) => make.downloadKey({ game, user_id: player.id, revoked_at: '2024-05-06T07:08:09Z' }),
  ],
  [
    'being an admin',
    true,
    false,
    (game) => sql('INSERT INTO game_admins (game_id, user_id) VALUES ($1, $2)', [game.id, player.id]),
  ],
];

/** An app's token, as the app's owner gets it. */
async function applicationToken(application_owner: Actor, user: Actor, scopes: string[]): Promise<string> {
  const client_id = createHash('sha256')
    .update(`${application_owner.id} ${user.id} ${Math.random()}`)
    .digest('hex')
    .slice(0, 16);
  await sql(
    `INSERT INTO oauth_applications (client_id, user_id, name, redirect_uris, scopes) VALUES ($1, $2, 'Launcher', '{}', $3)`,
    [client_id, application_owner.id, scopes],
  );
  const [grant] = await sql<{ id: number }>(
    'INSERT INTO oauth_grants (user_id, client_id, scopes) VALUES ($1, $2, $3) RETURNING id',
    [user.id, client_id, scopes],
  );
  const key = createHash('sha256').update(client_id).digest('hex');
  await sql(
    `INSERT INTO api_keys (key_hash, hint, user_id, scopes, grant_id) VALUES ($1, 'gw_', $2, $3, $4)`,
    [hashApiKey(key, Buffer.from(PEPPER)), user.id, scopes, grant!.id],
  );
  return key;
}

describe.each(['public', 'restricted', 'private'] as const)(
  'GET /games/GAME_ID/ownership of a %s game',
  (visibility) => {
    test.each(WAYS)('%s', async (_, owned, _key, come) => {
      const game = await make.game({ owner, visibility });
      await come(game);
      // A game that the player can neither view nor owns doesn't exist for them.
      const seen = owned || visibility === 'public' ? ok({ owns: owned }) : invalidGame;
      const scoped = await make.key({ owner: player, scopes: ['game:view:ownership'] });
      expect(await owns(player, game)).toEqual(seen);
      expect(await owns(player.with(scoped), game)).toEqual(seen);
      const launched = (claims: object) =>
        forge({ sub: player.id, scope: 'game:view:ownership', claims: { game_id: game.id, ...claims } });
      expect(await owns(player.with(await launched({})), game)).toEqual(ok({ owns: owned }));
      const scopes = ['game:view:ownership'];
      expect(await owns(anonymous.with(await applicationToken(owner, player, scopes)), game)).toEqual(
        ok({ owns: owned }),
      );
      // A token of another game or another user's app reveals nothing.
      const other = await make.game({ owner });
      expect(await owns(player.with(await launched({ game_id: other.id })), game)).toEqual(invalidGame);
      expect(await owns(player.with(await launched({ game_id: undefined })), game)).toEqual(invalidGame);
      expect(
        await owns(anonymous.with(await applicationToken(people.developer, player, scopes)), game),
      ).toEqual(invalidGame);
    });
  },
);

describe.each(['public', 'restricted', 'private'] as const)(
  'a %s game, with every type of credential',
  (visibility) => {
    test.each(WAYS)('%s: whether it is visible and among the owned keys', async (way, _owned, held, come) => {
      const game = await make.game({ owner, visibility });
      await come(game);
      const seen =
        visibility === 'public' || way === 'being an admin' || (visibility === 'restricted' && held);
      const scopes = ['game:view', 'profile:owned'];
      const launched = (game_id: number) =>
        forge({ sub: player.id, scope: scopes.join(' '), claims: { game_id } });
      // These two routes concern the player, not the game of the credential.
      const credentials = {
        'a personal key': player.key!,
        'a scoped key': await make.key({ owner: player, scopes }),
        "the game's JWT": await launched(game.id),
        'a JWT of another game': await launched(4e6),
        "the owner's app": await applicationToken(owner, player, scopes),
        "another user's app": await applicationToken(people.developer, player, scopes),
      };
      for (const [kind, credential] of Object.entries(credentials)) {
        const actor = player.with(credential);
        const { status } = await actor.get(`/games/${game.id}`);
        const { body } = await actor.get('/profile/owned-keys');
        const keys = (body as { owned_keys: { game_id: number }[] }).owned_keys;
        const listed = keys.some(({ game_id }) => game_id === game.id);
        expect([kind, status, listed]).toEqual([kind, seen ? 200 : 404, held]);
      }
    });
  },
);

describe('GET /games/GAME_ID/ownership', () => {
  test('rejects invalid credentials, scopes and IDs', async () => {
    const game = await make.game({ owner });
    expect(await owns(anonymous, game)).toEqual(failure(401, 'authentication required'));
    const narrow = player.with(await make.key({ owner: player, scopes: ['game:view:purchases'] }));
    expect(await owns(narrow, game)).toEqual(failure(403, 'api key does not permit `game:view:ownership`'));
    expect(await player.get('/games/1x/ownership')).toEqual(failure(400, 'game_id must be an integer'));
    expect(await owns(player, { id: 4e6 })).toEqual(invalidGame);
    expect(await player.get('/games/9223372036854775807/ownership')).toEqual(invalidGame);
  });

  describe('?proof=true', () => {
    const fetchProof = async (actor: Actor, game: { id: number }) => {
      const { status, body } = await actor.get(`/games/${game.id}/ownership`, { proof: true });
      expect(status).toBe(200);
      return (body as { proof?: string }).proof;
    };

    test('adds a signed proof, only if the user owns the game', async () => {
      const game = await make.game({ owner });
      expect(await player.get(`/games/${game.id}/ownership`, { proof: true })).toEqual(ok({ owns: false }));
      await make.purchase({ games: [game], user_id: player.id });
      expect(await player.get(`/games/${game.id}/ownership`, { proof: false })).toEqual(ok({ owns: true }));
      expect(await player.get(`/games/${game.id}/ownership`, { proof: 'x' })).toEqual(
        failure(400, 'proof must be a boolean'),
      );
      const proof = (await fetchProof(player, game))!;
      const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', baseUrl()));
      const { payload, protectedHeader } = await jwtVerify(proof, keys, {
        typ: 'ownership+jwt',
        issuer: baseUrl(),
        audience: String(game.id),
        currentDate: new Date(theClock().now()),
      });
      expect(Object.keys(protectedHeader).sort()).toEqual(['alg', 'kid', 'typ']);
      expect(protectedHeader).toMatchObject({ alg: 'EdDSA', typ: 'ownership+jwt' });
      const { iat, exp, jti, ...claims } = payload;
      expect(claims).toEqual({
        iss: baseUrl(),
        sub: String(player.id),
        aud: String(game.id),
        owns: true,
        via: 'purchase',
      });
      expect(exp! - iat!).toBe(86_400);
      expect(jti).toMatch(/^[0-9a-f-]{36}$/);
      // A key that signs proofs stays published until the last of them has expired.
      const [key] = await sql<{ token_lifetime: number }>(
        'SELECT token_lifetime FROM signing_keys WHERE kid = $1',
        [protectedHeader.kid],
      );
      expect(key!.token_lifetime).toBe(86_400);
    });

    test.each(WAYS)('%s: says why the user owns the game', async (way, owned, held, come) => {
      const game = await make.game({ owner });
      await come(game);
      const proof = await fetchProof(player, game);
      const via = way === 'being an admin' ? 'editor' : held ? 'key' : 'purchase';
      expect(proof && decodeJwt(proof).via).toBe(owned ? via : undefined);
    });

    test('names the purchase before the key, and the key before the right to edit', async () => {
      const game = await make.game({ owner: player });
      expect(decodeJwt((await fetchProof(player, game))!).via).toBe('editor');
      await make.downloadKey({ game, user_id: player.id });
      expect(decodeJwt((await fetchProof(player, game))!).via).toBe('key');
      await make.purchase({ games: [game], user_id: player.id });
      expect(decodeJwt((await fetchProof(player, game))!).via).toBe('purchase');
    });

    test('is not a credential, even for a store whose audience is a number', async () => {
      const game = await make.game({ owner: player });
      const proof = (await fetchProof(player, game))!;
      const invalid = failure(401, 'invalid token');
      expect(await anonymous.with(proof).get('/credentials/info')).toEqual(invalid);
      expect(await owns(anonymous.with(proof), game)).toEqual(invalid);
      // Each of the two checks is enough: the type, and the audience.
      const asToken = (typ: string, aud?: string) =>
        forge({ sub: player.id, header: { typ }, ...(aud === undefined ? {} : { aud }) });
      expect((await anonymous.with(await asToken('JWT')).get('/credentials/info')).status).toBe(200);
      expect(await anonymous.with(await asToken('ownership+jwt')).get('/credentials/info')).toEqual(invalid);
      expect(await anonymous.with(await asToken('JWT', String(game.id))).get('/credentials/info')).toEqual(
        invalid,
      );
    });

    test('a launch token is not a proof', async () => {
      const game = await make.game({ owner: player });
      const { body } = await player.post('/credentials/subkey', { game_id: game.id, scope: 'profile:me' });
      const token = (body as { key: string }).key;
      const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', baseUrl()));
      const currentDate = new Date(theClock().now());
      await expect(jwtVerify(token, keys, { currentDate })).resolves.toBeDefined();
      await expect(jwtVerify(token, keys, { currentDate, typ: 'ownership+jwt' })).rejects.toThrow('"typ"');
      await expect(jwtVerify(token, keys, { currentDate, audience: String(game.id) })).rejects.toThrow(
        '"aud"',
      );
    });
  });

  test('is included in game:view and available to manifests', async () => {
    const game = await make.game({ owner });
    const above = player.with(await make.key({ owner: player, scopes: ['game:view'] }));
    expect(await owns(above, game)).toEqual(ok({ owns: false }));
    const { status, body } = await player.post('/credentials/subkey', {
      game_id: game.id,
      scope: 'profile:me game:view:ownership',
    });
    expect(status).toBe(200);
    expect(await owns(anonymous.with((body as { key: string }).key), game)).toEqual(ok({ owns: false }));
  });
});

const expectedGame = (game: Game, user: Actor) => ({
  id: game.id,
  title: game.title,
  short_text: null,
  url: `https://${user.username}.gamewharf.example/${game.slug}`,
  cover_url: null,
  type: 'default',
  classification: 'game',
  traits: ['p_windows', 'p_linux'],
  min_price: 0,
  published_at: '2024-05-06T07:08:09Z',
  created_at: '2024-01-01T00:00:00Z',
  user_id: user.id,
  user: {
    id: user.id,
    username: user.username,
    display_name: user.username,
    url: `https://${user.username}.gamewharf.example`,
    cover_url: null,
  },
});

const expectedLegacyGame = (game: Game, user: Actor) => {
  const { classification: _1, traits: _2, ...rest } = expectedGame(game, user);
  return {
    ...rest,
    p_android: false,
    p_linux: true,
    p_osx: false,
    p_windows: true,
    published_at: '2024-05-06 07:08:09',
    created_at: '2024-01-01 00:00:00',
  };
};

const newGame = (fields: object = {}) =>
  make.game({ owner, traits: ['p_windows', 'p_linux'], created_at: '2024-01-01T00:00:00Z', ...fields });

describe('GET /games/GAME_ID', () => {
  test('returns the game with its user, in the current and the legacy API', async () => {
    const game = await newGame();
    expect(await player.get(`/games/${game.id}`)).toEqual(ok({ game: expectedGame(game, owner) }));
    expect(await player.get(`/api/1/key/game/${game.id}`)).toEqual(
      ok({ game: expectedLegacyGame(game, owner) }),
    );
  });

  test('requires that the caller can view the game', async () => {
    const hidden = await newGame({ visibility: 'private' });
    const restricted = await newGame({ visibility: 'restricted' });
    for (const path of ['/games', '/api/1/key/game']) {
      expect(await player.get(`${path}/${hidden.id}`)).toEqual(invalidGame);
      expect(await player.get(`${path}/${restricted.id}`)).toEqual(invalidGame);
      expect(await player.get(`${path}/4000000`)).toEqual(invalidGame);
      expect(await owner.get(`${path}/${hidden.id}`)).toMatchObject({ status: 200 });
    }
    const { id: purchase_id } = await make.purchase({ games: [restricted], user_id: player.id });
    await make.downloadKey({ game: restricted, purchase_id });
    expect(await player.get(`/games/${restricted.id}`)).toMatchObject({ status: 200 });
  });
});

describe('GET /profile/owned-keys', () => {
  test("lists the user's keys newest first, without their text", async () => {
    const user = await make.user({ emails: [{ email: 'buyer@example.com', verified: true }] });
    const game = await newGame();
    const { id: purchase_id } = await make.purchase({ games: [game], email: 'Buyer@example.com' });
    const at = (day: number) => `2024-02-0${day}T00:00:00Z`;
    const bought = await make.downloadKey({ game, purchase_id, created_at: at(1) });
    const claimed = await make.downloadKey({ game, user_id: user.id, created_at: at(3), downloads: 7 });
    const given = await make.downloadKey({ game, email: 'buyer@example.com', created_at: at(2) });
    await make.downloadKey({ game, user_id: user.id, revoked_at: at(4) });
    await make.downloadKey({ game, user_id: player.id });
    // The user bought the game, so it remains in the list although it becomes private.
    await sql(`UPDATE games SET visibility = 'private' WHERE id = $1`, [game.id]);
    await sql('UPDATE download_keys SET updated_at = $2 WHERE id = $1', [bought.id, at(5)]);
    const entry = (key: { id: number }, purchase: number | null, created_at: string, downloads = 0) => ({
      id: key.id,
      game_id: game.id,
      purchase_id: purchase,
      created_at,
      updated_at: key === bought ? at(5) : created_at,
      downloads,
      game: expectedGame(game, owner),
    });
    const owned_keys = [
      entry(claimed, null, at(3), 7),
      entry(given, null, at(2)),
      entry(bought, purchase_id, at(1)),
    ];
    expect(await user.get('/profile/owned-keys')).toEqual(ok({ page: 1, per_page: 50, owned_keys }));
    expect(await user.get('/profile/owned-keys', { page: 2, per_page: 2 })).toEqual(
      ok({ page: 2, per_page: 2, owned_keys: owned_keys.slice(2) }),
    );
    expect(await user.get('/profile/owned-keys', { page: 1_000_000, per_page: 500 })).toEqual(
      ok({ page: 1_000_000, per_page: 500, owned_keys: [] }),
    );
    const legacy = owned_keys.map((one) => ({
      ...one,
      created_at: one.created_at.replace('T', ' ').replace('Z', ''),
      updated_at: one.updated_at.replace('T', ' ').replace('Z', ''),
      game: expectedLegacyGame(game, owner),
    }));
    expect(await user.get('/api/1/key/my-owned-keys')).toEqual(
      ok({ page: 1, per_page: 50, owned_keys: legacy }),
    );
    const response = await fetch(`${baseUrl()}/profile/owned-keys`, { headers: user.headers });
    expect(await response.text()).not.toContain(bought.key);
  });

  test('moves a claimed key from its buyer to the account that claimed it', async () => {
    const [buyer, friend] = [await make.user(), await make.user()];
    const game = await newGame();
    const { id: purchase_id } = await make.purchase({ games: [game], user_id: buyer.id });
    const key = await make.downloadKey({ game, purchase_id });
    const listed = async (user: Actor) =>
      ((await user.get('/profile/owned-keys')).body as { owned_keys: { id: number }[] }).owned_keys.map(
        ({ id }) => id,
      );
    expect([await listed(buyer), await listed(friend)]).toEqual([[key.id], []]);
    await sql('UPDATE download_keys SET user_id = $2 WHERE id = $1', [key.id, friend.id]);
    expect([await listed(buyer), await listed(friend)]).toEqual([[], [key.id]]);
    // The buyer still bought it.
    expect(await owns(buyer, game)).toEqual(ok({ owns: true }));
  });

  test('rejects invalid pages, and scopes that do not include it', async () => {
    for (const page of ['0', '-1', '1000001', '9007199254740993', 'x'])
      expect((await player.get('/profile/owned-keys', { page })).status).toBe(400);
    expect(await player.get('/profile/owned-keys', { per_page: 501 })).toEqual(
      failure(400, 'per_page must be between 1 and 500'),
    );
    const scoped = async (scope: string) =>
      player.with(await make.key({ owner: player, scopes: [scope] })).get('/profile/owned-keys');
    expect(await scoped('profile:me')).toEqual(failure(403, 'api key does not permit `profile:owned`'));
    expect((await scoped('profile')).status).toBe(200);
    expect((await scoped('profile:owned')).status).toBe(200);
  });
});
