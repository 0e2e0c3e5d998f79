import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readlink, rm, symlink, truncate, writeFile } from 'node:fs/promises';
import { get as httpGet, type IncomingMessage } from 'node:http';
import { connect, type Socket } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import { RequestGate } from '../../src/platform/server/request-gate';
import { DownloadCounts } from '../../src/uploads/download-counts.service';
import { FILES_EACH, FileResponses } from '../../src/uploads/file-responses';
import { FilesService, type NewFile } from '../../src/uploads/files.service';
import { S3Storage } from '../../src/uploads/storage/s3-storage';
import { TestClock } from '../support/clock';
import { holdLocks, untilBlocked } from '../support/locks';
import { runIf } from '../support/run-if';
import { S3Double } from '../support/s3';
import { type Actor, anonymous } from '../support/actor';
import { baseUrl, logged, openApp, theApp, theClock, useStore } from '../support/app';
import { failure, ok, send } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

let folder = '';
let bucket: S3Double;
const environment: Record<string, string> = { LENIENT_CLIENTS: 'true' };

beforeAll(async () => {
  const outer = await mkdtemp(join(tmpdir(), 'gamewharf-files-'));
  folder = environment.FILES_DIR = join(outer, 'files');
  await mkdir(join(folder, 'moon'), { recursive: true });
});
useStore(environment);

let owner: Actor;
let player: Actor;
let game: { id: number };
beforeAll(async () => {
  ({ owner, stranger: player } = await actors());
  game = await make.game({ owner });
  bucket = await S3Double.open(theClock());
});
afterAll(async () => {
  await bucket.close();
  await rm(join(folder, '..'), { recursive: true });
});
afterEach(() => theClock().reset());

const CONTENT = Buffer.from(Array.from({ length: 100_000 }, (_, i) => i % 251));

/** Response to a download request. The redirect isn't followed. */
const redirect = (path: string, headers: Record<string, string> = {}, method = 'GET') =>
  send(method, path, { headers: { ...player.headers, ...headers } });
const readLocation = async (path: string) => (await redirect(path)).headers.get('location')!;

/** An upload that no socket buffers as a whole. */
async function large(): Promise<number> {
  const size = 16 * 2 ** 20;
  await writeFile(join(folder, 'large'), '');
  await truncate(join(folder, 'large'), size);
  return (await make.upload({ game, file_key: 'large', size })).id;
}

async function uploaded(key: string, fields: object = {}) {
  await writeFile(join(folder, key), CONTENT);
  return make.upload({ game, file_key: key, size: CONTENT.length, ...fields });
}

test.each([
  ['GET', {}],
  ['GET', { range: 'bytes=0-99' }],
  ['GET', { range: 'bytes=500-' }],
  ['HEAD', {}],
])('redirects %s %j to a new URL each time', async (method, headers) => {
  const { id } = await uploaded('moon/moon.zip');
  const { status, headers: received } = await redirect(`/uploads/${id}/download`, headers, method);
  expect([status, received.get('cache-control')]).toEqual([302, 'no-store']);
  expect(received.get('location')).toMatch(new RegExp(`^${baseUrl()}/files/[\\w.-]+/moon\\.zip$`));
  theClock().advance(1000);
  const again = await redirect(`/uploads/${id}/download`, headers, method);
  expect(again.headers.get('location')).not.toBe(received.get('location'));
});

test('redirects an external upload to its page, and a file with a URL to that URL', async () => {
  const external = await make.upload({ game, external_url: 'https://example.com/moon?a=b' });
  expect(await readLocation(`/uploads/${external.id}/download`)).toBe('https://example.com/moon?a=b');
  const elsewhere = await make.upload({
    game,
    file_key: null,
    file_url: 'https://cdn.example.com/a.zip',
    size: 1,
  });
  expect(await readLocation(`/uploads/${elsewhere.id}/download`)).toBe('https://cdn.example.com/a.zip');
});

test('returns the URL on the legacy route', async () => {
  theClock().stop();
  const { id } = await uploaded('moon/moon.zip');
  expect(await anonymous.get(`/api/1/${player.key}/upload/${id}/download`)).toEqual(
    ok({ url: await readLocation(`/uploads/${id}/download`) }),
  );
});

