import { type Actor } from '../support/actor';
import { useStore } from '../support/app';
import { failure, ok } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { forge } from '../support/tokens';

useStore({ FILES_DIR: '/nonexistent' });

const MD5 = '0cc175b9c0f1b6a831c399e269772661';
const AT = { created_at: '2026-01-02T03:04:05Z', updated_at: '2026-01-03T03:04:05Z' };

let people: Awaited<ReturnType<typeof actors>>;
let owner: Actor;
let player: Actor;
beforeAll(async () => {
  people = await actors();
  ({ owner } = people);
  player = await make.user({ emails: [{ email: 'player@example.com', verified: true }] });
});

const paidGame = (fields: object = {}) =>
  make.game({ owner, admins: [people.admin], min_price: 500, ...fields });

describe('fields of an upload', () => {
  test('describe its own file', async () => {
    const game = await paidGame();
    const { id } = await make.upload({
      game,
      traits: ['p_windows', 'demo'],
      md5_hash: MD5,
      display_name: 'Moon',
      position: 3,
      ...AT,
    });
    const upload = {
      id,
      game_id: game.id,
      position: 3,
      type: 'default',
      traits: ['p_windows', 'demo'],
      filename: 'moon.zip',
      display_name: 'Moon',
      ...AT,
      storage: 'hosted',
      size: 42,
      md5_hash: MD5,
    };
    expect(await player.get(`/games/${game.id}/uploads`)).toEqual(ok({ uploads: [upload] }));
    expect(await player.get(`/uploads/${id}`)).toEqual(ok({ upload }));
    const { traits: _, ...legacy } = upload;
    expect(await player.get(`/api/1/${player.key}/game/${game.id}/uploads`)).toEqual(
      ok({
        uploads: [
          {
            ...legacy,
            p_windows: true,
            p_linux: false,
            p_osx: false,
            p_android: false,
            created_at: '2026-01-02 03:04:05',
            updated_at: '2026-01-03 03:04:05',
          },
        ],
      }),
    );
  });

  test('contain the host of a link to another site, but not the link', async () => {
    const game = await make.game({ owner });
    await make.upload({ game, external_url: 'https://user@shop.example.com:8443/moon?a=1', ...AT });
    const { body } = await player.get(`/games/${game.id}/uploads`);
    const { uploads } = body as { uploads: object[] };
    expect(uploads).toEqual([
      expect.objectContaining({ storage: 'external', host: 'shop.example.com:8443' }),
    ]);
    for (const field of ['size', 'md5_hash', 'build', 'external_url'])
      expect(uploads[0]).not.toHaveProperty(field);
  });

  test('describe the newest completed build that has a file', async () => {
    const game = await make.game({ owner });
    const file = { file_key: 'moon/1.zip', size: 7 };
    const first = await make.build({ game, ...file, ...AT });
    const second = await make.build({ game, ...file, size: 8, md5_hash: MD5, user_version: '1.1', ...AT });
    await make.build({ game, user_version: '1.2' });
    await make.build({ game, ...file, state: 'processing' });
    await make.build({ game, ...file, channel_name: 'linux' });
    const { id } = await make.upload({ game, channel_name: 'windows', filename: 'moon-windows.zip', ...AT });
    const build = {
      id: second.id,
      upload_id: id,
      game_id: game.id,
      parent_build_id: first.id,
      version: 2,
      user_version: '1.1',
      state: 'completed',
      ...AT,
    };
    expect(await player.get(`/uploads/${id}`)).toEqual(
      ok({
        upload: expect.objectContaining({
          storage: 'build',
          size: 8,
          md5_hash: MD5,
          build_id: second.id,
          channel_name: 'windows',
          build,
        }) as object,
      }),
    );
    expect(await player.get(`/builds/${second.id}`)).toEqual(
      ok({
        build: {
          ...build,
          user: expect.objectContaining({ id: owner.id, username: owner.username }) as object,
          files: [{ id: second.id, size: 8, type: 'archive', sub_type: 'default', state: 'uploaded' }],
        },
      }),
    );
    expect(await player.get(`/api/1/${player.key}/game/${game.id}/uploads`)).toEqual(
      ok({
        uploads: [
          expect.objectContaining({
            build: { ...build, created_at: '2026-01-02 03:04:05', updated_at: '2026-01-03 03:04:05' },
          }),
        ],
      }),
    );
  });
});

