/**
 * Every API call through a client that openapi-typescript generates from the description. The test next to this folder
 * generates the types (`gamewharf-api`), checks this file against them, and runs it.
 */
import createClient, { type Middleware } from 'openapi-fetch';
import type { paths } from 'gamewharf-api';

export interface Store {
  url: string;
  key: string;
  jwt: string;
  game_id: number;
  other_game_id: number;
  upload_id: number;
  build_id: number;
  user_id: number;
  email: string;
  download_key: string;
  target: string;
  client_id: string;
  /** How the fields of a form are encoded, from the description. */
  encodings: Record<string, Record<string, { contentType?: string }>>;
}

/** Reads `encoding` as a generator for forms does: a field whose content type is JSON is one JSON text. */
const formSerializer =
  (encoding: Record<string, { contentType?: string }> = {}) =>
  (fields: object = {}) =>
    new URLSearchParams(
      Object.entries(fields).map(([name, value]): [string, string] => [
        name,
        encoding[name]?.contentType === 'application/json' ? JSON.stringify(value) : String(value),
      ]),
    ).toString();

interface Received<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

function requireData<T>({ data, error, response }: Received<T>): T {
  if (data === undefined) throw new Error(`${response.url} ${response.status} ${JSON.stringify(error)}`);
  return data;
}

function redirected({ response }: { response: Response }): void {
  if (response.status !== 302) throw new Error(`${response.url} ${response.status}`);
}

