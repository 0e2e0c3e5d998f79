import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { get as httpGet, request as httpRequest } from 'node:http';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { DownloadCounts } from '../../src/uploads/download-counts.service';
import { type Browser, signInBrowser, cookieHeaders } from '../support/browser';
import { application, authorize, authorizePath, pkce } from '../support/oauth';
import { S3Double } from '../support/s3';
import { type Actor } from '../support/actor';
import { baseUrl, openApp, theApp, useStore } from '../support/app';
import { send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';

// Requests of existing clients, from a player's owned keys to the bytes on disk.

// Larger than the buffers of a connection, so that the cut is in the middle.
const CONTENT = randomBytes(8 * 2 ** 20);
const md5Hex = (content: Buffer) => createHash('md5').update(content).digest('hex');
const FILE_KEY = 'moon/a b+ø.zip';

interface File {
  id: number;
  size: number;
  md5_hash: string;
  filename: string;
  storage: string;
}
interface OwnedKey {
  id: number;
  game_id: number;
  updated_at: string;
}
interface OwnedBundles {
  bundle_keys: { bundle_id: number; bundle: { id: number; version: number; games_count: number } }[];
}
interface Sent {
  path: string;
  method: string;
  headers: Record<string, string>;
  body?: string;
}

/** The rows of the first table in docs/reference/client-compatibility.md. */
const CLIENTS = [
  'launcher',
  'tool, key in the header',
  'tool, key in download URLs',
  'key in the body of a GET',
  'legacy client',
  'upload tool',
] as const;
type Client = (typeof CLIENTS)[number];

/** What each client sent, by the endpoint as the page spells it. */
const sent = new Map<string, Partial<Record<Client, Sent>>>();

/** The headers of programs that use the marketplace's own Go library. The key is bare. */
const GO_LIBRARY = (key: string) => ({
  'user-agent': 'butler/head',
  accept: 'application/vnd.itch.v2',
  'accept-language': '*',
  'accept-encoding': 'gzip',
  authorization: key,
});

/**
 * A client that sends these headers with each request. With `keyInUrls`, it downloads with this key in the query and
 * without them; with `body`, each GET has this body.
 */
class Program {
  constructor(
    private readonly client: Client,
    private readonly headers: Record<string, string>,
    private readonly more: { keyInUrls?: string; body?: string } = {},
  ) {}

  async json<T>(path: string, { method = 'GET', body }: Partial<Sent> = {}): Promise<T> {
    const { status, body: received } = await this.send(path, { method, body });
    expect([path, status]).toEqual([path, 200]);
    return received as T;
  }

  /** The player's keys, page by page until one is empty. */
  async ownedKeys(path = '/profile/owned-keys', query = ''): Promise<OwnedKey[]> {
    const found: OwnedKey[] = [];
    for (let page = 1; ; page++) {
      const { owned_keys } = await this.json<{ owned_keys: OwnedKey[] }>(`${path}?page=${page}${query}`);
      if (!owned_keys.length) return found;
      found.push(...owned_keys);
    }
  }

  async uploads(path: string): Promise<File[]> {
    return (await this.json<{ uploads: File[] }>(path)).uploads;
  }

  /** Requests the redirect, follows it, and writes the response at the offset of the range. */
  async download(path: string, to: string, range?: [from: number, to: number | '']): Promise<number> {
    const more: Record<string, string> = range ? { range: `bytes=${range.join('-')}` } : {};
    const response = await fetch(await this.fetchLocation(path, more), { headers: more });
    const content = Buffer.from(await response.arrayBuffer());
    const file = await open(to, range ? 'r+' : 'w');
    await file.write(content, 0, content.length, range?.[0] ?? 0).finally(() => file.close());
    return response.status;
  }

  async fetchLocation(path: string, headers: Record<string, string> = {}): Promise<string> {
    const { keyInUrls } = this.more;
    const { status, headers: received } =
      keyInUrls === undefined
        ? await this.send(path, { headers })
        : await this.sendAll(`${path}&api_key=${keyInUrls}`, { headers: { range: 'bytes=0-', ...headers } });
    expect([path, status]).toEqual([path, 302]);
    return received.get('location')!;
  }

  private send(path: string, { headers, ...more }: Partial<Sent> = {}) {
    return this.sendAll(path, { ...more, headers: { ...this.headers, ...headers } });
  }

  private sendAll(path: string, { method = 'GET', headers = {}, body }: Partial<Sent>) {
    if (method === 'GET') body ??= this.more.body;
    const all: Record<string, string> = { ...headers };
    if (body !== undefined) all['content-type'] = 'application/x-www-form-urlencoded';
    record(this.client, { path, method, headers: all, body });
    return method === 'GET' && body !== undefined
      ? getWithBody(path, all, body)
      : send(method, path, { headers: all, body });
  }
}

function record(client: Client, one: Sent): void {
  const path = one.path
    .replace(/\?.*/, '')
    .replace(/\/\d+(?=\/|$)/g, '/ID')
    .replace(/^\/api\/ID\/[^/]+/, '/api/1/KEY')
    .replace(/channels\/.+/, 'channels/NAME');
  const endpoint = `${one.method} ${path}`;
  sent.set(endpoint, { ...sent.get(endpoint), [client]: one });
}

/** `fetch` sends no body with a GET. */
async function getWithBody(path: string, headers: Record<string, string>, body: string, base = baseUrl()) {
  const length = { 'content-length': String(body.length) };
  return new Promise<{ status: number; body: unknown; headers: Headers }>((resolve, reject) => {
    httpRequest(base + path, { headers: { ...headers, ...length } }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (piece: string) => (text += piece));
      response.on('end', () =>
        resolve({
          status: response.statusCode!,
          body: text.startsWith('{') ? (JSON.parse(text) as unknown) : text,
          headers: new Headers(response.headers as Record<string, string>),
        }),
      );
    })
      .on('error', reject)
      .end(body);
  });
}

