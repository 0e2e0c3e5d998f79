import { randomBytes } from 'node:crypto';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Audit } from '../../src/audit/audit';
import { OperatorError } from '../../src/platform/errors/operator-error';
import { FileUploadJobs } from '../../src/uploads/file-upload-jobs.service';
import { FileStorage } from '../../src/uploads/storage/file-storage';
import { UnusedFiles } from '../../src/uploads/unused-files.service';
import { type Browser, signInBrowser } from '../support/browser';
import { until } from '../support/time';
import { createZip } from '../support/zip-archives';
import { type Actor } from '../support/actor';
import { baseUrl, openApp, theApp, theClock, useStore } from '../support/app';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';

const FOLDER = mkdtempSync(join(tmpdir(), 'gamewharf-files-'));
const MAX_BYTES = 2_000_000;
const QUOTA = 5_000_000;
useStore({ FILES_DIR: FOLDER, FILES_MAX_BYTES: String(MAX_BYTES), FILES_QUOTA_BYTES: String(QUOTA) });
afterAll(() => rmSync(FOLDER, { recursive: true }));

const GAMES = '/user/settings/games';
const JSON_ACCEPTED = { accept: 'application/json' };

let seller: Actor;
let admin: Actor;
let stranger: Actor;
let browser: Browser;
let game: { id: number; title: string };

beforeAll(async () => {
  ({ admin, stranger } = await actors());
});
beforeEach(async () => {
  // This owner has a separate quota.
  seller = await make.user({ developer: true });
  game = await make.game({ owner: seller, admins: [admin] });
  browser = await signInBrowser(seller);
});

interface Status {
  id: string;
  path: string;
  state: string;
  error: string | null;
  upload_id: number | null;
  errors?: string[];
}

const filesPath = (more = '', id = game.id) => `${GAMES}/${id}/files${more}`;

async function readFormToken(page: Browser): Promise<string> {
  await page.get('/user/settings/collections');
  const [, token] = /name="form_token" value="([^"]+)"/.exec(page.page.text) ?? [];
  if (token !== undefined) return token;
  await page.get('/user/settings/data');
  return /name="form_token" value="([^"]+)"/.exec(page.page.text)![1]!;
}

/** A request as the script of the page sends it. */
async function post(path: string, fields: Record<string, string> = {}, page = browser) {
  const form_token = await readFormToken(page);
  const { status, text } = await page.post(path, { form_token, ...fields }, JSON_ACCEPTED);
  return { status, body: JSON.parse(text) as Status };
}

const start = (filename: string, size: number, more: Record<string, string> = {}, id = game.id) =>
  post(filesPath('/uploads', id), { filename, size: String(size), ...more });

const put = (path: string, range: string, body?: Buffer) =>
  fetch(baseUrl() + path, {
    method: 'PUT',
    headers: { 'content-range': range },
    body: body && new Uint8Array(body),
    redirect: 'manual',
  });

/** As if the process that stores the file had been killed a minute ago. */
const endLease = (id: string) => sql('UPDATE file_uploads SET leased_until = now() WHERE id = $1', [id]);

async function complete(id: string, game_id = game.id) {
  await post(filesPath(`/uploads/${id}/complete`, game_id));
  await theApp().get(FileUploadJobs).waitForFiles();
  return post(filesPath(`/uploads/${id}/complete`, game_id));
}

/** Uploads a file in one part; returns the final state. */
async function upload(filename: string, content: Buffer, more: Record<string, string> = {}, id = game.id) {
  const { body } = await start(filename, content.length, more, id);
  const { status } = await put(body.path, `bytes 0-${content.length - 1}/${content.length}`, content);
  expect(status).toBe(200);
  return (await complete(body.id, id)).body;
}

const readUploads = (id = game.id) =>
  sql('SELECT * FROM uploads WHERE game_id = $1 ORDER BY position, id', [id]);