test.each([
  ['https://münchen.example/ö?q=é', 'https://xn--mnchen-3ya.example/%C3%B6?q=%C3%A9'],
  ["https://Files.example:443/a/../b?signature='1'", "https://Files.example:443/a/../b?signature='1'"],
])('returns the same URL on both routes: %s', async (external_url, url) => {
  const external = await make.upload({ game, external_url });
  expect(await readLocation(`/uploads/${external.id}/download`)).toBe(url);
  expect(await anonymous.get(`/api/1/${player.key}/upload/${external.id}/download`)).toEqual(ok({ url }));
});

test('returns errors as JSON', async () => {
  expect(await player.get('/uploads/4000000/download')).toEqual(failure(404, 'invalid upload'));
  for (const uuid of ['x', ''])
    expect(await player.get('/uploads/1/download', { uuid })).toEqual(failure(400, 'uuid must be a UUID'));
  expect(await anonymous.get('/uploads/1/download')).toEqual(failure(401, 'authentication required'));
});

test('accepts api_key and download_key_id wherever old clients send them, and logs neither key nor URL', async () => {
  const paid = await make.game({ owner, min_price: 500 });
  const key = await make.downloadKey({ game: paid, user_id: player.id, account_id: player.id });
  const { id } = await make.upload({ game: paid });
  const query = `api_key=${player.key}&download_key_id=${key.id}`;
  expect(await anonymous.get(`/uploads/${id}/download?${query}`)).toMatchObject({ status: 302 });
  const location = await readLocation(`/uploads/${id}/download?download_key_id=${key.id}`);
  await fetch(location);
  expect(logged.join('')).toContain('/uploads/:upload_id/download');
  expect(logged.join('')).not.toContain(player.key);
  expect(logged.join('')).not.toContain(location.split('/')[4]);
});

describe('download counts', () => {
  const counted = async (of: { id: number }) => {
    await theApp().get(DownloadCounts).flush();
    const [row] = await sql<{ games: number; keys: number }>(
      `SELECT downloads_count AS games, (SELECT sum(downloads) FROM download_keys WHERE game_id = $1) AS keys
       FROM games WHERE id = $1`,
      [of.id],
    );
    return [row!.games, row!.keys];
  };
  const sold = async () => {
    const paid = await make.game({ owner, min_price: 500 });
    const key = await make.downloadKey({ game: paid, user_id: player.id, account_id: player.id });
    const { id } = await make.upload({ game: paid });
    return { paid, key, path: `/uploads/${id}/download` };
  };

  const startSession = async ({ id }: { id: number }) =>
    ((await player.post(`/games/${id}/download-sessions`)).body as { uuid: string }).uuid;

  test('are added later for a locked game, and keep no other game locked', async () => {
    const [first, last] = [await sold(), await sold()];
    const { query, commit } = await holdLocks(
      `SELECT FROM games WHERE id = ${last.paid.id} FOR NO KEY UPDATE`,
    );
    for (const { path } of [first, last]) await redirect(path);
    const flushed = theApp().get(DownloadCounts).flush();
    await untilBlocked();
    await query(`SELECT FROM games WHERE id = ${first.paid.id} FOR NO KEY UPDATE`);
    await commit();
    await flushed;
    for (const { paid } of [first, last]) expect(await counted(paid)).toEqual([1, 1]);
    expect(logged.join('')).toContain('Downloads could not be counted: canceling statement due to lock');
    expect(logged.join('')).not.toContain('deadlock');
  });

  test('increase without a session for each request of the beginning of the file', async () => {
    const { paid, key, path } = await sold();
    await redirect(path);
    await redirect(`${path}?download_key_id=${key.id}`, { range: 'bytes=0-' });
    await redirect(path, { range: 'bytes=0-99' });
    await redirect(path, { range: 'bytes=100-' });
    expect(await counted(paid)).toEqual([3, 3]);
    await redirect(path, {}, 'HEAD');
    await redirect(path, { range: 'bytes=100-' }, 'HEAD');
    expect(await counted(paid)).toEqual([4, 4]);
  });

  test('increase once per session, on all replicas and for any number of requests', async () => {
    const { paid, path } = await sold();
    const uuid = await startSession(paid);
    for (const range of ['bytes=100-', 'bytes=0-99', 'bytes=200-'])
      await redirect(`${path}?uuid=${uuid}`, { range });
    expect(await counted(paid)).toEqual([1, 1]);
    await redirect(`${path}?uuid=${uuid.toUpperCase()}`);
    expect(await counted(paid)).toEqual([1, 1]);
    await redirect(`${path}?uuid=${await startSession(paid)}`);
    expect(await counted(paid)).toEqual([2, 2]);
  });

  test('ignore a session that was not issued for the game', async () => {
    const { paid, path } = await sold();
    await sql('TRUNCATE counted_downloads');
    const invented = ['00000000-0000-4000-8000-000000000000', await startSession(game)];
    for (const uuid of invented)
      for (const range of ['bytes=0-99', 'bytes=100-']) await redirect(`${path}?uuid=${uuid}`, { range });
    expect(await counted(paid)).toEqual([2, 2]);
    expect(await sql('SELECT uuid FROM counted_downloads')).toEqual([]);
  });

  test('increase only for the game when an editor downloads, and not for rejected requests', async () => {
    const { paid, path } = await sold();
    await owner.get(path);
    await (await make.user()).get(path);
    expect(await counted(paid)).toEqual([1, 0]);
  });

  test('use the same session for a repeated request with an idempotency key', async () => {
    const headers = { ...player.headers, 'idempotency-key': 'again' };
    const start = () => send('POST', `/games/${game.id}/download-sessions`, { headers });
    expect((await start()).body).toEqual((await start()).body);
  });
});

