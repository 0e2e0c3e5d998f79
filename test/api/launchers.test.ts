import { createHash, randomBytes } from 'node:crypto';
import { mkdir, mkdtemp, open, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { get as httpGet } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DownloadCounts } from '../../src/uploads/download-counts.service';
import { sendRaw } from '../support/raw';
import { type Actor, actors, baseUrl, make, send, sql, theApp, useStore } from '../support/store';

// The requests of existing clients, from a player's owned keys to the bytes on disk.
const environment: Record<string, string> = { LENIENT_CLIENTS: 'true' };
let folder = '';
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'gamewharf-launchers-'));
  environment.FILES_DIR = join(folder, 'files');
  await mkdir(join(environment.FILES_DIR, 'moon'), { recursive: true });
});
useStore(environment);
afterAll(() => rm(folder, { recursive: true }));

// Larger than what the connection buffers, so that a cut comes in the middle.
const CONTENT = randomBytes(8 * 2 ** 20);
const md5Of = (content: Buffer) => createHash('md5').update(content).digest('hex');

let player: Actor;
let game: { id: number };
let key: { id: number };
let upload: { id: number };
let build: { id: number };

beforeAll(async () => {
  const { owner, stranger } = await actors();
  player = stranger;
  game = await make.game({ owner, min_price: 500 });
  key = await make.downloadKey({ game, user_id: player.id, account_id: player.id });
  const stored = { file_key: 'moon/moon.zip', size: CONTENT.length, md5_hash: md5Of(CONTENT) };
  await writeFile(join(environment.FILES_DIR!, stored.file_key), CONTENT);
  upload = await make.upload({ game, traits: ['p_windows'], ...stored });
  build = await make.build({ game, user_version: '1.2.0', ...stored });
  await make.upload({ game, channel_name: 'windows', traits: ['p_windows'], position: 1 });
});

interface File {
  id: number;
  size: number;
  md5_hash: string;
  filename: string;
  storage: string;
  build_id?: number;
}
interface OwnedKey {
  id: number;
  game_id: number;
}

async function json<T>(path: string, headers: Record<string, string> = player.headers): Promise<T> {
  const { status, body } = await send('GET', path, { headers });
  expect([path, status]).toEqual([path, 200]);
  return body as T;
}

/** The keys of the player, page by page until one is empty. */
async function ownedKeys(path: string, headers?: Record<string, string>): Promise<OwnedKey[]> {
  const found: OwnedKey[] = [];
  for (let page = 1; ; page++) {
    const { owned_keys } = await json<{ owned_keys: OwnedKey[] }>(`${path}?page=${page}`, headers);
    if (!owned_keys.length) return found;
    found.push(...owned_keys);
  }
}

/** Follows the redirect as the program does, with its headers, and writes what arrives at the position of the range. */
async function download(path: string, to: string, { range, headers }: Part = {}): Promise<number> {
  const response = await fetch(baseUrl() + path, {
    headers: { ...(headers ?? player.headers), ...(range && { range: `bytes=${range.join('-')}` }) },
  });
  const content = Buffer.from(await response.arrayBuffer());
  const file = await open(to, range ? 'r+' : 'w');
  await file.write(content, 0, content.length, range?.[0] ?? 0).finally(() => file.close());
  return response.status;
}
interface Part {
  range?: [from: number, to: number | ''];
  headers?: Record<string, string>;
}

