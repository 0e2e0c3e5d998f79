import { type Actor } from '../support/actor';
import { useStore } from '../support/app';
import { type HttpResponse, failure, ok, send } from '../support/http';
import { make, useGame } from '../support/make';
import { sql } from '../support/sql';
import { statementsAfterCredential } from '../support/statements';

useStore({ RATE_LIMIT: 'off' });

const store = useGame();

const look = (selector: Record<string, unknown>, who = store.owner) =>
  who.get(`/games/${store.game.id}/download_keys`, selector);
const none = failure(404, 'no download key found');
const noKey = failure(404, 'invalid download key');
const noGame = failure(404, 'invalid game');
const found = (key: { id: number }) => expect.objectContaining({ id: key.id }) as unknown;
const response = (key: { id: number }) => ok({ download_key: found(key) });

let serial = 0;
const address = () => `person${++serial}@example.com`;

describe('by key', () => {
  test('returns all fields', async () => {
    const email = address();
    const buyer = await make.user({ display_name: 'Buyer', emails: [{ email, verified: true }] });
    const key = await make.downloadKey({
      game: store.game,
      email: email.toUpperCase(),
      downloads: 7,
      created_at: '2024-01-02T03:04:05.678Z',
    });
    expect(await look({ download_key: key.key })).toEqual(
      ok({
        download_key: {
          id: key.id,
          created_at: '2024-01-02T03:04:05Z',
          downloads: 7,
          key: key.key,
          game_id: store.game.id,
          owner: {
            id: buyer.id,
            username: buyer.username,
            display_name: 'Buyer',
            gamer: true,
            developer: false,
            press_user: false,
            url: `https://${buyer.username}.gamewharf.example`,
            cover_url: null,
          },
        },
      }),
    );
    expect(await look({ download_key: key.key }, store.admin)).toEqual(response(key));
  });

  test('has no owner without an account', async () => {
    for (const email of [address(), null]) {
      const key = await make.downloadKey({ game: store.game, email });
      const { body } = (await look({ download_key: key.key })) as { body: { download_key: object } };
      expect(body.download_key).not.toHaveProperty('owner');
    }
  });

  test('has no owner for an unverified email address, and the account for a claimed key', async () => {
    const email = address();
    await make.user({ emails: [{ email, verified: false }] });
    const key = await make.downloadKey({ game: store.game, email });
    expect((await look({ download_key: key.key })).body).not.toHaveProperty('download_key.owner');
    const verifier = await make.user({ emails: [{ email, verified: true }] });
    expect((await look({ download_key: key.key })).body).toMatchObject({
      download_key: { owner: { id: verifier.id } },
    });
    const claimed = await make.downloadKey({ game: store.game, email, user_id: store.stranger.id });
    expect((await look({ download_key: claimed.key })).body).toMatchObject({
      download_key: { owner: { id: store.stranger.id } },
    });
  });

  test('returns the same response for unknown and revoked keys and those of another game', async () => {
    const revoked = await make.downloadKey({ game: store.game, revoked_at: '2024-01-01T00:00:00Z' });
    const other = await make.downloadKey({ game: await make.game({ owner: store.owner }) });
    for (const key of ['nonsense', revoked.key, other.key, 'x'.repeat(5000), "' OR ''='"])
      expect(await look({ download_key: key })).toEqual(noKey);
  });

  test('is case-sensitive', async () => {
    const key = await make.downloadKey({ game: store.game, key: `Case-${store.game.id}` });
    expect(await look({ download_key: key.key.toLowerCase() })).toEqual(noKey);
    expect(await look({ download_key: `${key.key} ` })).toEqual(noKey);
    expect(await look({ download_key: key.key })).toEqual(response(key));
  });
});