test('lists uploads by position, then by ID, without channels that have nothing to download', async () => {
  const game = await make.game({ owner });
  const last = await make.upload({ game, position: 2 });
  const second = await make.upload({ game, position: 1 });
  const third = await make.upload({ game, position: 1 });
  const empty = await make.upload({ game, channel_name: 'windows' });
  await make.build({ game, user_version: '1.0' });
  await make.build({ game, state: 'started', file_key: 'a', size: 1 });
  const { body } = await player.get(`/games/${game.id}/uploads`);
  expect((body as { uploads: { id: number }[] }).uploads.map(({ id }) => id)).toEqual([
    second.id,
    third.id,
    last.id,
  ]);
  // A missing build is reported before a missing purchase.
  const paid = await make.game({ owner, min_price: 500 });
  const unsold = await make.upload({ game: paid, channel_name: 'windows' });
  for (const { id } of [empty, unsold])
    for (const path of ['', '/builds', '/download'])
      expect(await player.get(`/uploads/${id}${path}`)).toEqual(failure(404, 'invalid upload'));
});

test.each([50, 51, 60])('lists all of %i uploads', async (count) => {
  const game = await make.game({ owner });
  await sql(
    `INSERT INTO uploads (game_id, filename, file_key, size) SELECT $1, n || '.zip', 'a', 1 FROM generate_series(1, $2::int) n`,
    [game.id, count],
  );
  const { body } = await player.get(`/games/${game.id}/uploads`);
  const { uploads } = body as { uploads: { filename: string }[] };
  expect(uploads.map(({ filename }) => filename)).toEqual(
    Array.from({ length: count }, (_, i) => `${i + 1}.zip`),
  );
});

describe('builds of a channel', () => {
  test('are only completed ones for players and all for editors, newest first', async () => {
    const game = await make.game({ owner, admins: [people.admin] });
    const upload = await make.upload({ game, channel_name: 'windows' });
    const ids: number[] = [];
    for (const state of ['completed', 'failed', 'completed', 'processing'])
      ids.push((await make.build({ game, state, file_key: 'a', size: 1 })).id);
    const listed = async (actor: Actor) => {
      const { body } = await actor.get(`/uploads/${upload.id}/builds`);
      return (body as { builds: Record<string, number>[] }).builds.map(({ id, version, parent_build_id }) => [
        id,
        version,
        parent_build_id,
      ]);
    };
    expect(await listed(player)).toEqual([
      [ids[2], 3, ids[1]],
      [ids[0], 1, -1],
    ]);
    expect((await listed(people.admin)).map(([id]) => id)).toEqual(ids.toReversed());
    expect(await player.get(`/builds/${ids[3]}`)).toEqual(failure(404, 'invalid build'));
    expect(await owner.get(`/builds/${ids[3]}`)).toMatchObject({ status: 200 });
  });

  test('are limited to 200', async () => {
    const game = await make.game({ owner });
    await sql(
      `INSERT INTO builds (game_id, channel_name, file_key, size) SELECT $1, 'windows', 'a', 1 FROM generate_series(1, 205)`,
      [game.id],
    );
    const upload = await make.upload({ game, channel_name: 'windows' });
    const { body } = await player.get(`/uploads/${upload.id}/builds`);
    const { builds } = body as { builds: { version: number }[] };
    expect([builds.length, builds[0]!.version, builds.at(-1)!.version]).toEqual([200, 205, 6]);
  });

  test('are empty for an upload with its own file', async () => {
    const game = await make.game({ owner });
    const upload = await make.upload({ game });
    expect(await player.get(`/uploads/${upload.id}/builds`)).toEqual(ok({ builds: [] }));
  });

  test('have no files if none is stored, and no upload if none is listed', async () => {
    const game = await make.game({ owner });
    const build = await make.build({ game });
    expect(await player.get(`/builds/${build.id}`)).toMatchObject({
      status: 200,
      body: { build: { upload_id: null, files: [] } },
    });
    expect(await player.get(`/builds/${build.id}/download/archive/default`)).toEqual(
      failure(404, 'invalid build file'),
    );
    const full = await make.build({ game, file_key: 'a/b.zip', size: 1 });
    for (const [path, status] of [
      ['archive/default', 302],
      ['archive/optimized', 404],
      ['signature/default', 404],
    ] as const)
      expect(await player.get(`/builds/${full.id}/download/${path}`)).toMatchObject({ status });
  });
});