const stored = () =>
  readdirSync(FOLDER, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
const readContent = (key: unknown) => readFileSync(join(FOLDER, String(key)));

async function events() {
  await theApp().get(Audit).flush();
  const rows = await sql<{ event: string }>(
    `SELECT event FROM audit_events WHERE (details->>'game_id')::bigint = $1 ORDER BY id`,
    [game.id],
  );
  return rows.map(({ event }) => event);
}

describe('upload', () => {
  test('accepts parts, also after a cut one, and lists the file with its fields', async () => {
    const content = randomBytes(1_200_000);
    const { body } = await start('harbor.zip', content.length, {
      display_name: ' Harbor ',
      p_windows: 'yes',
      demo: 'yes',
    });
    expect((await put(body.path, 'bytes */1200000')).headers.get('range')).toBeNull();
    await put(body.path, 'bytes 0-524287/1200000', content.subarray(0, 524_288));
    // After a reload of the page, the upload of the same file continues where it stopped.
    const page = await browser.get(filesPath());
    expect(page.text).toContain(`data-unfinished="${body.id}"`);
    expect(browser.words).toMatch(/harbor\.zip 524 KB of 1\.2 MB To continue, choose the same file again\./);
    const status = await browser.get(filesPath(`/uploads/${body.id}`), JSON_ACCEPTED);
    expect(JSON.parse(status.text)).toMatchObject({ path: body.path, received: 524_288, state: 'receiving' });
    expect(await post(filesPath(`/uploads/${body.id}/complete`))).toMatchObject({ status: 409 });
    await put(body.path, 'bytes 524288-1199999/1200000', content.subarray(524_288));

    expect((await complete(body.id)).body).toMatchObject({ state: 'stored' });
    const [row] = await readUploads();
    expect(row).toMatchObject({
      filename: 'harbor.zip',
      display_name: 'Harbor',
      traits: ['p_windows', 'demo'],
      size: content.length,
      hidden: false,
      channel_name: null,
    });
    expect(readContent(row!.file_key).equals(content)).toBe(true);
    expect(await sql('SELECT traits FROM games WHERE id = $1', [game.id])).toEqual([
      { traits: ['p_windows', 'has_demo'] },
    ]);
    expect(await sql('SELECT count(*) FROM upload_sessions WHERE game_id = $1', [game.id])).toEqual([
      { count: 0 },
    ]);
    expect(await events()).toEqual(['upload.created']);
    await browser.get(filesPath());
    expect(browser.words).toMatch(/Harbor Demo harbor\.zip Windows File 1\.2 MB/);
    expect(browser.words).not.toContain('Unfinished uploads');
  });

  test('completing it again, or at the same time, lists it once', async () => {
    const content = Buffer.from('once');
    const { body } = await start('once.txt', content.length);
    await put(body.path, 'bytes 0-3/4', content);
    const form_token = await readFormToken(browser);
    await Promise.all(
      [1, 2, 3].map(() =>
        browser.post(filesPath(`/uploads/${body.id}/complete`), { form_token }, JSON_ACCEPTED),
      ),
    );
    expect((await complete(body.id)).body).toMatchObject({ state: 'stored', upload_id: expect.any(Number) });
    expect(await readUploads()).toHaveLength(1);
    expect(await events()).toEqual(['upload.created']);
  });

  test('a process that was killed while it stored a file is followed by another one', async () => {
    const content = Buffer.from('killed');
    const { body } = await start('killed.txt', content.length);
    await put(body.path, 'bytes 0-5/6', content);
    await sql(
      `UPDATE file_uploads SET state = 'storing', leased_until = now() + interval '1 minute' WHERE id = $1`,
      [body.id],
    );
    // Another replica's clock may be ahead.
    theClock().advance(5 * 60_000);
    expect((await complete(body.id)).body).toMatchObject({ state: 'storing' });
    await endLease(body.id);
    expect((await complete(body.id)).body).toMatchObject({ state: 'stored' });
  });

  test('a process that lost its lease while it stored a file lists nothing', async () => {
    const content = Buffer.from('slow');
    const { body } = await start('slow.txt', content.length);
    await put(body.path, 'bytes 0-3/4', content);
    const storage = theApp().get(FileStorage);
    const real = storage.put.bind(storage);
    let resume!: () => void;
    const held = new Promise<void>((resolve) => (resume = resolve));
    const slow = jest.spyOn(storage, 'put').mockImplementationOnce(async (...args) => {
      await held;
      return real(...args);
    });
    await post(filesPath(`/uploads/${body.id}/complete`));
    await endLease(body.id);
    // The second process stores it meanwhile. A process stores the files of one seller one after the other.
    await post(filesPath(`/uploads/${body.id}/complete`), {}, await signInBrowser(admin));
    await until(async () => (await readUploads()).length === 1);
    resume();
    await theApp().get(FileUploadJobs).waitForFiles();
    slow.mockRestore();
    expect(await readUploads()).toHaveLength(1);
    expect(await sql('SELECT state, error FROM file_uploads WHERE id = $1', [body.id])).toEqual([
      { state: 'stored', error: null },
    ]);
    expect(await events()).toEqual(['upload.created']);
  });

  test('the files of one seller do not delay those of another', async () => {
    const other = await make.user({ developer: true });
    const theirs = await make.game({ owner: other });
    const page = await signInBrowser(other);
    const content = Buffer.from('content');
    const { body: one } = await post(
      filesPath('/uploads', theirs.id),
      { filename: 'one.txt', size: '7' },
      page,
    );
    await put(one.path, 'bytes 0-6/7', content);
    const many: string[] = [];
    for (const name of ['a.txt', 'b.txt', 'c.txt']) {
      const { body } = await start(name, content.length);
      await put(body.path, 'bytes 0-6/7', content);
      many.push(body.id);
    }
    const storage = theApp().get(FileStorage);
    const real = storage.put.bind(storage);
    let resume!: () => void;
    const held = new Promise<void>((resolve) => (resume = resolve));
    const slow = jest.spyOn(storage, 'put').mockImplementation(async (key, ...more) => {
      if (!key.includes('one.txt')) await held;
      return real(key, ...more);
    });
    for (const id of many) await post(filesPath(`/uploads/${id}/complete`));
    await post(filesPath(`/uploads/${one.id}/complete`, theirs.id), {}, page);
    await until(async () => (await readUploads(theirs.id)).length === 1);
    expect(await readUploads()).toEqual([]);
    resume();
    await theApp().get(FileUploadJobs).waitForFiles();
    slow.mockRestore();
    expect(await readUploads()).toHaveLength(3);
  });

  test('a storage that fails keeps the parts, and the seller can finish later', async () => {
    const content = Buffer.from('content');
    const { body } = await start('later.txt', content.length);
    await put(body.path, 'bytes 0-6/7', content);
    const broken = jest.spyOn(theApp().get(FileStorage), 'put').mockRejectedValue(new Error('disk is full'));
    await post(filesPath(`/uploads/${body.id}/complete`));
    await theApp().get(FileUploadJobs).waitForFiles();
    broken.mockRestore();
    await browser.get(filesPath());
    expect(browser.words).toContain('The file could not be stored. Try again.');
    await browser.submit(filesPath(`/uploads/${body.id}/complete`));
    await theApp().get(FileUploadJobs).waitForFiles();
    expect(await readUploads()).toHaveLength(1);
  });

  test('a part that a full disk rejects fails with 503, and can be sent again', async () => {
    const { body } = await start('full.txt', 7);
    const content = Buffer.from('content');
    const full = new OperatorError("The files can't be written: ENOSPC.");
    const writing = jest.spyOn(theApp().get(FileStorage), 'put').mockRejectedValue(full);
    expect((await put(body.path, 'bytes 0-6/7', content)).status).toBe(503);
    writing.mockRestore();
    expect((await put(body.path, 'bytes 0-6/7', content)).status).toBe(200);
  });

  test('discarding deletes what was received', async () => {
    const before = stored().length;
    const { body } = await start('wrong.zip', 1_000_000);
    await put(body.path, 'bytes 0-299999/1000000', Buffer.alloc(300_000));
    await browser.get(filesPath());
    await browser.submit(filesPath(`/uploads/${body.id}/discard`));
    await browser.follow();
    expect(browser.words).toContain('The unfinished upload was discarded.');
    expect(stored()).toHaveLength(before);
    expect((await put(body.path, 'bytes */*')).status).toBe(404);
    expect(await post(filesPath(`/uploads/${body.id}/complete`))).toMatchObject({ status: 404 });
  });

  test('adds a build to a channel, whose next builds are versions of the same upload', async () => {
    await upload('win.zip', Buffer.from('1'), {
      channel_name: 'Windows',
      user_version: '1.0',
      p_windows: 'yes',
    });
    await upload('win.zip', Buffer.from('22'), {
      channel_name: 'windows',
      user_version: '1.1',
      p_windows: 'yes',
    });
    expect(await readUploads()).toEqual([
      expect.objectContaining({ channel_name: 'windows', file_key: null }),
    ]);
    expect(
      await sql('SELECT user_version, size FROM builds WHERE game_id = $1 ORDER BY id', [game.id]),
    ).toEqual([
      { user_version: '1.0', size: 1 },
      { user_version: '1.1', size: 2 },
    ]);
    await browser.get(filesPath());
    expect(browser.words).toMatch(/Channel windows 1\.1/);
  });

  test('a zip archive of a channel gets its signature at once', async () => {
    const archive = createZip([{ name: 'game.txt', content: Buffer.from('play') }]);
    await upload('linux.zip', archive, { channel_name: 'linux' });
    await upload('notes.txt', Buffer.from('no archive'), { channel_name: 'notes' });
    expect(
      await sql(
        `SELECT b.channel_name, f.type FROM builds b JOIN build_files f ON f.build_id = b.id WHERE b.game_id = $1`,
        [game.id],
      ),
    ).toEqual([{ channel_name: 'linux', type: 'signature' }]);
  });

  test('shows the commands of the upload tool with the values of the game', async () => {
    await browser.get(filesPath());
    expect(browser.words).toMatch(new RegExp(`butler push FOLDER ${seller.username}/game-\\d+:windows`));
    expect(browser.words).toContain('API key with the permission “Upload builds of your games”');
    expect(browser.words).toContain(`butler --address ${baseUrl().replace('://api.', '://')}`);
  });
});

describe('limits', () => {
  test.each([
    ['a path', '../../etc/passwd'],
    ['a Windows path', '..\\boot.ini'],
    ['dots', '..'],
    ['only a space', ' '],
    ['nothing', ''],
    ['a line break', 'a\nb'],
    ['a NUL', 'a\0b'],
    ['reversed text', 'photo\u202egpj.exe'],
    ['256 characters', 'x'.repeat(256)],
  ])('a file name with %s is rejected', async (_, filename) => {
    expect((await start(filename, 1)).status).toBe(400);
    expect(await sql('SELECT FROM file_uploads WHERE game_id = $1', [game.id])).toEqual([]);
  });

  test.each([
    '<img src=x onerror=alert(1)>.zip',
    "'; DROP TABLE games; --",
    'a"b.zip',
    '😀'.repeat(255),
    '..zip',
    'con',
  ])('the file name %j is only text', async (filename) => {
    expect(await upload(filename, Buffer.from('x'))).toMatchObject({ state: 'stored' });
    const [row] = await readUploads();
    expect(row).toMatchObject({ filename });
    expect(String(row!.file_key)).toMatch(/^\d+\/[0-9a-f-]{36}\/[\w.-]{1,100}$/);
    const page = await browser.get(filesPath());
    expect(page.text).not.toContain('<img src=x');
    expect(browser.words).toContain(filename);
    const response = await fetch(`${baseUrl()}/uploads/${String(row!.id)}/download`, {
      headers: seller.headers,
      redirect: 'manual',
    });
    const file = await fetch(response.headers.get('location')!);
    expect([file.status, file.headers.get('content-type')]).toEqual([200, 'application/octet-stream']);
  });

  test('a size is checked before and while the file is received', async () => {
    expect(await start('large.zip', MAX_BYTES + 1)).toMatchObject({
      status: 413,
      body: { errors: ['The file is larger than this store accepts.'] },
    });
    for (const size of ['-1', '1e3', '9007199254740993', 'x'])
      expect([400, 413]).toContain((await post(filesPath('/uploads'), { filename: 'a', size })).status);
    expect(await start('empty.zip', 0)).toMatchObject({
      status: 400,
      body: { errors: ['The file is empty.'] },
    });
    const { body } = await start('longer.zip', 10);
    expect((await put(body.path, 'bytes 0-19/20', Buffer.alloc(20))).status).toBe(400);
  });

  test('the quota of the owner counts stored and announced files of all games, however many start at once', async () => {
    await upload('first.zip', Buffer.alloc(1_500_000));
    const other = await make.game({ owner: seller });
    const form_token = await readFormToken(browser);
    const requests = [game.id, other.id, game.id, other.id].map(async (id) => {
      const { cookies } = browser;
      const response = await fetch(baseUrl() + filesPath('/uploads', id), {
        method: 'POST',
        headers: {
          ...JSON_ACCEPTED,
          cookie: [...cookies].map(([name, value]) => `${name}=${value}`).join('; '),
          'sec-fetch-site': 'same-origin',
        },
        body: new URLSearchParams({ form_token, filename: 'more.zip', size: '1500000' }),
      });
      return response.status;
    });
    expect((await Promise.all(requests)).toSorted()).toEqual([200, 200, 400, 400]);
    expect(await start('more.zip', 1_500_000)).toMatchObject({
      status: 400,
      body: { errors: [expect.stringContaining('There is no space left for this file.')] },
    });
    // An unfinished upload counts for a day.
    theClock().advance(25 * 3600_000);
    browser = await signInBrowser(seller);
    expect((await start('more.zip', 1_500_000)).status).toBe(200);
  });

  test('builds count, and deleted files no longer do', async () => {
    await make.build({ game, channel_name: 'linux', file_key: `${game.id}/x`, size: 2_000_000 });
    const { upload_id } = await upload('a.zip', Buffer.alloc(1_500_000));
    expect((await start('b.zip', 1_600_000)).status).toBe(400);
    await browser.get(filesPath(`/${upload_id}/delete`));
    await browser.submit(filesPath(`/${upload_id}/delete`));
    expect((await start('b.zip', 1_600_000)).status).toBe(200);
  });
});

describe('changes', () => {
  test('name, platforms, demo and hidden', async () => {
    const { upload_id } = await upload('a.zip', Buffer.from('a'), { p_windows: 'yes' });
    const path = filesPath(`/${upload_id}`);
    await browser.get(path);
    await browser.submit(path, { display_name: 'For <Linux>', p_linux: 'yes', hidden: 'yes' });
    expect(await readUploads()).toEqual([
      expect.objectContaining({
        display_name: 'For <Linux>',
        traits: ['p_windows', 'p_linux'],
        hidden: true,
      }),
    ]);
    await browser.follow();
    expect(browser.words).toMatch(/For <Linux> Hidden a\.zip Windows, Linux/);
    // Hidden files are not platforms of the game.
    expect(await sql('SELECT traits FROM games WHERE id = $1', [game.id])).toEqual([{ traits: [] }]);
    expect(await events()).toEqual(['upload.created', 'upload.updated']);
    await browser.get(path);
    expect((await browser.submit(path, { display_name: 'x'.repeat(501) })).status).toBe(400);
    expect(browser.words).toContain('The name can have at most 500 characters.');
    // Without a visible character, the link would have no text.
    await browser.submit(path, { display_name: '\u200b\u2800' });
    expect((await readUploads())[0]!.display_name).toBeNull();
  });

  test('players neither see nor download hidden files; editors do', async () => {
    const { upload_id } = await upload('secret.zip', Buffer.from('s'), { hidden: 'yes', demo: 'yes' });
    const build = await make.build({ game, channel_name: 'beta', file_key: `${game.id}/b`, size: 1 });
    await make.upload({ game, channel_name: 'beta', filename: 'beta.zip', hidden: true, traits: '{demo}' });
    await make.downloadKey({ game, user_id: stranger.id });
    const listed = async (who: Actor) =>
      ((await who.get(`/games/${game.id}/uploads`)).body as { uploads: unknown[] }).uploads.length;
    expect([await listed(stranger), await listed(seller)]).toEqual([0, 2]);
    for (const path of [
      `/uploads/${upload_id}`,
      `/uploads/${upload_id}/download`,
      `/uploads/${upload_id}/builds`,
    ])
      expect([path, (await stranger.get(path)).status]).toEqual([path, 404]);
    for (const path of [`/builds/${build.id}`, `/builds/${build.id}/download/archive/default`])
      expect([path, (await stranger.get(path)).status]).toEqual([path, 404]);
    expect((await admin.get(`/uploads/${upload_id}`)).status).toBe(200);
    const { key } = await make.downloadKey({ game });
    const ofKey = await fetch(`${baseUrl()}/download/${key}`, { headers: JSON_ACCEPTED });
    expect(((await ofKey.json()) as { uploads: unknown[] }).uploads).toEqual([]);
    const visitor = await signInBrowser(stranger);
    await visitor.get(`/download/${key}`);
    const form_token = /name="form_token" value="([^"]+)"/.exec(visitor.page.text)![1]!;
    expect((await visitor.post(`/download/${key}/files/${upload_id}`, { form_token })).status).toBe(404);
    const page = await signInBrowser(stranger);
    await page.get('/user/games');
    expect(page.words).not.toContain('secret.zip');
    expect((await page.get(`/user/games/downloads/${upload_id}`)).status).toBe(404);
  });

  test('moves files up and down', async () => {
    for (const name of ['a', 'b', 'c']) await make.upload({ game, filename: name, file_key: name, size: 1 });
    const order = async () => (await readUploads()).map(({ filename }) => filename).join('');
    const [a] = await readUploads();
    const form_token = await readFormToken(browser);
    const move = (direction: string) =>
      browser.post(filesPath(`/${String(a!.id)}/move`), { form_token, direction });
    await move('down');
    expect(await order()).toBe('bac');
    await move('down');
    await move('down');
    expect(await order()).toBe('bca');
    await move('up');
    expect(await order()).toBe('bac');
  });

  test('replacing keeps the upload, and deletes the old file', async () => {
    const { upload_id } = await upload('old.zip', Buffer.from('old'), {
      p_linux: 'yes',
      display_name: 'Name',
    });
    const [before] = await readUploads();
    await browser.get(filesPath(`/${upload_id}`));
    expect(browser.page.text).toContain(`<input type="hidden" name="replaces" value="${upload_id}" />`);
    expect(await upload('new.zip', Buffer.from('newer'), { replaces: String(upload_id) })).toMatchObject({
      upload_id,
    });
    const [after] = await readUploads();
    expect(after).toMatchObject({
      id: upload_id,
      filename: 'new.zip',
      display_name: 'Name',
      traits: ['p_linux'],
      size: 5,
    });
    expect(readContent(after!.file_key).toString()).toBe('newer');
    expect(() => readContent(before!.file_key)).toThrow();
    expect(await events()).toEqual(['upload.created', 'upload.replaced']);
  });

  test('replacing a file of a channel adds a build', async () => {
    const { id } = await make.upload({ game, channel_name: 'osx', filename: 'osx.zip' });
    await upload('osx.zip', Buffer.from('1'), { replaces: String(id), user_version: '2.0' });
    expect(await sql('SELECT channel_name, user_version FROM builds WHERE game_id = $1', [game.id])).toEqual([
      { channel_name: 'osx', user_version: '2.0' },
    ]);
    expect(await readUploads()).toHaveLength(1);
  });

  test('replacing a file that was deleted meanwhile says so', async () => {
    const { id } = await make.upload({ game, file_key: 'k', size: 1 });
    const { body } = await start('new.zip', 1, { replaces: String(id) });
    await put(body.path, 'bytes 0-0/1', Buffer.from('x'));
    await sql('DELETE FROM uploads WHERE id = $1', [id]);
    await post(filesPath(`/uploads/${body.id}/complete`));
    await theApp().get(FileUploadJobs).waitForFiles();
    await browser.get(filesPath());
    expect(browser.words).toContain('The file to replace was deleted.');
    expect(await readUploads()).toEqual([]);
  });

  test('deleting asks first, deletes the stored file, and keeps files that others use or stored', async () => {
    const { upload_id } = await upload('a.zip', Buffer.from('a'));
    const [{ file_key }] = (await readUploads()) as [{ file_key: string }];
    const shared = await make.upload({ game, filename: 'shared', file_key, size: 1 });
    await browser.get(filesPath(`/${upload_id}/delete`));
    expect(browser.words).toContain('Delete a.zip?');
    await browser.submit(filesPath(`/${upload_id}/delete`));
    expect(readContent(file_key).toString()).toBe('a');
    await browser.get(filesPath(`/${shared.id}/delete`));
    await browser.submit(filesPath(`/${shared.id}/delete`));
    expect(() => readContent(file_key)).toThrow();
    expect(await events()).toEqual(['upload.created', 'upload.deleted', 'upload.deleted']);
  });

  test('a deleted game is deleted with its files', async () => {
    const content = Buffer.from('game');
    await upload('a.zip', content);
    await upload('b.zip', content, { channel_name: 'linux' });
    const { body } = await start('unfinished.zip', 10);
    const keys = await sql<{ file_key: string }>(
      'SELECT file_key FROM uploads WHERE game_id = $1 AND file_key IS NOT NULL UNION SELECT file_key FROM builds WHERE game_id = $1',
      [game.id],
    );
    expect(keys).toHaveLength(2);
    await seller.post(`/games/${game.id}/delete`);
    await theApp().get(UnusedFiles).waitForDeletions();
    for (const { file_key } of keys) expect(() => readContent(file_key)).toThrow();
    expect((await put(body.path, 'bytes */*')).status).toBe(404);
  });
});