describe('by user_id', () => {
  test('finds claimed keys and unclaimed ones with a verified email address of the user', async () => {
    const [verified, entered] = [address(), address()];
    const user = await make.user({
      emails: [
        { email: verified, verified: true },
        { email: entered, verified: false },
      ],
    });
    const ask = () => look({ user_id: user.id });
    expect(await ask()).toEqual(none);
    await make.downloadKey({ game: store.game, email: entered });
    expect(await ask()).toEqual(none);
    await make.downloadKey({ game: store.game, email: verified, user_id: store.stranger.id });
    expect(await ask()).toEqual(none);
    const bought = await make.downloadKey({
      game: store.game,
      email: verified,
      created_at: '2024-01-02T00:00:00Z',
    });
    expect(await ask()).toEqual(response(bought));
    const claimed = await make.downloadKey({
      game: store.game,
      user_id: user.id,
      created_at: '2024-01-03T00:00:00Z',
    });
    expect(await ask()).toEqual(response(claimed));
    await make.downloadKey({ game: store.game, user_id: user.id, created_at: '2024-01-01T00:00:00Z' });
    expect(await ask()).toEqual(response(claimed));
    expect((await ask()).body).toMatchObject({ download_key: { owner: { id: user.id } } });
  });

  test('returns the newest of several, and the last created of those with the same time', async () => {
    const at = '2024-01-01T00:00:00Z';
    await make.downloadKey({ game: store.game, user_id: store.stranger.id, created_at: at });
    const last = await make.downloadKey({ game: store.game, user_id: store.stranger.id, created_at: at });
    await make.downloadKey({
      game: store.game,
      user_id: store.stranger.id,
      created_at: '2030-01-01T00:00:00Z',
      revoked_at: at,
    });
    await make.downloadKey({ game: await make.game({ owner: store.owner }), user_id: store.stranger.id });
    expect(await look({ user_id: store.stranger.id })).toEqual(response(last));
  });

  test.each(['0', '4000000', '2147483648', '9007199254740993', '9223372036854775807'])(
    'returns 404 for the ID %s',
    async (user_id) => {
      await make.downloadKey({ game: store.game, user_id: null });
      expect(await look({ user_id })).toEqual(none);
    },
  );
});

describe('by email', () => {
  test('finds keys with the email address, in any case, claimed or not', async () => {
    const email = address();
    const key = await make.downloadKey({ game: store.game, email: email.replace('person', 'Person') });
    expect(await look({ email })).toEqual(response(key));
    expect(await look({ email: email.toUpperCase() })).toEqual(response(key));
    const claimed = await make.downloadKey({ game: store.game, email, user_id: store.stranger.id });
    expect(await look({ email })).toEqual(response(claimed));
    expect(await look({ email: ` ${email}` })).toEqual(none);
    expect(await look({ email: email.replace('person', 'perso_') })).toEqual(none);
  });

  test('finds keys of the account that verified it', async () => {
    const [one, two] = [address(), address()];
    const user = await make.user({
      emails: [
        { email: one, verified: true },
        { email: two, verified: true },
      ],
    });
    expect(await look({ email: one })).toEqual(none);
    const linked = await make.downloadKey({
      game: store.game,
      email: two,
      created_at: '2024-01-01T00:00:00Z',
    });
    expect(await look({ email: one })).toEqual(response(linked));
    const claimed = await make.downloadKey({
      game: store.game,
      user_id: user.id,
      created_at: '2024-01-02T00:00:00Z',
    });
    expect(await look({ email: one })).toEqual(response(claimed));
    await make.downloadKey({
      game: store.game,
      email: two,
      user_id: store.stranger.id,
      created_at: '2024-01-03T00:00:00Z',
    });
    expect(await look({ email: one })).toEqual(response(claimed));
  });

  test('does not match other addresses of an account that has not verified it', async () => {
    const [mine, unproven] = [address(), address()];
    await make.user({
      emails: [
        { email: mine, verified: true },
        { email: unproven, verified: false },
      ],
    });
    await make.downloadKey({ game: store.game, email: mine });
    expect(await look({ email: unproven })).toEqual(none);
    const exact = await make.downloadKey({ game: store.game, email: unproven });
    expect(await look({ email: unproven })).toEqual(response(exact));
  });

  test('reads a space as an unescaped plus sign', async () => {
    const email = address().replace('@', '+shop@');
    const key = await make.downloadKey({ game: store.game, email });
    for (const spelling of [
      email,
      email.replace('+', ' '),
      encodeURIComponent(email),
      email.replace('+', '%20'),
    ])
      expect(
        await send('GET', `/games/${store.game.id}/download_keys?email=${spelling}`, {
          headers: store.owner.headers,
        }),
      ).toMatchObject({ status: 200, body: { download_key: found(key) } });
  });
});

