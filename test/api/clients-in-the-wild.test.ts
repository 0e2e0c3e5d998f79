import { connect } from 'node:net';
import { sendRaw } from '../support/raw';
import { Actor } from '../support/actor';
import { baseUrl, useStore } from '../support/app';
import { make } from '../support/make';

// Requests of real clients, byte for byte, with other names and keys.
useStore();

interface Sent {
  status: number;
  body: unknown;
}

async function exchange(lines: string[], body = ''): Promise<Sent> {
  const response = await sendRaw(`${lines.join('\r\n')}\r\n\r\n${body}`);
  return { status: response.status, body: JSON.parse(response.body) as unknown };
}

const DEFAULT = "leaf's Collection";
/** Placeholder for the length of the body. */
const LENGTH = 'Content-Length';

let owner: Actor;
let game: { id: number; slug: string };

beforeAll(async () => {
  owner = await make.user({ username: 'leaf', developer: true });
  game = await make.game({ owner, slug: 'x-moon' });
});

describe('the Go client', () => {
  const head = (line: string, key = owner.key!) => [
    `${line} HTTP/1.1`,
    'Host: api.example',
    'User-Agent: go-client',
    'Accept: application/vnd.itch.v2',
    'Accept-Language: *',
    `Authorization: ${key}`,
  ];
  const gzip = 'Accept-Encoding: gzip';
  const form = 'Content-Type: application/x-www-form-urlencoded';
  const post = (path: string, body: string) =>
    exchange([...head(`POST ${path}`).toSpliced(3, 0, `Content-Length: ${body.length}`), form, gzip], body);

  test('sends a bare key and its own Accept header', async () => {
    expect(await exchange([...head('GET /profile'), gzip])).toMatchObject({
      status: 200,
      body: { user: { id: owner.id } },
    });
  });

  test('reads the error from the body, whatever the status', async () => {
    expect(await exchange([...head('GET /profile', 'nonsense'), gzip])).toEqual({
      status: 401,
      body: { errors: ['invalid key'] },
    });
    expect(await exchange([...head('GET /profile/library?page=1'), gzip])).toEqual({
      status: 404,
      body: { errors: ['invalid api endpoint'] },
    });
  });

  test('creates, fills, orders and deletes a collection with forms, some of them empty', async () => {
    const others = [await make.game({ owner }), await make.game({ owner })];
    const created = await post('/collections', 'private=false&title=To+play+%26+finish');
    expect(created).toMatchObject({ status: 200, body: { collection: { title: 'To play & finish' } } });
    const { id } = (created.body as { collection: { id: number } }).collection;
    for (const one of [game, ...others])
      expect(await post(`/collections/${id}/add-game`, `game_id=${one.id}`)).toMatchObject({
        status: 200,
        body: { collection_game: { game_id: one.id, game: { title: expect.any(String) as string } } },
      });
    const ids = [others[1]!.id, game.id].join('%2C');
    expect(await post(`/collections/${id}/order`, `game_ids=%5B${ids}%5D`)).toEqual({
      status: 200,
      body: { success: true },
    });
    expect(
      await post(`/collections/${id}/order`, `game_ids=%5B%5D&remove_game_ids=%5B${others[0]!.id}%5D`),
    ).toEqual({ status: 200, body: { success: true } });
    const { body } = await exchange([...head(`GET /collections/${id}/collection-games`), gzip]);
    expect(
      (body as { collection_games: { game_id: number }[] }).collection_games.map((one) => one.game_id),
    ).toEqual([others[1]!.id, game.id]);
    // A pointer to an empty string clears a field; an omitted field leaves it unchanged.
    expect(await post(`/collections/${id}`, 'description=')).toMatchObject({
      body: { collection: { description: null, title: 'To play & finish' } },
    });
    expect(await post(`/collections/${id}`, '')).toMatchObject({ status: 200 });
    expect(await post(`/collections/${id}/delete`, '')).toEqual({ status: 200, body: { success: true } });
  });

  test('sends the key in the path, or a bare JWT in the header, in its first versions', async () => {
    const old = (path: string, ...more: string[]) =>
      exchange([`GET /api/1/${path} HTTP/1.1`, 'Host: h', 'User-Agent: go-client', ...more, gzip]);
    expect(await old(`${owner.key}/my-games`)).toMatchObject({ status: 200 });
    expect(await old('jwt/me', 'Authorization: aaaa.bbbb.cccc')).toEqual({
      status: 401,
      body: { errors: ['invalid token'] },
    });
  });
});