test('every route is for editors only: the same 404 as for a game that doesn’t exist', async () => {
  const { upload_id } = await upload('a.zip', Buffer.from('a'));
  const { body } = await start('b.zip', 10);
  const page = await signInBrowser(stranger);
  const form_token = await readFormToken(page);
  for (const id of [game.id, 4_000_000]) {
    for (const more of ['', `/${upload_id}`, `/${upload_id}/delete`, `/uploads/${body.id}`])
      expect([more, (await page.get(filesPath(more, id))).status]).toEqual([more, 404]);
    for (const more of [
      '/uploads',
      `/uploads/${body.id}/complete`,
      `/uploads/${body.id}/discard`,
      `/${upload_id}`,
      `/${upload_id}/move`,
      `/${upload_id}/delete`,
    ]) {
      const fields = { form_token, filename: 'x', size: '1', hidden: 'yes', direction: 'up' };
      expect([more, (await page.post(filesPath(more, id), fields)).status]).toEqual([more, 404]);
    }
  }
  // An editor of another game can't reach it through that game.
  const own = await make.game({ owner: stranger });
  for (const more of [`/${upload_id}`, `/${upload_id}/move`, `/${upload_id}/delete`])
    expect([more, (await page.post(filesPath(more, own.id), { form_token })).status]).toEqual([more, 404]);
  for (const action of ['complete', 'discard'])
    expect((await page.post(filesPath(`/uploads/${body.id}/${action}`, own.id), { form_token })).status).toBe(
      404,
    );
  const fields = { form_token, filename: 'x', size: '1', replaces: String(upload_id) };
  expect((await page.post(filesPath('/uploads', own.id), fields)).status).toBe(404);
  expect(await readUploads()).toEqual([expect.objectContaining({ filename: 'a.zip', hidden: false })]);
  const pending = await sql('SELECT state FROM file_uploads WHERE id = $1', [body.id]);
  expect(pending).toEqual([{ state: 'receiving' }]);
});

test('a form without the token of its session changes nothing', async () => {
  const { upload_id } = await upload('a.zip', Buffer.from('a'));
  for (const more of ['/uploads', `/${upload_id}`, `/${upload_id}/move`, `/${upload_id}/delete`])
    expect((await browser.post(filesPath(more), { filename: 'x', size: '1' })).status).toBe(403);
  expect(await readUploads()).toHaveLength(1);
});

test('the page says that no storage is configured', async () => {
  const replica = await openApp({ FILES_DIR: '' });
  const url = await replica.getUrl();
  const page = await signInBrowser(seller, () => url);
  await page.get(filesPath());
  expect(page.words).toContain('This store has no storage for files yet.');
});