describe('finds the buyer', () => {
  let buyer: Actor;
  let paid: string;
  beforeEach(async () => {
    paid = address();
    buyer = await make.user();
  });
  const bought = async (purchase: Record<string, unknown>, key: Record<string, unknown> = {}) =>
    make.downloadKey({
      game: store.game,
      purchase_id: (await make.purchase({ games: [store.game], email: paid, ...purchase })).id,
      ...key,
    });
  const readOwnerId = async (key: { key: string }) =>
    ((await look({ download_key: key.key })).body as { download_key: { owner?: { id: number } } })
      .download_key.owner?.id;

  test('signed in, with an unverified email address or none on the key', async () => {
    const entered = address();
    await sql('INSERT INTO user_emails (user_id, email) VALUES ($1, $2)', [buyer.id, entered]);
    for (const email of [null, entered, address()]) {
      const key = await bought({ user_id: buyer.id }, { email });
      expect(await look({ user_id: buyer.id })).toEqual(response(key));
      expect(await look({ email: paid })).toEqual(response(key));
      expect(await look({ email: paid.toUpperCase() })).toEqual(response(key));
      if (email) expect(await look({ email })).toEqual(response(key));
      expect(await readOwnerId(key)).toBe(buyer.id);
    }
  });

  test('signed in under one email address, looked up by another that the account verified', async () => {
    const other = address();
    await sql('INSERT INTO user_emails VALUES ($1, $2, true)', [buyer.id, other]);
    const key = await bought({ user_id: buyer.id });
    expect(await look({ email: other })).toEqual(response(key));
  });

  test('finds a guest once an account has verified the email address of the purchase', async () => {
    const key = await bought({});
    expect(await readOwnerId(key)).toBeUndefined();
    expect(await look({ email: paid })).toEqual(response(key));
    expect(await look({ user_id: buyer.id })).toEqual(none);
    await sql('INSERT INTO user_emails VALUES ($1, $2, true)', [buyer.id, paid]);
    expect(await look({ user_id: buyer.id })).toEqual(response(key));
    expect(await readOwnerId(key)).toBe(buyer.id);
  });

  test('prefers the account of the claim, then of the purchase, then the email address of the key, then of the purchase', async () => {
    const given = address();
    const receiver = await make.user({ emails: [{ email: given, verified: true }] });
    await sql('INSERT INTO user_emails VALUES ($1, $2, true)', [store.stranger.id, paid]);
    const lookups = () =>
      Promise.all(
        [buyer, receiver, store.stranger].map(async ({ id }) => (await look({ user_id: id })).status),
      );

    const byAddress = await bought({}, { email: given });
    expect([await readOwnerId(byAddress), await lookups()]).toEqual([receiver.id, [404, 200, 404]]);
    await sql('UPDATE purchases SET user_id = $1 WHERE email = $2', [buyer.id, paid]);
    expect([await readOwnerId(byAddress), await lookups()]).toEqual([buyer.id, [200, 404, 404]]);
    await sql('UPDATE download_keys SET user_id = $1 WHERE id = $2', [receiver.id, byAddress.id]);
    expect([await readOwnerId(byAddress), await lookups()]).toEqual([receiver.id, [404, 200, 404]]);
    // A search for the email address of the purchase still finds the key.
    expect(await look({ email: paid })).toEqual(response(byAddress));
    await sql('UPDATE download_keys SET user_id = NULL, email = NULL WHERE id = $1', [byAddress.id]);
    await sql('UPDATE purchases SET user_id = NULL WHERE email = $1', [paid]);
    expect([await readOwnerId(byAddress), await lookups()]).toEqual([store.stranger.id, [404, 404, 200]]);
    await sql('UPDATE download_keys SET purchase_id = NULL WHERE id = $1', [byAddress.id]);
    expect([await readOwnerId(byAddress), await lookups()]).toEqual([undefined, [404, 404, 404]]);
  });

  test('depends only on the key, not on the games or status of the purchase', async () => {
    const elsewhere = await make.game({ owner: store.owner });
    const refunded = await make.purchase({ games: [elsewhere], user_id: buyer.id, status: 'refunded' });
    const key = await make.downloadKey({ game: store.game, purchase_id: refunded.id });
    expect(await look({ user_id: buyer.id })).toEqual(response(key));
    await sql('UPDATE download_keys SET revoked_at = now() WHERE id = $1', [key.id]);
    expect(await look({ user_id: buyer.id })).toEqual(none);
  });

  test('makes a restricted game visible to a buyer who was signed in', async () => {
    store.game = await make.game({ owner: store.owner, visibility: 'restricted' });
    const list = await make.collection({ owner: buyer });
    const add = () => buyer.post(`/collections/${list.id}/add-game`, { game_id: store.game.id });
    expect(await add()).toEqual(noGame);
    await bought({ user_id: buyer.id });
    expect((await add()).status).toBe(200);
    const { body } = await buyer.get(`/collections/${list.id}/collection-games`);
    expect(body).toMatchObject({ collection_games: [{ game_id: store.game.id }] });
  });
});