describe('page loops', () => {
  async function makeCollection(count: number) {
    const games = [];
    for (let i = 0; i < count; i++) games.push(await make.game({ owner }));
    return { collection: await make.collection({ owner, games }), games };
  }

  async function page(id: number, page: number, per_page: number): Promise<number[]> {
    const { status, body } = await exchange([
      `GET /collections/${id}/collection-games?page=${page}&per_page=${per_page} HTTP/1.1`,
      'Host: h',
      `Authorization: Bearer ${owner.key}`,
    ]);
    const response = body as { page: number; per_page: number; collection_games: { game_id: number }[] };
    expect({ status, page: response.page, per_page: response.per_page }).toEqual({
      status: 200,
      page,
      per_page,
    });
    return response.collection_games.map((one) => one.game_id);
  }

  test.each([0, 1, 3, 4, 5, 8])(
    'of %i games, four per page, stop at an empty or short page',
    async (count) => {
      const { collection, games } = await makeCollection(count);
      const untilEmpty: number[] = [];
      for (let n = 1; ; n++) {
        const ids = await page(collection.id, n, 4);
        if (ids.length === 0) break;
        untilEmpty.push(...ids);
      }
      const untilShort: number[] = [];
      for (let n = 1; ; n++) {
        const ids = await page(collection.id, n, 4);
        untilShort.push(...ids);
        if (ids.length < 4) break;
      }
      expect(untilEmpty).toEqual(games.map(({ id }) => id));
      expect(untilShort).toEqual(untilEmpty);
      expect(await page(collection.id, 1_000_000, 4)).toEqual([]);
    },
  );
});

describe('email addresses with a plus sign', () => {
  test.each([
    'ada+games@example.com',
    'ada%2Bgames@example.com',
    'ada%20games@example.com',
    'ADA+Games%40example.com',
  ])('%s in the query string', async (written) => {
    const { key } = await make.downloadKey({ game, email: 'ada+games@example.com' });
    for (const path of [
      `/games/${game.id}/download_keys?email=${written}`,
      `/api/1/${owner.key}/game/${game.id}/download_keys?email=${written}`,
    ])
      expect(
        await exchange([`GET ${path} HTTP/1.1`, 'Host: h', `Authorization: Bearer ${owner.key}`]),
      ).toMatchObject({ status: 200, body: { download_key: { key } } });
  });
});