describe('a local folder', () => {
  const get = (url: string, headers: Record<string, string> = {}, method = 'GET') =>
    fetch(url, { method, headers });

  test('serves the file with its name, and ranges of it', async () => {
    const { id } = await uploaded('moon/a b+c.zip', { filename: 'møøn "1".zip' });
    const url = await readLocation(`/uploads/${id}/download`);
    const whole = await get(url);
    expect(Buffer.from(await whole.arrayBuffer()).equals(CONTENT)).toBe(true);
    expect(Object.fromEntries(whole.headers)).toMatchObject({
      'content-length': String(CONTENT.length),
      'content-disposition': `attachment; filename="m??n \\"1\\".zip"; filename*=UTF-8''m%C3%B8%C3%B8n%20%221%22.zip`,
      'accept-ranges': 'bytes',
      'cache-control': 'no-store',
    });
    const part = await get(url, { range: 'bytes=1000-1999' });
    expect(whole.headers.get('content-type')).toBe('application/octet-stream');
    expect([part.status, part.headers.get('content-range')]).toEqual([
      206,
      `bytes 1000-1999/${CONTENT.length}`,
    ]);
    expect(Buffer.from(await part.arrayBuffer()).equals(CONTENT.subarray(1000, 2000))).toBe(true);
    expect((await get(url, { range: `bytes=${CONTENT.length}-` })).status).toBe(416);
    expect((await get(url, { range: 'bytes=-0' })).status).toBe(416);
    for (const [suffix, first] of [
      [999_999, 0],
      [CONTENT.length, 0],
      [10, CONTENT.length - 10],
    ] as const) {
      const last = await get(url, { range: `bytes=-${suffix}` });
      expect([last.status, last.headers.get('content-range')]).toEqual([
        206,
        `bytes ${first}-${CONTENT.length - 1}/${CONTENT.length}`,
      ]);
      expect(Buffer.from(await last.arrayBuffer()).equals(CONTENT.subarray(first))).toBe(true);
    }
    const head = await get(url, {}, 'HEAD');
    expect([head.status, head.headers.get('content-length')]).toEqual([200, String(CONTENT.length)]);
    const etag = whole.headers.get('etag')!;
    expect((await get(url, { range: 'bytes=0-9', 'if-range': etag })).status).toBe(206);
    expect((await get(url, { 'if-match': '"other"' })).status).toBe(412);
    expect((await get(url, { range: 'bytes=0-9', 'if-range': '"other"' })).status).toBe(200);
  });

  test('signs a URL for one file and one file name until it expires', async () => {
    theClock().stop();
    const { id } = await uploaded('moon/moon.zip');
    const url = await readLocation(`/uploads/${id}/download`);
    const expired = failure(403, 'invalid or expired download link');
    const open = async (one: string) => {
      const { status, body } = await send('GET', one.slice(baseUrl().length));
      return status === 200 ? status : { status, body };
    };
    const [, , , , token, name] = url.split('/') as [string, string, string, string, string, string];
    const [time, key, signature] = token.split('.') as [string, string, string];
    const fileUrl = (...parts: string[]) => `${baseUrl()}/files/${parts.join('.')}/${name}`;
    const later = (parseInt(time, 36) + 60).toString(36);
    expect(await open(fileUrl(later, key, signature))).toEqual(expired);
    expect(await open(fileUrl(time, Buffer.from('../secret').toString('base64url'), signature))).toEqual(
      expired,
    );
    expect(await open(fileUrl(time, key, 'x'.repeat(43)))).toEqual(expired);
    expect(await open(fileUrl('x'))).toEqual(expired);
    expect(await open(url.replace('moon.zip', 'moon.exe'))).toEqual(expired);
    theClock().advance(299_000);
    expect(await open(url)).toBe(200);
    theClock().advance(2000);
    expect(await open(url)).toEqual(expired);
    const page = await fetch(url, { headers: { accept: 'text/html,*/*;q=0.8' } });
    expect([page.status, page.headers.get('content-type')]).toEqual([403, 'text/html; charset=utf-8']);
    expect(await page.text()).toMatch(/This download link has expired/);
  });

  test('serves nothing outside of the folder, including through symbolic links', async () => {
    await writeFile(join(folder, '..', 'secret'), 'secret');
    await symlink('../secret', join(folder, 'link'));
    await symlink('..', join(folder, 'up'));
    await symlink('moon', join(folder, 'inside'));
    await uploaded('moon/moon.zip');
    for (const [key, status] of [
      ['link', 404],
      ['up/secret', 404],
      ['../secret', 404],
      ['moon', 404],
      ['none', 404],
      ['inside/moon.zip', 200],
      ['.', 404],
    ] as const) {
      const { id } = await make.upload({ game, file_key: key });
      const response = await get(await readLocation(`/uploads/${id}/download`));
      expect([key, response.status]).toEqual([key, status]);
      await response.arrayBuffer();
    }
  });

  test('runs 32 downloads of an IP address; further ones wait, and fail with 503', async () => {
    const url = await readLocation(`/uploads/${await large()}/download`);
    const download = async (localAddress: string) => {
      const [response] = (await once(httpGet(url, { localAddress, agent: false }), 'response')) as [
        IncomingMessage,
      ];
      return response.pause();
    };
    const downloads = await Promise.all(Array.from({ length: FILES_EACH }, () => download('127.0.0.1')));
    const rejected = await download('127.0.0.1');
    expect([rejected.statusCode, rejected.headers['retry-after']]).toEqual([503, '5']);
    const { host, port, pathname } = new URL(url);
    const pipelined = connect({ port: Number(port), host: '127.0.0.1' });
    pipelined.write(`GET ${pathname} HTTP/1.1\r\nHost: ${host}\r\n\r\n`.repeat(3));
    expect((await text(pipelined)).match(/HTTP\/1.1 \d+|^Connection: .*$/gm)).toEqual([
      'HTTP/1.1 503',
      'Connection: close',
    ]);
    const elsewhere = await download('127.0.0.2');
    expect([elsewhere.statusCode, (await player.get('/profile')).status]).toEqual([200, 200]);
    const waiting = download('127.0.0.1');
    downloads[0]!.destroy();
    expect((await waiting).statusCode).toBe(200);
    for (const response of [...downloads, elsewhere, await waiting]) response.destroy();
    await until(() => theApp().get(FileResponses).limit.accepted === 0);
  });

  const onLinux = runIf(process.platform === 'linux', 'only Linux lists open files');
  const openFiles = async () => {
    const links = (await readdir('/proc/self/fd')).map((fd) =>
      readlink(`/proc/self/fd/${fd}`).catch(() => ''),
    );
    return (await Promise.all(links)).filter((link) => link === join(folder, 'large')).length;
  };

  onLinux.test.each<[string, (socket: Socket) => unknown]>([
    ['a close', (socket) => socket.destroy()],
    ['a reset', (socket) => socket.resetAndDestroy()],
    ['a half-close', (socket) => socket.resume().end()],
    ['garbage', (socket) => socket.resume().write('X\0')],
    ['the minimum transfer rate', () => undefined],
  ])('opens one file of a connection at a time, and closes it after %s', async (_what, end) => {
    const { host, port, pathname } = new URL(await readLocation(`/uploads/${await large()}/download`));
    const { admission } = theApp().get(RequestGate);
    // The files wait for this response.
    const lock = await holdLocks('LOCK TABLE users');
    const socket = connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen: true });
    socket.on('error', () => undefined).on('end', () => socket.end());
    const head = (path: string) =>
      `GET ${path} HTTP/1.1\r\nHost: ${host}\r\nAuthorization: Bearer ${player.key}\r\n\r\n`;
    socket.write(head('/profile') + head(pathname).repeat(5));
    await untilBlocked();
    await until(async () => (await openFiles()) > 0);
    expect([await openFiles(), admission.count]).toEqual([1, 6]);
    end(socket);
    await lock.release();
    await until(() => {
      theClock().advance(5000);
      return admission.count === 0;
    });
    await until(async () => (await openFiles()) === 0);
    socket.destroy();
  });

  test('serves files in dot folders', async () => {
    await mkdir(join(folder, '.data'), { recursive: true });
    const { id } = await uploaded('.data/.moon');
    expect((await get(await readLocation(`/uploads/${id}/download`))).status).toBe(200);
  });
});