/** Makes every call; returns each response under a name such as `GET /profile`. */
export async function callEverything(store: Store): Promise<string[]> {
  const { game_id, other_game_id, upload_id, build_id, user_id, email, download_key } = store;
  const called = new Set<string>();
  const counting: Middleware = {
    onRequest: ({ request, schemaPath }) => void called.add(`${request.method} ${schemaPath}`),
  };
  const open = createClient<paths>({ baseUrl: store.url });
  const client = createClient<paths>({
    baseUrl: store.url,
    headers: { authorization: `Bearer ${store.key}` },
  });
  for (const one of [open, client]) one.use(counting);

  requireData(await open.GET('/'));
  requireData(await open.GET('/openapi.json'));
  requireData(await open.GET('/health/live'));
  requireData(await open.GET('/health/ready'));
  requireData(await open.GET('/.well-known/jwks.json'));
  requireData(await open.GET('/.well-known/oauth-authorization-server'));

  const { user } = requireData(await client.GET('/profile'));
  user.display_name satisfies string;
  user.cover_url satisfies string | null;
  const { games } = requireData(await client.GET('/profile/games'));
  games[0]!.traits satisfies ('p_windows' | 'p_linux' | string)[];
  const { owned_keys } = requireData(
    await client.GET('/profile/owned-keys', { params: { query: { page: 1 } } }),
  );
  owned_keys satisfies { purchase_id: number | null }[];
  const { game } = requireData(await client.GET('/games/{game_id}', { params: { path: { game_id } } }));
  game.user.username satisfies string;
  const { owns } = requireData(
    await client.GET('/games/{game_id}/ownership', { params: { path: { game_id } } }),
  );
  owns satisfies boolean;
  const { scopes } = requireData(await client.GET('/credentials/info'));
  scopes satisfies string[];
  const subkey = await client.POST('/credentials/subkey', { body: { game_id, scope: 'profile:me' } });
  requireData(subkey).key satisfies string;

  for (const query of [{ download_key }, { user_id }, { email }]) {
    const found = await client.GET('/games/{game_id}/download_keys', {
      params: { path: { game_id }, query },
    });
    requireData(found).download_key.owner?.id satisfies number | undefined;
  }
  const created = await client.POST('/games/{game_id}/download_keys', {
    params: { path: { game_id } },
    body: { count: 1, label: 'Press kit' },
  });
  const { id: download_key_id, label } = requireData(created).download_keys[0]!;
  label satisfies string | null;
  const revoked = await client.POST('/games/{game_id}/download_keys/{download_key_id}/revoke', {
    params: { path: { game_id, download_key_id } },
  });
  requireData(revoked).success satisfies boolean;
  for (const query of [{ user_id }, { email }])
    requireData(await client.GET('/games/{game_id}/purchases', { params: { path: { game_id }, query } }));

  const sold = await client.GET('/games/{game_id}/sales', {
    params: { path: { game_id }, query: { since: '2024-01-01T00:00:00Z', page: 1 } },
  });
  for (const { user, download_key, status } of requireData(sold).sales) {
    user satisfies { username: string } | null;
    download_key?.claimed_by satisfies { username: string } | null | undefined;
    status satisfies 'complete' | 'refunded';
  }

  requireData(await client.GET('/users/{user_id}', { params: { path: { user_id } } })).user
    .username satisfies string;
  const listed = await client.GET('/games/{game_id}/uploads', { params: { path: { game_id } } });
  for (const { filename, size } of requireData(listed).uploads) {
    filename satisfies string;
    size satisfies number | null | undefined;
  }
  requireData(await client.GET('/uploads/{upload_id}', { params: { path: { upload_id } } }));
  requireData(await client.GET('/uploads/{upload_id}/builds', { params: { path: { upload_id } } }));
  requireData(await client.GET('/builds/{build_id}', { params: { path: { build_id } } }));
  const session = await client.POST('/games/{game_id}/download-sessions', { params: { path: { game_id } } });
  const { uuid } = requireData(session);
  redirected(
    await client.GET('/uploads/{upload_id}/download', {
      params: { path: { upload_id }, query: { uuid } },
      redirect: 'manual',
    }),
  );
  redirected(
    await client.GET('/builds/{build_id}/download/{file_type}/{sub_type}', {
      params: { path: { build_id, file_type: 'archive', sub_type: 'default' } },
      redirect: 'manual',
    }),
  );

  const made = requireData(
    await client.POST('/collections', {
      body: {
        title: 'Generated',
        private: true,
        layout: 'list',
        description: null,
        game_id,
        blurb: '<b>x</b>',
      },
    }),
  ).collection;
  const path = { collection_id: made.id };
  requireData(await client.GET('/collections/{collection_id}', { params: { path } }));
  // @ts-expect-error Only lists say it.
  void made.has_game;
  const { collections } = requireData(
    await client.GET('/profile/collections', { params: { query: { game_id } } }),
  );
  collections[0]!.has_game satisfies boolean | undefined;
  // What was read can be written back.
  const { title, description, layout } = made;
  requireData(
    await client.POST('/collections/{collection_id}', {
      params: { path },
      body: { title, description, layout },
    }),
  );
  // @ts-expect-error There is no such layout.
  await client.POST('/collections/{collection_id}', { params: { path }, body: { layout: 'tiles' } });

  const added = await client.POST('/collections/{collection_id}/add-game', {
    params: { path },
    body: { game_id: other_game_id },
  });
  requireData(added).collection_game.position satisfies number;
  const order = { params: { path }, body: { game_ids: [other_game_id, game_id], remove_game_ids: [] } };
  requireData(await client.POST('/collections/{collection_id}/order', order));
  requireData(
    await client.POST('/collections/{collection_id}/order', {
      params: { path },
      body: { game_ids: [game_id, other_game_id] },
      bodySerializer: formSerializer(store.encodings['/collections/{collection_id}/order']),
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
    }),
  );
  const { collection_games } = requireData(
    await client.GET('/collections/{collection_id}/collection-games', {
      params: { path, query: { page: 1, per_page: 500 } },
    }),
  );
  if (collection_games.map((entry) => entry.game_id).join() !== `${game_id},${other_game_id}`)
    throw new Error(`another order: ${JSON.stringify(collection_games)}`);
  requireData(
    await client.POST('/collections/{collection_id}/collection-games/{game_id}', {
      params: { path: { ...path, game_id } },
      body: { blurb: null },
    }),
  );
  const removed = await client.POST('/collections/{collection_id}/remove-game', {
    params: { path },
    body: { game_id },
  });
  requireData(removed).removed satisfies boolean;
  requireData(await client.POST('/collections/{collection_id}/delete', { params: { path } }));

  const query = { channel_name: 'windows' };
  requireData(await open.GET('/wharf/latest', { params: { query: { ...query, game_id } } }));
  requireData(await open.GET('/wharf/latest', { params: { query: { ...query, target: store.target } } }));

  requireData(await client.GET('/wharf/status'));
  const { channels } = requireData(await client.GET('/wharf/channels', { params: { query: { game_id } } }));
  channels.windows!.name satisfies string;
  requireData(
    await client.GET('/wharf/channels/{channel_name}', {
      params: { path: { channel_name: 'windows' }, query: { target: store.target } },
    }),
  );

  // Games, bundles and pushed builds. Some of the objects don't exist: only the types of the calls matter.
  const newGame = requireData(await client.POST('/games', { body: { title: 'Created' } }));
  const ofCreated = { params: { path: { game_id: newGame.game.id } } };
  requireData(await client.POST('/games/{game_id}', { ...ofCreated, body: { min_price: 499 } }));
  requireData(await client.POST('/games/{game_id}/delete', ofCreated)).success satisfies true;
  requireData(await client.GET('/profile/owned-bundles')).bundle_keys satisfies object[];
  const bundle = { params: { path: { bundle_id: 4000000 } } };
  await client.GET('/bundles/{bundle_id}/bundle-games', bundle);
  await client.POST('/bundles/{bundle_id}/claim-game', { ...bundle, body: { game_id } });
  await open.GET('/download/{key}', { params: { path: { key: store.download_key } } });
  const { build } = requireData(
    await client.POST('/wharf/builds', { body: { target: store.target, channel: 'linux' } }),
  );
  const pushed = { params: { path: { build_id: build.id } } };
  requireData(await client.GET('/profile/builds')).builds satisfies object[];
  requireData(await client.GET('/wharf/builds/{build_id}', pushed)).build.id satisfies number;
  requireData(await client.GET('/wharf/builds/{build_id}/files', pushed)).files satisfies object[];
  requireData(
    await client.POST('/wharf/builds/{build_id}/events', {
      ...pushed,
      body: { type: 'log', message: 'Started' },
    }),
  );
  requireData(await client.GET('/wharf/builds/{build_id}/events', pushed)).events satisfies object[];
  const { file } = requireData(
    await client.POST('/wharf/builds/{build_id}/files', { ...pushed, body: { type: 'patch' } }),
  );
  const ofFile = { params: { path: { build_id: build.id, file_id: file.id } } };
  await client.POST('/wharf/builds/{build_id}/files/{file_id}', { ...ofFile, body: { size: 1 } });
  await client.GET('/wharf/builds/{build_id}/files/{file_id}/download', ofFile);
  await client.POST('/wharf/builds/{build_id}/publish', pushed);
  await client.POST('/wharf/builds/{build_id}/failures', { ...pushed, body: { message: 'Stopped' } });
  await client.GET('/builds/{build_id}/upgrade-paths/{target_build_id}', {
    params: { path: { build_id: store.build_id, target_build_id: store.build_id } },
  });

  // The key is in the path, without a header.
  const legacy = { KEY: store.key };
  requireData(await open.GET('/api/1/{KEY}/credentials/info', { params: { path: legacy } }));
  requireData(await open.GET('/api/1/{KEY}/me', { params: { path: legacy } }));
  requireData(await open.GET('/api/1/{KEY}/my-games', { params: { path: legacy } }));
  requireData(await open.GET('/api/1/{KEY}/my-owned-keys', { params: { path: legacy } }));
  requireData(await open.GET('/api/1/{KEY}/game/{game_id}', { params: { path: { ...legacy, game_id } } }));
  requireData(
    await open.GET('/api/1/{KEY}/game/{game_id}/uploads', { params: { path: { ...legacy, game_id } } }),
  );
  requireData(
    await open.GET('/api/1/{KEY}/upload/{upload_id}/download', {
      params: { path: { ...legacy, upload_id } },
    }),
  ).url satisfies string;
  const ofGame = { params: { path: { ...legacy, game_id }, query: { user_id } } };
  requireData(await open.GET('/api/1/{KEY}/game/{game_id}/download_keys', ofGame));
  requireData(await open.GET('/api/1/{KEY}/game/{game_id}/purchases', ofGame));
  const headers = { authorization: `Bearer ${store.jwt}` };
  requireData(await open.GET('/api/1/{KEY}/me', { params: { path: { KEY: 'jwt' } }, headers }));

  const { client_id } = store;
  const asForm = {
    bodySerializer: formSerializer(),
    headers: { 'content-type': 'application/x-www-form-urlencoded' },
  };
  const device = requireData(
    await open.POST('/oauth/device', { ...asForm, body: { client_id, scope: 'profile:me' } }),
  );
  const { device_code } = device;
  requireData(await open.POST('/oauth/device/poll', { ...asForm, body: { client_id, device_code } }));
  const token = await open.POST('/oauth/token', {
    ...asForm,
    body: { grant_type: 'urn:ietf:params:oauth:grant-type:device_code', client_id, device_code },
  });
  // The user has not consented.
  if (
    token.error === undefined ||
    !('error' in token.error) ||
    !/slow_down|authorization_pending/.test(token.error.error)
  )
    throw new Error(JSON.stringify(token));
  requireData(await open.POST('/oauth/revoke', { ...asForm, body: { client_id, token: 'unknown' } }));
  return [...called].sort();
}
