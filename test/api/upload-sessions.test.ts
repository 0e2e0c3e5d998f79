import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { type IncomingMessage, request } from 'node:http';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Database } from '../../src/platform/database/database';
import { UploadParts } from '../../src/uploads/sessions/upload-parts.service';
import { MAX_SESSIONS, UploadSessions } from '../../src/uploads/sessions/upload-sessions.service';
import { PartBody } from '../../src/uploads/sessions/part-body';
import { FileStorage } from '../../src/uploads/storage/file-storage';
import type { Bytes } from '../../src/wharf/pwr/message-reader';
import { joined } from '../support/pushed-builds';
import { S3Double } from '../support/s3';
import { openApp, theClock, useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useStore();

const BLOCK = 256 * 1024;
const MAX_BYTES = 4 * 1024 * 1024;
const DAY_MS = 24 * 3600 * 1000;

interface Reply {
  status: number;
  range: string | null;
  location: string | null;
  text: string;
}
const reply = (status: number, range: string | null = null) =>
  expect.objectContaining({ status, range }) as Reply;
const failed = (status: number, message: string) =>
  expect.objectContaining({ status, text: JSON.stringify({ errors: [message] }) }) as Reply;

async function send(
  url: string,
  method: 'POST' | 'PUT',
  contentRange?: string,
  body?: Buffer,
): Promise<Reply> {
  const headers = contentRange === undefined ? undefined : { 'content-range': contentRange };
  const response = await fetch(url, {
    method,
    headers,
    body: body && new Uint8Array(body),
    redirect: 'manual',
  });
  const { status, headers: received } = response;
  return {
    status,
    range: received.get('range'),
    location: received.get('location'),
    text: await response.text(),
  };
}

const put = (url: string, content: Buffer, start: number, end: number, size: number | '*' = content.length) =>
  send(url, 'PUT', `bytes ${start}-${end - 1}/${size}`, content.subarray(start, end));
const state = (url: string) => send(url, 'PUT', 'bytes */*');

const openParts = async (id: string) =>
  (await sql('SELECT FROM upload_parts WHERE session_id = $1 AND size IS NULL', [id])).length;

/** Announces a part and cuts the connection within it. */
async function cut(id: string, url: string, range: string, announced: number, sent: Buffer): Promise<void> {
  const headers = { 'content-range': range, 'content-length': announced };
  const outgoing = request(url, { method: 'PUT', headers });
  outgoing.on('error', () => undefined);
  await new Promise<void>((resolve) => outgoing.write(sent, () => resolve()));
  await until(async () => (await openParts(id)) > 0);
  outgoing.destroy();
  await until(async () => (await openParts(id)) === 0);
}

afterEach(() => jest.restoreAllMocks());

describe.each(['folder', 'bucket'] as const)('in a %s', (where) => {
  let replica: NestExpressApplication;
  let folder: string;
  let bucket: S3Double;
  let game: { id: number };
  const sessions = () => replica.get(UploadSessions);
  const parts = () => replica.get(UploadParts);
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'sessions-'));
    bucket = await S3Double.open(theClock());
    const settings = where === 'folder' ? { FILES_DIR: folder } : bucket.settings;
    replica = await openApp({ ...settings, FILES_MAX_BYTES: String(MAX_BYTES) });
  });
  beforeEach(async () => {
    const { owner } = await actors();
    game = await make.game({ owner });
  });
  afterAll(async () => {
    await bucket.close();
    await rm(folder, { recursive: true });
  });

  const begin = async (size?: number) => {
    const { id, upload_url } = await sessions().create(game.id, size);
    const { location } = await send(upload_url, 'POST');
    return { id, upload_url, location: location! };
  };
  const content = async (id: string) => {
    const storage = replica.get(FileStorage);
    const chunks: Buffer[] = [];
    for (const { file_key, size } of await parts().list(id))
      chunks.push(await joined(storage.read(file_key, 0, size)));
    return Buffer.concat(chunks);
  };
  const objects = async () =>
    where === 'bucket' ? [...bucket.objects.keys()] : await readdir(join(folder, 'parts')).catch(() => []);

  test('a small file in one part', async () => {
    const file = randomBytes(222);
    const { id, upload_url } = await sessions().create(game.id);
    const started = await send(upload_url, 'POST');
    expect(started.status).toBe(201);
    expect(await state(started.location!)).toEqual(reply(308));
    expect(await put(started.location!, file, 0, 222)).toEqual(reply(200));
    // The upload tool gives up after a 200.
    expect(await state(started.location!)).toEqual(reply(308, 'bytes=0-221'));
    expect(await put(started.location!, file, 0, 222)).toEqual(failed(409, 'the file is already complete'));
    expect(file.equals(await content(id))).toBe(true);
  });

  test('a large file in parts, one of which is cut', async () => {
    const file = randomBytes(5 * BLOCK + 1234);
    const { id, location } = await begin();
    expect(await put(location, file, 0, 2 * BLOCK, '*')).toEqual(reply(308, `bytes=0-${2 * BLOCK - 1}`));
    await cut(
      id,
      location,
      `bytes ${2 * BLOCK}-${4 * BLOCK - 1}/*`,
      2 * BLOCK,
      // What the service has not read yet when it notices the cut is lost, at most 128 KiB.
      file.subarray(2 * BLOCK, 4 * BLOCK - 1),
    );
    expect(await state(location)).toEqual(reply(308, `bytes=0-${3 * BLOCK - 1}`));
    expect(await put(location, file, 3 * BLOCK, 5 * BLOCK, '*')).toEqual(
      reply(308, `bytes=0-${5 * BLOCK - 1}`),
    );
    expect(await put(location, file, 5 * BLOCK, file.length)).toEqual(reply(200));
    expect(file.equals(await content(id))).toBe(true);
    const stored = await parts().copy(id, 'stored/file.bin', AbortSignal.timeout(5000));
    expect(stored.size).toBe(file.length);
    expect(file.equals(await joined(replica.get(FileStorage).read('stored/file.bin', 0, file.length)))).toBe(
      true,
    );
    await sessions().discard(id);
    expect(await state(location)).toEqual(failed(404, 'invalid upload session'));
    expect((await objects()).filter((key) => key.includes(id))).toEqual([]);
    await replica.get(FileStorage).delete('stored/file.bin');
  });

  test('a cut before the first block keeps nothing', async () => {
    const { id, location } = await begin();
    const receive = jest.spyOn(sessions(), 'receive');
    await cut(id, location, `bytes 0-${BLOCK * 2 - 1}/*`, BLOCK * 2, randomBytes(BLOCK - 1));
    // A cut connection isn't an error of the storage.
    expect(await receive.mock.results[0]!.value).toMatchObject({ received: 0 });
    expect(await state(location)).toEqual(reply(308));
    expect((await objects()).filter((key) => key.includes(id))).toEqual([]);
  });

  test('a part that is rejected while it arrives ends with its connection', async () => {
    // The check of the minimum rate would end the connection after 20 seconds.
    jest.spyOn(PartBody.prototype, 'enforceRate').mockReturnValue(() => undefined);
    const { id, location } = await begin();
    const { hostname, port, pathname } = new URL(location);
    const socket = connect(Number(port), hostname);
    socket.write(
      `PUT ${pathname} HTTP/1.1\r\nHost: ${hostname}\r\nContent-Range: bytes 0-${BLOCK - 1}/${BLOCK}\r\n` +
        'Transfer-Encoding: chunked\r\n\r\n',
    );
    await until(async () => (await openParts(id)) > 0);
    socket.write('1\r\nx\r\n'.repeat(2000));
    expect(String(await once(socket, 'data'))).toMatch(/^HTTP\/1.1 413 /);
    socket.destroy();
    await until(async () => (await openParts(id)) === 0);
    expect((await objects()).filter((key) => key.includes(id))).toEqual([]);
  });

  test('parts out of order, overlapping and sent again', async () => {
    const file = randomBytes(1000);
    const { id, location } = await begin();
    expect(await put(location, file, 500, 1000)).toEqual(reply(308));
    expect(await put(location, file, 0, 300)).toEqual(reply(308, 'bytes=0-299'));
    expect(await put(location, file, 0, 300)).toEqual(reply(308, 'bytes=0-299'));
    expect(await put(location, file, 100, 200)).toEqual(reply(308, 'bytes=0-299'));
    expect(await put(location, file, 400, 600)).toEqual(reply(308, 'bytes=0-299'));
    expect(await put(location, file, 200, 600, '*')).toEqual(reply(308, 'bytes=0-599'));
    expect(await put(location, file, 0, 1000)).toEqual(reply(200));
    expect(file.equals(await content(id))).toBe(true);
  });

  test('the same part on several connections is stored once', async () => {
    const file = randomBytes(3 * BLOCK);
    const { id, location } = await begin();
    const all = await Promise.all(Array.from({ length: 6 }, () => put(location, file, 0, 2 * BLOCK, '*')));
    expect(all.map(({ status, range }) => [status, range])).toEqual(
      all.map(() => [308, expect.stringMatching(/^bytes=0-524287$/) as string]),
    );
    expect(await put(location, file, 2 * BLOCK, 3 * BLOCK)).toEqual(reply(200));
    expect(file.equals(await content(id))).toBe(true);
    expect((await objects()).filter((key) => key.includes(id))).toHaveLength(2);
  });

  test('a part whose response of the database is lost is kept', async () => {
    const file = randomBytes(1000);
    const { id, location } = await begin();
    const database = replica.get(Database);
    const { rows } = database;
    jest.spyOn(database, 'rows').mockImplementation(async (statement, values, manager) => {
      const found = await rows.call(database, statement, values, manager);
      if (statement.name === 'end_upload_part') throw new Error('Connection terminated unexpectedly');
      return found as never;
    });
    expect((await put(location, file, 0, 600, '*')).status).toBe(503);
    jest.restoreAllMocks();
    expect(await state(location)).toEqual(reply(308, 'bytes=0-599'));
    expect(await put(location, file, 600, 1000)).toEqual(reply(200));
    expect(file.equals(await content(id))).toBe(true);
  });

  test('only the first of two sizes sent at the same time is accepted', async () => {
    const file = randomBytes(1000);
    const { id, location } = await begin();
    const headers = { 'content-range': 'bytes 0-899/900', 'content-length': 900 };
    const later = request(location, { method: 'PUT', headers });
    const response = once(later, 'response') as Promise<[IncomingMessage]>;
    later.write(file.subarray(0, 1));
    await until(async () => (await openParts(id)) > 0);
    expect(await put(location, file, 0, 1000)).toEqual(reply(200));
    later.end(file.subarray(1, 900));
    const [rejected] = await response;
    expect([rejected.statusCode, (await joined(rejected as Bytes)).toString()]).toEqual([
      400,
      JSON.stringify({ errors: ['Content-Range must be within the 1000 bytes of the file'] }),
    ]);
    expect(file.equals(await content(id))).toBe(true);
    expect((await objects()).filter((key) => key.includes(id))).toHaveLength(1);
  });

  test('invalid requests', async () => {
    const file = randomBytes(100);
    const { location, upload_url } = await begin();
    expect(await put(location, file, 0, 50, 100)).toEqual(reply(308, 'bytes=0-49'));
    for (const range of ['bytes 60-50/100', 'bytes 0-100/100', 'bytes=0-9', 'bytes 0-9', 'bytes 1e3-2000/*'])
      expect((await send(location, 'PUT', range, file)).status).toBe(400);
    expect((await send(location, 'PUT', undefined, file)).status).toBe(400);
    expect((await put(location, file, 50, 60, 99)).status).toBe(400);
    const forged = upload_url.replace(/(.)(?=.{5}$)/, (one) => (one === 'A' ? 'B' : 'A'));
    for (const url of [
      forged,
      upload_url.replace(/[0-9a-f]{8}-/, 'ffffffff-'),
      `${upload_url}x`,
      new URL('x', upload_url).href,
    ])
      for (const method of ['POST', 'PUT'] as const)
        expect(await send(url, method, 'bytes */*')).toEqual(failed(404, 'invalid upload session'));
    const tooLarge = failed(413, 'the file is too large');
    const other = await begin();
    expect(await send(other.location, 'PUT', `bytes 0-9/${MAX_BYTES + 1}`, file)).toEqual(tooLarge);
    expect(await send(other.location, 'PUT', `bytes 0-${MAX_BYTES}/*`, file)).toEqual(tooLarge);
    await expect(sessions().create(game.id, MAX_BYTES + 1)).rejects.toThrow('the file is too large');
  });

  test('a session expires after a day, and its parts are deleted', async () => {
    const file = randomBytes(100);
    const { id, location } = await begin();
    await put(location, file, 0, 50);
    theClock().advance(DAY_MS + 1000);
    expect(await put(location, file, 50, 100)).toEqual(failed(404, 'invalid upload session'));
    expect(await objects()).toContainEqual(expect.stringContaining(id));
    await sessions().sweep();
    expect((await objects()).filter((key) => key.includes(id))).toEqual([]);
    expect(await sql('SELECT FROM upload_sessions WHERE id = $1', [id])).toEqual([]);
  });

  test('a session is deleted together with its parts', async () => {
    const { id, location } = await begin();
    await put(location, randomBytes(100), 0, 50);
    await sql(`
      CREATE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no'; END $$;
      CREATE TRIGGER fail BEFORE DELETE ON upload_sessions EXECUTE FUNCTION fail()`);
    try {
      await sessions().discard(id);
      expect(await sql('SELECT size FROM upload_parts WHERE session_id = $1', [id])).toEqual([{ size: 50 }]);
    } finally {
      await sql('DROP FUNCTION fail CASCADE');
    }
    await sessions().sweep();
    expect(await sql('SELECT FROM upload_sessions WHERE id = $1', [id])).toEqual([]);
  });

  test('the parts of a deleted game are deleted', async () => {
    const { id, location } = await begin();
    await put(location, randomBytes(100), 0, 50);
    await sql('DELETE FROM games WHERE id = $1', [game.id]);
    expect((await state(location)).status).toBe(404);
    await sessions().sweep();
    expect((await objects()).filter((key) => key.includes(id))).toEqual([]);
  });

  test('slow clients at a few IP addresses leave room for the parts of others', async () => {
    const { id, location } = await begin();
    const slow = Array.from({ length: 32 }, (_, i) => {
      const headers = { 'content-range': `bytes 0-${BLOCK - 1}/*`, 'content-length': BLOCK };
      const localAddress = `127.0.0.${2 + Math.floor(i / 8)}`;
      const outgoing = request(location, { method: 'PUT', headers, localAddress, agent: false });
      outgoing.on('error', () => undefined);
      outgoing.flushHeaders();
      return outgoing;
    });
    await until(async () => (await openParts(id)) === slow.length);
    const other = await begin();
    expect(await put(other.location, randomBytes(100), 0, 100)).toEqual(reply(200));
    for (const outgoing of slow) outgoing.destroy();
    await until(async () => (await openParts(id)) === 0);
  });

  test('an owner has at most so many sessions and bytes', async () => {
    const { id } = await sessions().create(game.id);
    await sql(
      `INSERT INTO upload_sessions (id, game_id, max_bytes, expires_at)
       SELECT gen_random_uuid(), game_id, max_bytes, expires_at FROM upload_sessions, generate_series(2, $2) WHERE id = $1`,
      [id, MAX_SESSIONS],
    );
    await expect(sessions().create(game.id)).rejects.toThrow('too many unfinished uploads');
    await sql('UPDATE upload_sessions SET received = max_bytes WHERE game_id = $1 AND id <> $2', [
      game.id,
      id,
    ]);
    expect(await put(sessions().sessionUrl(id), randomBytes(10), 0, 10)).toEqual(
      failed(429, 'too many unfinished uploads'),
    );
  });
});