describe('a bucket', () => {
  const KEYS = ['moon/moon.zip', 'a b+c/ø&=?#%/(1)!*\'".zip', 'a//b/c~.zip'];

  test.each(KEYS)('signs %s like S3', async (file_key) => {
    const app = await openApp({ ...bucket.settings });
    bucket.objects.set(file_key, CONTENT);
    const { id } = await make.upload({ game, file_key, filename: 'møøn "1".zip' });
    const response = await fetch(`${await app.getUrl()}/uploads/${id}/download`, {
      headers: player.headers,
      redirect: 'manual',
    });
    const location = response.headers.get('location')!;
    const whole = await fetch(location);
    expect([whole.status, Buffer.from(await whole.arrayBuffer()).equals(CONTENT)]).toEqual([200, true]);
    expect(whole.headers.get('content-disposition')).toBe(
      `attachment; filename="m??n \\"1\\".zip"; filename*=UTF-8''m%C3%B8%C3%B8n%20%221%22.zip`,
    );
    const part = await fetch(location, { headers: { range: 'bytes=5-9' } });
    expect([part.status, Buffer.from(await part.arrayBuffer())]).toEqual([206, CONTENT.subarray(5, 10)]);
    await app.close();
  });

  const storage = (clock: TestClock, more: object = {}) =>
    new S3Storage(
      { ...bucket.settings, FILES_S3_REGION: 'eu-west-1', FILES_URL_SECONDS: 300, ...more },
      clock,
    );
  const fetchStatus = async (url: string) => (await fetch(url)).status;

  test('rejects expired URLs and a wrong region, secret, file name or file', async () => {
    bucket.objects.set('moon/moon.zip', CONTENT);
    const url = storage(theClock() as TestClock).downloadUrl('moon/moon.zip', 'moon.zip');
    expect(await fetchStatus(url)).toBe(200);
    expect(await fetchStatus(url.replace('/moon/moon', '/moon/sun'))).toBe(403);
    expect(await fetchStatus(url.replace('filename%3D%22moon', 'filename%3D%22sun'))).toBe(403);
    expect(await fetchStatus(url.replace('Expires=300', 'Expires=900'))).toBe(403);
    for (const wrong of [{ FILES_S3_REGION: 'us-east-1' }, { FILES_S3_SECRET_ACCESS_KEY: 'other' }])
      expect(
        await fetchStatus(storage(theClock() as TestClock, wrong).downloadUrl('moon/moon.zip', 'moon.zip')),
      ).toBe(403);
    theClock().advance(301_000);
    expect(await fetchStatus(url)).toBe(403);
  });

  test.each(KEYS)('stores and deletes %s', async (key) => {
    const one = storage(theClock() as TestClock);
    const { signal } = new AbortController();
    await one.put(
      key,
      CONTENT.length,
      Readable.from([CONTENT.subarray(0, 70_000), CONTENT.subarray(70_000)]),
      signal,
    );
    expect(bucket.objects.get(key)!.equals(CONTENT)).toBe(true);
    await one.delete(key);
    await one.delete(key);
    expect(bucket.objects.has(key)).toBe(false);
  });

  test('reports errors of the storage and closed connections', async () => {
    const { signal } = new AbortController();
    const content = () => Readable.from([CONTENT]);
    const wrong = storage(theClock() as TestClock, { FILES_S3_SECRET_ACCESS_KEY: 'other' });
    await expect(wrong.put('a', CONTENT.length, content(), signal)).rejects.toThrow(
      'The storage responded with status 403 (SignatureDoesNotMatch).',
    );
    bucket.cutAfter = 1;
    await expect(
      storage(theClock() as TestClock).put('a', CONTENT.length, content(), signal),
    ).rejects.toThrow(/^The storage at http:\/\/127\.0\.0\.1:\d+ failed: /);
    bucket.cutAfter = Infinity;
  });
});