/** What a user gets: `listed` uploads (hosted, demo, channel and external) and the error for each paid one. */
type Outcome = 'all' | 'demo' | 'nothing' | 'wrong key';

describe('permissions to download', () => {
  const PAID = { min_price: 500 };
  const GAMES: Record<string, object> = {
    public: PAID,
    restricted: { ...PAID, visibility: 'restricted' },
    private: { ...PAID, visibility: 'private' },
    unpublished: { ...PAID, published_at: null },
    free: { min_price: 0 },
    'free but private': { min_price: 0, visibility: 'private' },
  };
  type Game = Awaited<ReturnType<typeof paidGame>>;
  /** Gives the player each role; returns the ID of the key to send. */
  const PLAYERS: Record<string, (game: Game) => Promise<number | undefined | void>> = {
    stranger: async () => undefined,
    editor: async (game) => void (await sql('INSERT INTO game_admins VALUES ($1, $2)', [game.id, player.id])),
    'owner by key': async (game) =>
      void (await make.downloadKey({ game, user_id: player.id, account_id: player.id })),
    'owner by email address': async (game) =>
      void (await make.downloadKey({ game, email: 'Player@example.com' })),
    'owner by purchase': async (game) => void (await make.purchase({ games: [game], user_id: player.id })),
    'owner who sends the key': async (game) =>
      (await make.downloadKey({ game, user_id: player.id, account_id: player.id })).id,
    'holder of a revoked key': async (game) =>
      (await make.downloadKey({ game, user_id: player.id, account_id: player.id, revoked_at: '2026-01-01' }))
        .id,
    "sender of another user's key": async (game) =>
      (await make.downloadKey({ game, user_id: owner.id, account_id: owner.id })).id,
    'sender of a key of another game': async () =>
      (await make.downloadKey({ game: await paidGame(), user_id: player.id, account_id: player.id })).id,
    'owner who sends an unknown key': async (game) => {
      await make.purchase({ games: [game], user_id: player.id });
      return 4e6;
    },
    'editor who sends an unknown key': async (game) => {
      await sql('INSERT INTO game_admins VALUES ($1, $2)', [game.id, player.id]);
      return 4e6;
    },
    'payer of a refunded purchase': async (game) =>
      void (await make.purchase({ games: [game], user_id: player.id, status: 'refunded' })),
  };
  const OWNERS = ['owner by key', 'owner by email address', 'owner by purchase', 'owner who sends the key'];
  const EDITORS = ['editor', 'editor who sends an unknown key'];

  function expectedFor(game: string, who: string): Outcome {
    if (EDITORS.includes(who)) return 'all';
    const owns = OWNERS.includes(who) || who === 'owner who sends an unknown key';
    if (!owns && !['public', 'free'].includes(game)) return 'nothing';
    if (game.startsWith('free') || OWNERS.includes(who)) return 'all';
    return /sends? an unknown|revoked|sender/.test(who) ? 'wrong key' : 'demo';
  }

  const cases = Object.keys(GAMES).flatMap((game) =>
    Object.keys(PLAYERS).map((who): [string, string, Outcome] => [game, who, expectedFor(game, who)]),
  );

  test.each(cases)('%s game, %s: %s', async (kind, who, outcome) => {
    const game = await paidGame(GAMES[kind]);
    const build = await make.build({ game, file_key: 'moon/1.zip', size: 7 });
    const demo = await make.upload({ game, traits: ['demo'] });
    const paid = [
      await make.upload({ game }),
      await make.upload({ game, channel_name: 'windows' }),
      await make.upload({ game, external_url: 'https://example.com/moon' }),
    ];
    const download_key_id = (await PLAYERS[who]!(game)) ?? undefined;
    const get = (path: string) => player.get(path, { download_key_id });
    const status = async (path: string) => {
      const { status, body } = await get(path);
      return status < 400 ? status : { status, body };
    };
    const seen = outcome === 'nothing' ? failure(404, 'invalid upload') : undefined;
    const denied = {
      all: undefined,
      demo: failure(403, 'you must buy this game to download'),
      'wrong key': failure(404, 'invalid download_key_id'),
      nothing: failure(404, 'invalid upload'),
    }[outcome];

    const list = await get(`/games/${game.id}/uploads`);
    if (outcome === 'nothing') expect(list).toEqual(failure(404, 'invalid game'));
    else if (outcome === 'wrong key') expect(list).toEqual(denied);
    else
      expect((list.body as { uploads: { id: number }[] }).uploads.map(({ id }) => id)).toEqual(
        outcome === 'all' ? [demo.id, ...paid.map(({ id }) => id)] : [demo.id],
      );
    const { KEY } = { KEY: player.key! };
    expect(await get(`/api/1/${KEY}/game/${game.id}/uploads`)).toMatchObject({ status: list.status });
    expect(await status(`/uploads/${demo.id}`)).toEqual(seen ?? 200);
    expect(await status(`/uploads/${demo.id}/download`)).toEqual(seen ?? 302);
    for (const { id } of paid) {
      expect(await status(`/uploads/${id}`)).toEqual(denied ?? 200);
      expect(await status(`/uploads/${id}/builds`)).toEqual(denied ?? 200);
      expect(await status(`/uploads/${id}/download`)).toEqual(denied ?? 302);
      expect(await status(`/api/1/${KEY}/upload/${id}/download`)).toEqual(denied ?? 200);
    }
    const deniedBuild = outcome === 'nothing' ? failure(404, 'invalid build') : denied;
    expect(await status(`/builds/${build.id}`)).toEqual(deniedBuild ?? 200);
    expect(await status(`/builds/${build.id}/download/archive/default`)).toEqual(deniedBuild ?? 302);
    expect(await status(`/builds/${build.id}/download/signature/default`)).toEqual(
      deniedBuild ?? failure(404, 'invalid build file'),
    );
    const session = await player.post(`/games/${game.id}/download-sessions`, { download_key_id });
    if (outcome === 'nothing') expect(session).toEqual(failure(404, 'invalid game'));
    else if (outcome === 'wrong key') expect(session).toEqual(denied);
    else
      expect(session).toMatchObject({
        status: 200,
        body: { uuid: expect.stringMatching(/^[0-9a-f-]{36}$/) },
      });
  });

  test('allow everyone to download the build of a demo', async () => {
    const game = await paidGame();
    const build = await make.build({ game, file_key: 'a', size: 1 });
    await make.upload({ game, channel_name: 'windows', traits: ['demo'] });
    expect(await player.get(`/builds/${build.id}`)).toMatchObject({ status: 200 });
  });

  test("require the scope of a store-wide key, and restrict a game's JWT to that game", async () => {
    const game = await make.game({ owner });
    await make.upload({ game });
    const path = `/games/${game.id}/uploads`;
    for (const [scope, status] of [
      ['game:view:uploads', 200],
      ['game:view', 200],
      ['game:view:ownership', 403],
      ['profile', 403],
    ] as const) {
      const key = await make.key({ owner: player, scopes: [scope] });
      expect(await player.with(key).get(path)).toMatchObject({ status });
    }
    const forgeJwt = (game_id: number) => forge({ sub: player.id, scope: 'game:view', claims: { game_id } });
    expect(await player.with(await forgeJwt(game.id)).get(path)).toMatchObject({ status: 200 });
    expect(await player.with(await forgeJwt(game.id + 1)).get(path)).toEqual(failure(404, 'invalid game'));
  });
});