/** Writes what arrives until the connection is cut after so many bytes. */
async function cutDownload(path: string, to: string, after: number): Promise<void> {
  const { headers } = await send('GET', path, { headers: player.headers });
  const content = await new Promise<Buffer>((resolve, reject) => {
    const pieces: Buffer[] = [];
    let bytes = 0;
    const request = httpGet(headers.get('location')!, (response) => {
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
  expect([content.length, md5Of(content)]).toEqual([size, md5_hash]);
}

const onDisk = (name: string) => join(folder, name);

async function downloadsOf(): Promise<number> {
  await theApp().get(DownloadCounts).flush();
  const [row] = await sql<{ downloads: number }>('SELECT downloads FROM download_keys WHERE id = $1', [
    key.id,
  ]);
  return row!.downloads;
}

test('a launcher: eight connections, one download', async () => {
  const [owned] = await ownedKeys('/profile/owned-keys');
  expect(owned).toMatchObject({ id: key.id, game_id: game.id });
  const { uploads } = await json<{ uploads: File[] }>(
    `/games/${owned!.game_id}/uploads?download_key_id=${owned!.id}`,
  );
  const hosted = uploads.find(({ storage }) => storage === 'hosted')!;
  const before = await downloadsOf();
  const { body } = await player.post(`/games/${game.id}/download-sessions`, { download_key_id: key.id });
  const { uuid } = body as { uuid: string };
  const path = `/uploads/${hosted.id}/download?download_key_id=${key.id}&uuid=${uuid}`;
  await writeFile(onDisk('parallel.zip'), '');
  const part = hosted.size / 8;
  const statuses = await Promise.all(
    Array.from({ length: 8 }, (_, i) =>
      download(path, onDisk('parallel.zip'), { range: [i * part, (i + 1) * part - 1] }),
    ),
  );
  expect(statuses).toEqual(Array(8).fill(206));
  await expectComplete(onDisk('parallel.zip'), hosted);
  expect(await downloadsOf()).toBe(before + 1);
});

test('a launcher: a build of a channel', async () => {
  const { uploads } = await json<{ uploads: File[] }>(`/games/${game.id}/uploads?download_key_id=${key.id}`);
  const channel = uploads.find(({ storage }) => storage === 'build')!;
  const { builds } = await json<{ builds: { id: number; user_version: string }[] }>(
    `/uploads/${channel.id}/builds?download_key_id=${key.id}`,
  );
  expect(builds.map(({ id }) => id)).toEqual([build.id]);
  const found = await json<{ build: { files: { type: string; sub_type: string; size: number }[] } }>(
    `/builds/${build.id}?download_key_id=${key.id}`,
  );
  const [file] = found.build.files;
  expect(file).toMatchObject({ type: 'archive', sub_type: 'default', size: CONTENT.length });
  const path = `/builds/${build.id}/download/archive/default?download_key_id=${key.id}`;
  expect(await download(path, onDisk('build.zip'))).toBe(200);
  await expectComplete(onDisk('build.zip'), channel);
});

test('a download tool with its key in the query: resumes a file after a cut', async () => {
  const [owned] = await ownedKeys('/profile/owned-keys');
  const { uploads } = await json<{ uploads: File[] }>(
    `/games/${game.id}/uploads?api_key=${player.key}&download_key_id=${owned!.id}`,
  );
  const hosted = uploads[0]!;
  const path = `/uploads/${hosted.id}/download?api_key=${player.key}&download_key_id=${owned!.id}`;
  await cutDownload(path, onDisk('resumed.zip'), 1_000_000);
  const { size } = await stat(onDisk('resumed.zip'));
  expect(size).toBeGreaterThanOrEqual(1_000_000);
  expect(size).toBeLessThan(hosted.size);
  const rest = { range: [size, ''] as [number, ''], headers: {} };
  expect(await download(path, onDisk('resumed.zip'), rest)).toBe(206);
  await expectComplete(onDisk('resumed.zip'), hosted);
});

test('a download tool with a bearer token: every file, and its MD5', async () => {
  const [owned] = await ownedKeys('/profile/owned-keys');
  const { uploads } = await json<{ uploads: File[] }>(
    `/games/${owned!.game_id}/uploads?download_key_id=${owned!.id}`,
  );
  for (const file of uploads) {
    const path = `/uploads/${file.id}/download?download_key_id=${owned!.id}`;
    expect(await download(path, onDisk(file.filename))).toBe(200);
    await expectComplete(onDisk(file.filename), file);
  }
});

test('a library with parameters in the body of a GET', async () => {
  const body = `download_key_id=${key.id}`;
  const bytes =
    `GET /games/${game.id}/uploads HTTP/1.1\r\nhost: h\r\nconnection: close\r\nauthorization: Bearer ${player.key}\r\n` +
    `content-type: application/x-www-form-urlencoded\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  const { uploads } = JSON.parse((await sendRaw(bytes)).body) as { uploads: File[] };
  const { upload: one } = await json<{ upload: File }>(`/uploads/${upload.id}`);
  expect(uploads).toContainEqual(one);
  expect(await download(`/uploads/${one.id}/download`, onDisk('body.zip'))).toBe(200);
  await expectComplete(onDisk('body.zip'), one);
});

test('a game manager with the legacy routes', async () => {
  const [owned] = await ownedKeys('/profile/owned-keys');
  const { uploads } = await json<{ uploads: (File & { p_windows: boolean })[] }>(
    `/api/1/${player.key}/game/${owned!.game_id}/uploads?download_key_id=${owned!.id}`,
    {},
  );
  const windows = uploads.find(({ p_windows }) => p_windows)!;
  const { url } = await json<{ url: string }>(
    `/api/1/${player.key}/upload/${windows.id}/download?download_key_id=${owned!.id}`,
    {},
  );
  await writeFile(onDisk('legacy.zip'), Buffer.from(await (await fetch(url)).arrayBuffer()));
  await expectComplete(onDisk('legacy.zip'), windows);
});