test('returns 501 without a storage, which no client retries', async () => {
  const app = await openApp();
  const { id } = await make.upload({ game });
  const response = await fetch(`${await app.getUrl()}/uploads/${id}/download`, { headers: player.headers });
  expect([response.status, await response.json()]).toEqual([
    501,
    { errors: ['no file storage is configured'] },
  ]);
  expect(response.headers.get('retry-after')).toBeNull();
  await app.close();
});

test.each([
  ['production', {}, true],
  ['production', { FILES_DIR: '/nonexistent' }, false],
  ['test', {}, false],
])('logs at the start in %s with %j that no storage is configured: %p', async (NODE_ENV, more, expected) => {
  logged.length = 0;
  const settings = { NODE_ENV, PUBLIC_URL: 'https://games.example', DRAIN_SECONDS: '0', METRICS_PORT: 'off' };
  const app = await openApp({ ...settings, ...more });
  expect(logged.some((line) => line.includes('No file storage is configured'))).toBe(expected);
  await app.close();
});

describe('files put and rm', () => {
  const pieces = async function* () {
    yield CONTENT.subarray(0, 60_000);
    yield CONTENT.subarray(60_000);
  };
  const file = (fields: object = {}): NewFile => ({
    game_id: game.id,
    filename: 'sun.zip',
    size: CONTENT.length,
    content: pieces(),
    traits: ['p_linux'],
    display_name: null,
    ...fields,
  });
  const { signal } = new AbortController();
  const md5_hash = createHash('md5').update(CONTENT).digest('hex');
  const files = () => theApp().get(FilesService);

  test('stores, records, downloads and deletes a file', async () => {
    const seen: number[] = [];
    const { id, file_key } = await files().put(file(), signal, (bytes) => seen.push(bytes));
    expect(seen).toEqual([60_000, 100_000]);
    expect(await player.get(`/uploads/${id}`)).toMatchObject({
      body: { upload: { storage: 'hosted', size: CONTENT.length, md5_hash, traits: ['p_linux'] } },
    });
    const content = await (await fetch(await readLocation(`/uploads/${id}/download`))).arrayBuffer();
    expect(Buffer.from(content).equals(CONTENT)).toBe(true);
    expect(await files().remove(id)).toBe(true);
    expect(existsSync(join(folder, file_key!))).toBe(false);
    expect(await files().remove(id)).toBe(false);
  });

  test('records a file without waiting for sales of the game', async () => {
    await holdLocks(`SELECT FROM games WHERE id = ${game.id} FOR KEY SHARE`);
    const { id } = await files().put(file(), signal, () => undefined);
    await files().remove(id);
  });

  test('lists a new upload after the others of the game', async () => {
    const { id } = await make.upload({ game, filename: 'first.zip', position: 7 });
    const added = await files().put(file(), signal, () => undefined);
    const { body } = await player.get(`/games/${game.id}/uploads`);
    const { uploads } = body as { uploads: { id: number; position: number }[] };
    expect(uploads.at(-1)).toMatchObject({ id: added.id, position: 8 });
    for (const one of [id, added.id]) await files().remove(one);
  });

  test('shares one upload between the builds of a channel', async () => {
    const channel = { channel_name: 'sun', user_version: '1.0' };
    const first = await files().put(file(channel), signal, () => undefined);
    const second = await files().put(file({ ...channel, user_version: '1.1' }), signal, () => undefined);
    expect(second.id).toBe(first.id);
    expect(await player.get(`/uploads/${first.id}`)).toMatchObject({
      body: { upload: { storage: 'build', md5_hash, build: { version: 2, user_version: '1.1' } } },
    });
  });

  test('leaves nothing behind if the file cannot be read', async () => {
    const broken = async function* () {
      yield CONTENT;
      throw new Error('the disk failed');
    };
    const before = await sql('SELECT count(*) FROM uploads');
    await expect(files().put(file({ content: broken() }), signal, () => undefined)).rejects.toThrow(
      'the disk failed',
    );
    expect(await sql('SELECT count(*) FROM uploads')).toEqual(before);
    const left = (await readdir(folder, { recursive: true })).filter((name) => name.endsWith('.part'));
    expect(left).toEqual([]);
  });
});