describe('channels', () => {
  test('are listed for editors with their newest builds', async () => {
    const game = await make.game({ owner, admins: [people.admin], slug: 'moon' });
    const old = await make.build({ game, file_key: 'a', size: 1 });
    const head = await make.build({ game, file_key: 'a', size: 2, user_version: '2' });
    const pending = await make.build({ game, state: 'processing' });
    await make.build({ game, channel_name: 'linux', state: 'failed' });
    await make.upload({ game, channel_name: 'windows', traits: ['p_windows', 'p_osx'] });
    await make.upload({ game, channel_name: 'soundtrack' });
    const target = `${owner.username.toUpperCase()}/moon`;
    const all = await people.admin.get('/wharf/channels', { target });
    expect(all).toMatchObject({
      status: 200,
      body: {
        channels: {
          soundtrack: { upload: { size: null, build_id: null, build: null }, head: null, pending: null },
          windows: {
            name: 'windows',
            tags: 'windows,osx',
            upload: { build_id: head.id, size: 2 },
            head: { id: head.id, version: 2, parent_build_id: old.id, user_version: '2' },
            pending: { id: pending.id, state: 'processing' },
          },
        },
      },
    });
    const { channels } = all.body as { channels: Record<string, object> };
    // An upload tool reads the upload of each channel, and the channel of the failed build has none.
    expect(Object.keys(channels)).toEqual(['soundtrack', 'windows']);
    for (const query of [{ target }, { target: String(game.id) }, { game_id: game.id }])
      expect(await owner.get('/wharf/channels/windows', query)).toEqual(ok({ channel: channels.windows }));
    for (const name of ['linux', 'osx'])
      expect(await owner.get(`/wharf/channels/${name}`, { target })).toEqual(failure(404, 'invalid channel'));
    for (const path of ['/wharf/channels', '/wharf/channels/windows'])
      expect(await player.get(path, { target })).toEqual(failure(404, 'invalid game'));
    expect(await owner.get('/wharf/channels', { target: `${owner.username}/none` })).toEqual(
      failure(404, 'invalid game'),
    );
    for (const [game_id, response] of [
      [game.id, ok({ channel: channels.windows })],
      [game.id + 1, failure(404, 'invalid game')],
    ] as const) {
      const jwt = owner.with(await forge({ sub: owner.id, scope: 'game:view', claims: { game_id } }));
      expect(await jwt.get('/wharf/channels/windows', { target })).toEqual(response);
      expect(await jwt.get('/wharf/channels', { target })).toMatchObject({ status: response.status });
    }
  });

  test('are all listed if a game has many, without builds that are older than the head', async () => {
    const game = await make.game({ owner });
    const names = Array.from({ length: 12 }, (_, i) => `channel-${10 + i}`);
    const expected: Record<string, object> = {};
    for (const channel_name of names) {
      await make.build({ game, channel_name, state: 'processing' });
      const stored = await make.build({ game, channel_name, file_key: 'a', size: 1 });
      const head = await make.build({ game, channel_name });
      const { id: upload_id } = await make.upload({ game, channel_name });
      expected[channel_name] = {
        upload: { id: upload_id, build_id: stored.id },
        head: { id: head.id, upload_id },
        pending: null,
      };
    }
    const all = await owner.get('/wharf/channels', { game_id: game.id });
    expect(all).toMatchObject({ status: 200, body: { channels: expected } });
    expect(Object.keys((all.body as { channels: object }).channels)).toEqual(names);
  });

  test.each([
    [{}, 'exactly one of target, game_id is required'],
    [{ target: 'moon' }, 'target must be of the form user/game, or the ID of a game'],
  ])('rejects %j', async (query, error) => {
    expect(await owner.get('/wharf/channels', query)).toEqual(failure(400, error));
  });
});

test("returns a user's profile to anyone with the scope profile:me", async () => {
  expect(await player.get(`/users/${owner.id}`)).toEqual(await owner.get('/profile'));
  expect(await player.get('/users/4000000')).toEqual(failure(404, 'invalid user'));
});

test('returns the status of the wharf to any valid credential', async () => {
  const key = await make.key({ owner: player, scopes: ['profile:me'] });
  expect(await player.with(key).get('/wharf/status')).toEqual(ok({ success: true }));
  expect(await people.anonymous.get('/wharf/status')).toEqual(failure(401, 'authentication required'));
});

test.each(['abc', '1.5', '9223372036854775808'])('returns 400 for the ID %s', async (id) => {
  expect(await player.get(`/uploads/${id}`)).toEqual(failure(400, 'upload_id must be an integer'));
  expect(await player.get(`/builds/${id}`)).toEqual(failure(400, 'build_id must be an integer'));
  expect(await player.get('/uploads/1', { download_key_id: id })).toEqual(
    failure(400, 'download_key_id must be an integer'),
  );
});