/** Writes the response until the connection is cut after this many bytes. */
async function cutDownload(location: string, to: string, after: number): Promise<void> {
  const content = await new Promise<Buffer>((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const request = httpGet(location, (response) => {
      response.on('data', (piece: Buffer) => {
        pieces.push(piece);
        if ((bytes += piece.length) >= after) request.destroy();
      });
      response.on('close', () => resolve(Buffer.concat(pieces)));
    });
    request.on('error', reject);
  });
  await writeFile(to, content);
}

async function expectComplete(path: string, { size, md5_hash }: Pick<File, 'size' | 'md5_hash'>) {
  const content = await readFile(path);
  expect([content.length, md5Hex(content)]).toEqual([size, md5_hash]);
}

let folder = '';
const onDisk = (name: string) => join(folder, name);
beforeAll(async () => (folder = await mkdtemp(join(tmpdir(), 'gamewharf-launchers-'))));
afterAll(() => rm(folder, { recursive: true }));

describe.each(['folder', 'bucket'])('files in a %s', (storage) => {
  const environment: Record<string, string> = { LENIENT_CLIENTS: 'true' };
  let bucket: S3Double | undefined;
  beforeAll(() => sent.clear());
  beforeAll(async () => {
    if (storage === 'bucket') {
      bucket = await S3Double.open();
      bucket.objects.set(FILE_KEY, CONTENT);
      Object.assign(environment, bucket.settings);
    } else {
      environment.FILES_DIR = join(folder, 'files');
      await mkdir(dirname(join(environment.FILES_DIR, FILE_KEY)), { recursive: true });
      await writeFile(join(environment.FILES_DIR, FILE_KEY), CONTENT);
    }
  });
  useStore(environment);
  afterAll(() => bucket?.close());

  let owner: Actor;
  let player: Actor;
  let browser: Browser;
  let game: { id: number; slug: string };
  let key: { id: number };
  let upload: { id: number };
  let build: { id: number };

  beforeAll(async () => {
    ({ owner, stranger: player } = await actors());
    browser = await signInBrowser(player);
    game = await make.game({ owner, min_price: 500 });
    key = await make.downloadKey({ game, user_id: player.id, account_id: player.id });
    const stored = { file_key: FILE_KEY, size: CONTENT.length, md5_hash: md5Hex(CONTENT) };
    upload = await make.upload({ game, traits: ['p_windows'], filename: 'møøn +1.zip', ...stored });
    build = await make.build({ game, user_version: '1.2.0', ...stored });
    await make.upload({ game, channel_name: 'windows', traits: ['p_windows'], position: 1 });
  });

  /** Signs the player in through the consent page, which lists these descriptions of the scope. */
  async function signedIn(client: Client, scope: string, ...meanings: string[]): Promise<Program> {
    const app = await application({ scopes: ['profile', 'collection', 'game'] });
    const path = authorizePath(app.codeRequest(pkce().code_challenge, { scope }));
    record(client, { method: 'GET', path, headers: cookieHeaders(browser) });
    await browser.get(path);
    for (const meaning of meanings) expect(browser.words).toContain(meaning);
    const { key: token } = await app.tokensFor({ scope }, browser);
    expect(token.created_at).toMatch(/^\d{4}-\d\d-\d\dT[\d:]{8}Z$/);
    return new Program(client, GO_LIBRARY(token.key), { keyInUrls: token.key });
  }

  async function downloads(): Promise<number> {
    await theApp().get(DownloadCounts).flush();
    const [row] = await sql<{ downloads: number }>('SELECT downloads FROM download_keys WHERE id = $1', [
      key.id,
    ]);
    return row!.downloads;
  }

  test('a launcher with the scope itch downloads over eight connections as one download', async () => {
    const launcher = await signedIn(
      'launcher',
      'itch',
      'See everything on your profile: see who you are;',
      'Everything about your collections: see your collections',
      'See whether you own a game',
      'List and download the files of games you own',
    );
    const { user } = await launcher.json<{ user: { id: number } }>('/profile');
    expect(user.id).toBe(player.id);
    const [owned] = await launcher.ownedKeys();
    expect(owned).toMatchObject({ id: key.id, game_id: game.id, updated_at: expect.any(String) as string });
    const uploads = await launcher.uploads(`/games/${owned!.game_id}/uploads?download_key_id=${owned!.id}`);
    const hosted = uploads.find((one) => one.storage === 'hosted')!;
    const before = await downloads();
    const { uuid } = await launcher.json<{ uuid: string }>(`/games/${game.id}/download-sessions`, {
      method: 'POST',
      body: `download_key_id=${key.id}`,
    });
    const path = `/uploads/${hosted.id}/download?download_key_id=${key.id}&uuid=${uuid}`;
    await writeFile(onDisk('parallel.zip'), '');
    const part = hosted.size / 8;
    const statuses = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        launcher.download(path, onDisk('parallel.zip'), [i * part, (i + 1) * part - 1]),
      ),
    );
    expect(statuses).toEqual(Array(8).fill(206));
    await expectComplete(onDisk('parallel.zip'), hosted);
    expect(await downloads()).toBe(before + 1);
  });

  test('a launcher downloads a build of a channel', async () => {
    const launcher = await signedIn('launcher', 'itch');
    const uploads = await launcher.uploads(`/games/${game.id}/uploads?download_key_id=${key.id}`);
    const channel = uploads.find((one) => one.storage === 'build')!;
    const { builds } = await launcher.json<{ builds: { id: number; user_version: string }[] }>(
      `/uploads/${channel.id}/builds?download_key_id=${key.id}`,
    );
    expect(builds.map(({ id }) => id)).toEqual([build.id]);
    const found = await launcher.json<{
      build: { files: { type: string; sub_type: string; size: number }[] };
    }>(`/builds/${build.id}?download_key_id=${key.id}`);
    const [file] = found.build.files;
    expect(file).toMatchObject({ type: 'archive', sub_type: 'default', size: CONTENT.length });
    const path = `/builds/${build.id}/download/archive/default?download_key_id=${key.id}`;
    expect(await launcher.download(path, onDisk('build.zip'))).toBe(200);
    await expectComplete(onDisk('build.zip'), channel);
  });

  test('a download tool with its key in the URLs of downloads resumes a file after a cut', async () => {
    const tool = new Program('tool, key in download URLs', player.headers, { keyInUrls: player.key });
    const [owned] = await tool.ownedKeys();
    const [hosted] = await tool.uploads(`/games/${game.id}/uploads?download_key_id=${owned!.id}`);
    const { uuid } = await tool.json<{ uuid: string }>(`/games/${game.id}/download-sessions`, {
      method: 'POST',
      body: '',
    });
    const path = `/uploads/${hosted!.id}/download?download_key_id=${owned!.id}&uuid=${uuid}`;
    await cutDownload(await tool.fetchLocation(path), onDisk('resumed.zip'), 1_000_000);
    const { size } = await stat(onDisk('resumed.zip'));
    expect(size).toBeGreaterThanOrEqual(1_000_000);
    expect(size).toBeLessThan(hosted!.size);
    expect(await tool.download(path, onDisk('resumed.zip'), [size, ''])).toBe(206);
    await expectComplete(onDisk('resumed.zip'), hosted!);
  });

  test('a download tool with a bearer token downloads every file with its MD5', async () => {
    const tool = new Program('tool, key in the header', player.headers);
    const [owned] = await tool.ownedKeys();
    for (const file of await tool.uploads(`/games/${owned!.game_id}/uploads?download_key_id=${owned!.id}`)) {
      const path = `/uploads/${file.id}/download?download_key_id=${owned!.id}`;
      expect(await tool.download(path, onDisk(file.filename))).toBe(200);
      await expectComplete(onDisk(file.filename), file);
    }
  });

  test('a download tool sends its key and all parameters in the body of a GET', async () => {
    const body = `api_key=${player.key}&download_key_id=${key.id}`;
    const tool = new Program('key in the body of a GET', {}, { body });
    const { uploads } = await tool.json<{ uploads: File[] }>(`/games/${game.id}/uploads`);
    const { upload: one } = await tool.json<{ upload: File }>(`/uploads/${upload.id}`);
    expect(uploads).toContainEqual(one);
    expect(await tool.download(`/uploads/${one.id}/download`, onDisk('body.zip'))).toBe(200);
    await expectComplete(onDisk('body.zip'), one);
  });

  test('a game manager uses the legacy routes', async () => {
    const manager = new Program('legacy client', {});
    const base = `/api/1/${player.key}`;
    const [owned] = await manager.ownedKeys(`${base}/my-owned-keys`);
    const { uploads } = await manager.json<{ uploads: (File & { p_windows: boolean })[] }>(
      `${base}/game/${owned!.game_id}/uploads?download_key_id=${owned!.id}`,
    );
    const windows = uploads.find(({ p_windows }) => p_windows)!;
    const { url } = await manager.json<{ url: string }>(
      `${base}/upload/${windows.id}/download?download_key_id=${owned!.id}`,
    );
    await writeFile(onDisk('legacy.zip'), Buffer.from(await (await fetch(url)).arrayBuffer()));
    await expectComplete(onDisk('legacy.zip'), windows);
  });

  test('an upload tool requests the scope wharf', async () => {
    const tool = await signedIn('upload tool', 'wharf');
    expect(await tool.json('/wharf/status')).toEqual({ success: true });
    const edited = await make.game({ owner: player });
    await make.build({ game: edited, file_key: FILE_KEY, size: CONTENT.length });
    await make.upload({ game: edited, channel_name: 'windows', traits: ['p_windows'] });
    const target = `${player.username}/${edited.slug}`;
    const { channels } = await tool.json<{ channels: object }>(`/wharf/channels?target=${target}`);
    expect(Object.keys(channels)).toEqual(['windows']);
    const one = await tool.json<{ channel: { name: string } }>(`/wharf/channels/windows?target=${target}`);
    expect(one.channel.name).toBe('windows');
  });

  test('the login of an upload tool sends the whole fragment of its redirect as the key', async () => {
    const app = await application({
      scopes: ['profile:games', 'game:view:uploads', 'game:edit:builds'],
    });
    const location = await authorize(app.tokenRequest({ scope: 'wharf' }), browser);
    const { status, body } = await send('GET', '/wharf/status', {
      headers: GO_LIBRARY(new URL(location).hash.slice(1)),
    });
    expect([status, body]).toEqual([200, { success: true }]);
  });

  test('a launcher reads the games of a bundle again only if they changed, and claims the one to install', async () => {
    const launcher = await signedIn('launcher', 'itch');
    const ids = await sql<{ id: number }>(
      `INSERT INTO games (user_id, slug, title, visibility)
       SELECT $1, 'bundled-' || $2 || '-' || n, 'Bundled', 'private' FROM generate_series(1, 250) n RETURNING id`,
      [owner.id, storage],
    );
    const games = [...ids, game];
    const { id: bundle_id } = await make.bundle({ owner, games });
    const bought = { purchase_type: 'bundle', bundle_id, user_id: player.id };
    await make.purchase({ ...bought, games, created_at: '2026-01-01T00:00:00Z' });
    const newest = await make.purchase({ ...bought, games, created_at: '2026-02-01T00:00:00Z' });
    const stored = new Map<number, { version: number; games_count: number; games: number[] }>();
    /** The bundles whose games were read. One with much fewer games than announced is read again at the next sync. */
    const sync = async (afterPage: (page: number) => unknown = () => undefined) => {
      const read: number[] = [];
      const { bundle_keys } = await launcher.json<OwnedBundles>('/profile/owned-bundles');
      expect(new Set(bundle_keys.map((one) => one.bundle_id)).size).toBe(bundle_keys.length);
      for (const { bundle } of bundle_keys) {
        const known = stored.get(bundle.id);
        if (known?.version === bundle.version && known.games_count === bundle.games_count) continue;
        const listed: number[] = [];
        for (let page = 1; ; page++) {
          const { bundle_games } = await launcher.json<{ bundle_games: { game_id: number }[] }>(
            `/bundles/${bundle.id}/bundle-games?page=${page}`,
          );
          if (bundle_games.length === 0) break;
          listed.push(...bundle_games.map(({ game_id }) => game_id));
          await afterPage(page);
        }
        const missing = bundle.games_count - listed.length;
        if (missing > Math.max(5, bundle.games_count / 20)) continue;
        expect(missing).toBe(0);
        stored.set(bundle.id, { ...bundle, games: listed });
        read.push(bundle.id);
      }
      return read;
    };
    expect(await sync()).toEqual([bundle_id]);
    expect(stored.get(bundle_id)!.games).toEqual(games.map(({ id }) => id));
    expect(await sync()).toEqual([]);
    await sql('UPDATE bundles SET version = version + 1 WHERE id = $1', [bundle_id]);
    expect(await sync()).toEqual([bundle_id]);

    const claim = () =>
      launcher.json<{ download_key: OwnedKey & { purchase_id: number } }>(
        `/bundles/${bundle_id}/claim-game`,
        {
          method: 'POST',
          body: `game_id=${ids[7]!.id}`,
        },
      );
    const { download_key } = await claim();
    expect(download_key).toMatchObject({ game_id: ids[7]!.id, purchase_id: newest.id });
    expect(await claim()).toEqual({ download_key });
    expect(await launcher.ownedKeys()).toContainEqual(download_key);

    // The list becomes shorter while it is read.
    await sql('UPDATE bundles SET version = version + 1 WHERE id = $1', [bundle_id]);
    const shorten = async (page: number) => {
      if (page !== 1) return;
      await sql('DELETE FROM bundle_games WHERE bundle_id = $1 AND position > 20', [bundle_id]);
      await sql('UPDATE bundles SET version = version + 1, games_count = 20 WHERE id = $1', [bundle_id]);
    };
    expect(await sync(shorten)).toEqual([]);
    expect(await sync()).toEqual([bundle_id]);
    expect(stored.get(bundle_id)!.games).toEqual(games.slice(0, 20).map(({ id }) => id));
    expect(await launcher.uploads(`/games/${ids[7]!.id}/uploads?download_key_id=${download_key.id}`)).toEqual(
      [],
    );
  });

  test('the compatibility page lists what works for these clients', async () => {
    const strict = await openApp({ ...environment, LENIENT_CLIENTS: 'false' });
    const base = await strict.getUrl();
    const works = async ({ path, method, headers, body }: Sent) => {
      const { status, headers: received } =
        method === 'GET' && body !== undefined
          ? await getWithBody(path, headers, body, base)
          : await fetch(base + path, { method, headers, body, redirect: 'manual' });
      return status < 400 && !received.get('location')?.includes('error=');
    };
    const rows = [];
    for (const client of CLIENTS) {
      const [yes, lenient]: [string[], string[]] = [[], []];
      for (const [endpoint, clients] of [...sent].toSorted(([a], [b]) => a.localeCompare(b))) {
        const one = clients[client];
        if (one) ((await works(one)) ? yes : lenient).push(`\`${endpoint}\``);
      }
      rows.push([client, yes.join(', '), lenient.join(', ')]);
    }
    expect(tableIn(await readFile('docs/reference/client-compatibility.md', 'utf8'))).toEqual(rows);
  });
});

const tableIn = (page: string): string[][] =>
  page
    .split('\n\n')
    .find((part) => part.startsWith('| client'))!
    .trim()
    .split('\n')
    .slice(2)
    .map((line) =>
      line
        .slice(1, -1)
        .split('|')
        .map((cell) => cell.trim()),
    );