describe('libraries and engines', () => {
  const path = '/wharf/latest?target=leaf/x-moon&channel_name=windows';
  const authorization = () => `Authorization: Bearer ${owner.key}`;

  beforeAll(() => make.build({ game, user_version: '1.2.0' }));

  test.each<[string, string[]]>([
    ['curl', [`GET ${path} HTTP/1.1`, 'Host: h', 'User-Agent: curl/7.88.1', 'Accept: */*']],
    [
      'Python urllib',
      [
        `GET ${path} HTTP/1.1`,
        'Accept-Encoding: identity',
        'Host: h',
        'User-Agent: Python-urllib/3.11',
        'Connection: close',
      ],
    ],
    [
      'Unity',
      [
        `GET ${path.replace('/x', '%2Fx')} HTTP/1.1`,
        'Host: h',
        'User-Agent: UnityPlayer/2021.3.1f1 (UnityWebRequest/1.0, libcurl/7.80.0-DEV)',
        'Accept: */*',
        'Accept-Encoding: deflate, gzip',
        'X-Unity-Version: 2021.3.1f1',
      ],
    ],
    [
      'Godot',
      [
        `GET ${path.replace('/x', '%2Fx')} HTTP/1.1`,
        'Host: h',
        'User-Agent: GodotEngine/4.2 (Linux)',
        'Accept: */*',
        'Accept-Encoding: gzip, deflate',
      ],
    ],
    [
      'LuaSocket',
      [
        `GET ${path} HTTP/1.1`,
        'host: h',
        'user-agent: LuaSocket 3.0',
        'te: trailers',
        'connection: close, TE',
      ],
    ],
    ['HTTP/1.0 without a Host', [`GET ${path} HTTP/1.0`]],
    [
      'a GET that announces an empty body',
      [`GET ${path} HTTP/1.1`, 'Host: h', 'Content-Type: application/json', 'Content-Length: 0'],
    ],
    ['an absolute URL, as sent to a proxy', [`GET http://h${path} HTTP/1.1`, 'Host: h']],
    [
      'a page in a browser',
      [
        `GET ${path} HTTP/1.1`,
        'Host: h',
        'Origin: https://game.example',
        'Sec-Fetch-Mode: cors',
        'Cache-Control: no-cache',
        'Pragma: no-cache',
      ],
    ],
  ])('%s requests the newest version', async (_name, lines) => {
    expect(await exchange(lines)).toEqual({ status: 200, body: { latest: '1.2.0' } });
  });

  test.each<[string, string[], string, string]>([
    ['an empty form', ['Content-Type: application/x-www-form-urlencoded', 'Content-Length: 0'], '', DEFAULT],
    ['an empty body without a type', ['Content-Length: 0'], '', DEFAULT],
    ['neither a type nor a length', [], '', DEFAULT],
    ['an empty chunked body', ['Transfer-Encoding: chunked'], '0\r\n\r\n', DEFAULT],
    ['a form', ['Content-Type: application/x-www-form-urlencoded; charset=UTF-8', LENGTH], 'title=A', 'A'],
    ['JSON', ['Content-Type: application/json; charset=utf-8', LENGTH], '{"title":"A"}', 'A'],
    [
      'a form in chunks',
      ['Content-Type: application/x-www-form-urlencoded', 'Transfer-Encoding: chunked'],
      '7\r\ntitle=A\r\n0\r\n\r\n',
      'A',
    ],
    [
      'multipart with a quoted boundary',
      ['Content-Type: multipart/form-data; boundary="q z"', LENGTH],
      '--q z\r\nContent-Disposition: form-data; name="title"\r\n\r\nA\r\n--q z--\r\n',
      'A',
    ],
  ])('POST with %s', async (_name, lines, body, title) => {
    const head = [
      'POST /collections HTTP/1.1',
      'Host: h',
      authorization(),
      'Connection: close',
      ...lines.map((line) => (line === LENGTH ? `Content-Length: ${body.length}` : line)),
    ];
    expect(await exchange(head, body)).toMatchObject({ status: 200, body: { collection: { title } } });
  });

  test('accepts IDs as a JSON array in one field, with the spaces that some libraries write', async () => {
    const collection = await make.collection({ owner, games: [game] });
    for (const ids of [`[${game.id}]`, `[ ${game.id} ]`, `%5B${game.id}%5D`, `%5B+${game.id}+%5D`, '[]']) {
      const body = `game_ids=${ids}`;
      expect(
        await exchange(
          [
            `POST /collections/${collection.id}/order HTTP/1.1`,
            'Host: h',
            authorization(),
            'Content-Type: application/x-www-form-urlencoded',
            `Content-Length: ${body.length}`,
          ],
          body,
        ),
      ).toEqual({ status: 200, body: { success: true } });
    }
  });

  test('supports a client that waits for 100 Continue before it sends its form', async () => {
    const said = await converse(
      [
        'POST /collections HTTP/1.1',
        'Host: h',
        authorization(),
        'Content-Type: application/x-www-form-urlencoded',
        'Content-Length: 7',
        'Expect: 100-continue',
        'Connection: close',
      ],
      'title=A',
    );
    expect(said).toMatch(/^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 200 OK\r\n[^]*"title":"A"/);
  });

  test('responds in order to two pipelined requests', async () => {
    const said = await converse([
      'GET /health/live HTTP/1.1',
      'Host: h',
      '',
      `GET ${path} HTTP/1.1`,
      'Host: h',
      'Connection: close',
    ]);
    expect(said).toMatch(/\r\n\r\n\{"status":"ok"\}HTTP\/1\.1 200 OK\r\n[^]*\r\n\r\n\{"latest":"1\.2\.0"\}$/);
  });
});

/** All that the server sends until it closes the connection; `then` is sent after a 100 Continue. */
function converse(lines: string[], then = ''): Promise<string> {
  const { hostname, port } = new URL(baseUrl());
  return new Promise((resolve, reject) => {
    let said = '';
    const socket = connect(Number(port), hostname, () => socket.write(`${lines.join('\r\n')}\r\n\r\n`));
    socket.on('data', (chunk) => {
      said += chunk.toString();
      if (said === 'HTTP/1.1 100 Continue\r\n\r\n') socket.write(then);
    });
    socket.on('end', () => resolve(said));
    socket.on('error', reject);
  });
}