describe('permissions', () => {
  test('return the response for an unknown game to other users, byte for byte', async () => {
    const key = await make.downloadKey({ game: store.game, email: address() });
    const texts = new Set<string>();
    for (const [who, id] of [
      [store.developer, store.game.id],
      [store.stranger, store.game.id],
      [store.owner, 4_000_000],
      [store.owner, '9007199254740993'],
      [store.owner, 0],
    ] as const)
      for (const selector of [`download_key=${key.key}`, 'user_id=1', 'email=a@b.c']) {
        const response = await send('GET', `/games/${id}/download_keys?${selector}`, {
          headers: who.headers,
        });
        expect(response).toMatchObject(noGame);
        texts.add(response.text);
      }
    expect(texts).toEqual(new Set(['{"errors":["invalid game"]}']));
  });

  test('allow editors to look up keys of a private game', async () => {
    store.game = await make.game({ owner: store.owner, visibility: 'private', published_at: null });
    const key = await make.downloadKey({ game: store.game });
    expect(await look({ download_key: key.key })).toEqual(response(key));
  });

  test('need one statement', async () => {
    await make.downloadKey({ game: store.game, email: 'one@example.com', user_id: store.stranger.id });
    const statements = await statementsAfterCredential(async () => {
      for (const selector of [
        { email: 'one@example.com' },
        { user_id: store.stranger.id },
        { download_key: 'x' },
      ])
        await look(selector);
    });
    expect(statements).toEqual(['download_key_by_email', 'download_key_by_user', 'download_key_by_key']);
  });
});

describe('parameters', () => {
  const oneOf = failure(400, 'exactly one of download_key, user_id, email is required');
  test.each<[string, HttpResponse]>([
    ['', oneOf],
    ['name=x', oneOf],
    ['Email=a@b.c', oneOf],
    ['email=a@b.c&user_id=1', oneOf],
    ['download_key=x&user_id=1&email=a@b.c', oneOf],
    ['user_id=1&user_id=2', failure(400, 'user_id must be given once')],
    ['user_id=1&user_id=1', failure(400, 'user_id must be given once')],
    ['email[x]=1', failure(400, 'email must be a single value')],
    ['email[]=a', failure(400, 'email must be a single value')],
    ['download_key[$ne]=', failure(400, 'download_key must be a single value')],
    ['email=', failure(400, 'email must not be empty')],
    ['email', failure(400, 'email must not be empty')],
    ['download_key=', failure(400, 'download_key must not be empty')],
    ...[
      '',
      'abc',
      '1.5',
      '1e3',
      '0x10',
      '%2012%20',
      '%2B5',
      '-1',
      '01',
      '%D9%A1%D9%A2',
      '%00',
      '9223372036854775808',
      '99999999999999999999',
      'null',
      '1;2',
    ].map((id): [string, HttpResponse] => [`user_id=${id}`, failure(400, 'user_id must be an integer')]),
    ...['a%00b', '%ED%A0%80', 'a%ffb'].flatMap((text): [string, HttpResponse][] =>
      ['email', 'download_key'].map((name) => [
        `${name}=${text}`,
        failure(
          400,
          text.includes('00')
            ? `${name} must be valid Unicode text without NUL`
            : `${name} must be valid UTF-8 text`,
        ),
      ]),
    ),
    ['game_id=1&user_id=1', failure(400, 'game_id must be given once')],
    ['user_id=1&__proto__[x]=1&constructor[prototype]=1', none],
  ])('?%s', async (query, expected) => {
    const { status, body } = await send('GET', `/games/${store.game.id}/download_keys?${query}`, {
      headers: store.owner.headers,
    });
    expect({ status, body }).toEqual(expected);
  });

  test.each(['abc', '1.5', '1e3', '0x10', '%2012', '+5', '-1', '01', '%D9%A1', '%00', '9223372036854775808'])(
    'returns 400 for a path with the ID %s',
    async (id) => {
      for (const query of ['user_id=1', 'user_id=1&email=x']) {
        const { status, body } = await send('GET', `/games/${id}/download_keys?${query}`, {
          headers: store.owner.headers,
        });
        expect(status).toBe(400);
        expect((body as { errors: string[] }).errors).toContain('game_id must be an integer');
      }
    },
  );

  test('returns 400 for a path that is not UTF-8', async () => {
    for (const id of ['%', '%E0%A4%A'])
      expect(
        await send('GET', `/games/${id}/download_keys?user_id=1`, { headers: store.owner.headers }),
      ).toMatchObject({ status: 400, text: expect.not.stringContaining('%') as string });
  });

  test('lists all problems', async () => {
    expect(await store.owner.get('/games/x/download_keys?user_id=y&email[a]=1')).toEqual(
      failure(
        400,
        'game_id must be an integer',
        'user_id must be an integer',
        'email must be a single value',
        'exactly one of download_key, user_id, email is required',
      ),
    );
  });
});
