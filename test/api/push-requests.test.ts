import { mkdir, readdir, stat, utimes } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import type { Container } from '../../src/wharf/pwr/entries';
import { BuildJobs } from '../../src/push/build-jobs.service';
import { BuildQueue } from '../../src/push/build-queue.service';
import { EMPTY_CONTAINER } from '../../src/wharf/pwr/container';
import { writeSignature } from '../../src/wharf/pwr/signature';
import { Settings } from '../../src/platform/config/settings';
import { ApiKeysService } from '../../src/auth/keys/api-keys.service';
import { ApplicationsService } from '../../src/auth/oauth/applications.service';
import { WebhooksService } from '../../src/operator/webhooks/webhooks.service';
import { OwnAccountService } from '../../src/users/own-account.service';
import { FileUploadsService } from '../../src/uploads/file-uploads.service';
import { BuildFolders } from '../../src/uploads/build-folders';
import { UploadSessions } from '../../src/uploads/sessions/upload-sessions.service';
import { metric } from '../support/metric';
import { chunked, encodePatch, joined, type Operation } from '../support/pushed-builds';
import { baseUrl, theApp, theClock } from '../support/app';
import { useFiles } from '../support/files';
import { writeWhileLocked } from '../support/locks';
import { failure, ok } from '../support/http';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { UploadTool } from '../support/upload-tool';

const { environment } = useFiles({ FILES_MAX_BYTES: '10000000' });

const DAY_MS = 24 * 3600 * 1000;

const newTool = async () => {
  const { owner, stranger } = await actors();
  const game = await make.game({ owner });
  const tool = new UploadTool(baseUrl(), owner.key!);
  return { owner, stranger, game, target: `${owner.username}/${game.slug}`, tool };
};

const singleFile = (path: string, content: Buffer): [Container, Buffer[]] => [
  { files: [{ path, mode: 0o644, size: content.length }], folders: [], links: [] },
  [content],
];

async function encodeBuildFiles(
  container: Container,
  contents: Buffer[],
  operations?: Operation[][],
  parent: Container = EMPTY_CONTAINER,
) {
  return {
    patch: await encodePatch(parent, container, operations ?? contents.map((data) => [{ data }])),
    signature: await joined(writeSignature(container, (file) => chunked(contents[file]!))),
  };
}

/** Each text has the same length, so that a parent has the same entries. */
const small = (text: string, hasParent = false) => {
  const [container, contents] = singleFile('game.txt', Buffer.from(text));
  return encodeBuildFiles(container, contents, undefined, hasParent ? container : EMPTY_CONTAINER);
};

test('channels are created with platforms from their name; builds count up', async () => {
  const { tool, target, owner, game } = await newTool();
  for (const version of ['1.0', '1.1']) {
    const { id, upload_id } = await tool.push(
      target,
      'windows-demo',
      await small(version, version !== '1.0'),
      {
        user_version: version,
      },
    );
    expect(await tool.processed(id)).toMatchObject({ state: 'completed', user_version: version, upload_id });
  }
  const { body } = await owner.get(`/wharf/channels/windows-demo`, { target });
  expect(body).toMatchObject({
    channel: { tags: 'windows', head: { version: 2, user_version: '1.1' }, pending: null },
  });
  expect(await owner.get(`/games/${game.id}/uploads`)).toMatchObject({
    body: { uploads: [{ filename: `${game.slug}-windows-demo.zip`, traits: ['p_windows', 'demo'] }] },
  });
});

test('a hidden build is the head once it is published', async () => {
  const { tool, target, owner, stranger } = await newTool();
  const first = await tool.push(target, 'linux', await small('1'), { user_version: '1' });
  await tool.processed(first.id);
  const second = await tool.push(target, 'linux', await small('2', true), { user_version: '2', hidden: '' });
  await tool.processed(second.id);
  const head = async () =>
    ((await owner.get('/wharf/channels/linux', { target })).body as { channel: { head: { id: number } } })
      .channel.head.id;
  expect(await head()).toBe(first.id);
  expect(await stranger.get(`/builds/${second.id}`)).toEqual(failure(404, 'invalid build'));
  expect(await owner.post(`/wharf/builds/${second.id}/publish`)).toEqual(ok({ success: true }));
  expect(await head()).toBe(second.id);
});

test('two pushes at the same time both finish, and the newest is the head', async () => {
  const { tool, target, owner } = await newTool();
  const builds = await Promise.all(
    ['1', '2'].map(async (text) => tool.push(target, 'linux', await small(text))),
  );
  for (const { id } of builds) expect(await tool.processed(id)).toMatchObject({ state: 'completed' });
  const { body } = await owner.get('/wharf/channels/linux', { target });
  expect(body).toMatchObject({ channel: { head: { id: Math.max(...builds.map(({ id }) => id)) } } });
  expect(
    await sql('SELECT version FROM builds WHERE id = ANY ($1) ORDER BY id', [builds.map(({ id }) => id)]),
  ).toEqual([{ version: 1 }, { version: 2 }]);
});

test('a failure that the tool reports, events and the list of builds', async () => {
  const { tool, target, owner } = await newTool();
  const { build } = await tool.post<{ build: { id: number } }>('/wharf/builds', {
    target,
    channel: 'osx',
    metadata: '{"a":1}',
    launch_analysis: '{"b":2}',
  });
  const texts = () => sql('SELECT metadata, launch_analysis FROM builds WHERE id = $1', [build.id]);
  expect(await texts()).toEqual([{ metadata: '{"a":1}', launch_analysis: '{"b":2}' }]);
  await tool.post(`/wharf/builds/${build.id}/events`, {
    type: 'log',
    message: 'Hashing',
    data: '{"bytes":1}',
  });
  const list = async (query: object) =>
    ((await owner.get('/profile/builds', { ...query })).body as { builds: { id: number }[] }).builds.map(
      ({ id }) => id,
    );
  expect(await list({})).toEqual([]);
  expect(await list({ started_build_ids: `${build.id},4` })).toEqual([build.id]);
  await tool.post(`/wharf/builds/${build.id}/failures`, { message: 'No space left', fatal: '' });
  expect(await tool.processed(build.id)).toMatchObject({ state: 'failed', error: 'No space left' });
  expect(await list({ state: 'failed' })).toEqual([build.id]);
  expect(await texts()).toEqual([{ metadata: null, launch_analysis: null }]);
  const { events } = await tool.get<{ events: { type: string; message: string }[] }>(
    `/wharf/builds/${build.id}/events`,
  );
  expect(events.map(({ type, message }) => `${type}: ${message}`)).toEqual([
    'log: Hashing',
    'failed: No space left',
  ]);
});

test('invalid requests', async () => {
  const { tool, target, owner, stranger } = await newTool();
  expect(await owner.post('/wharf/builds', { target, channel: 'Windows 10' })).toEqual(
    failure(400, 'channel must have 1 to 200 of the characters a-z 0-9 . _ -'),
  );
  expect(await stranger.post('/wharf/builds', { target, channel: 'windows' })).toEqual(
    failure(404, 'invalid game'),
  );
  const { build } = await tool.post<{ build: { id: number } }>('/wharf/builds', { target, channel: 'osx' });
  const { id, location } = await tool.startFile(build.id, 'patch', Buffer.alloc(10));
  const finish = (size: number) => owner.post(`/wharf/builds/${build.id}/files/${id}`, { size });
  const differs = failure(400, 'size differs from the uploaded file');
  expect(await finish(0)).toEqual(differs);
  await tool.put(location, 'bytes 0-4/*', Buffer.alloc(5));
  expect(await finish(5)).toEqual(differs);
  await tool.put(location, 'bytes 5-7/10', Buffer.alloc(3));
  expect(await finish(8)).toEqual(differs);
  await tool.put(location, 'bytes 8-9/10', Buffer.alloc(2));
  expect(await finish(9)).toEqual(differs);
  expect(await stranger.get(`/wharf/builds/${build.id}`)).toEqual(failure(404, 'invalid build'));
});

test('a build that is not complete after a day fails, and its parts are deleted', async () => {
  const { tool, target } = await newTool();
  const { build } = await tool.post<{ build: { id: number } }>('/wharf/builds', { target, channel: 'osx' });
  const { location } = await tool.startFile(build.id, 'patch', Buffer.alloc(10));
  await tool.put(location, 'bytes 0-9/20', Buffer.alloc(10));
  theClock().advance(DAY_MS + 1000);
  await theApp().get(BuildJobs).sweep();
  await theApp().get(UploadSessions).sweep();
  expect(await tool.processed(build.id)).toMatchObject({
    state: 'failed',
    error: 'The push was not complete within 24 hours.',
  });
  expect(await sql('SELECT FROM upload_parts')).toEqual([]);
});

test('a channel whose first push fails leaves no empty file, unless it is edited or has another build', async () => {
  const { tool, target, owner, game } = await newTool();
  const begin = async (channel: string) =>
    (await tool.post<{ build: { id: number; upload_id: number } }>('/wharf/builds', { target, channel }))
      .build;
  const fail = ({ id }: { id: number }) => tool.post(`/wharf/builds/${id}/failures`, { message: 'Canceled' });
  const channels = async () =>
    (
      await sql<{ channel_name: string }>(
        'SELECT channel_name FROM uploads WHERE game_id = $1 ORDER BY channel_name',
        [game.id],
      )
    ).map(({ channel_name }) => channel_name);
  const [abandoned, edited, first, second] = [
    await begin('abandoned'),
    await begin('edited'),
    await begin('pushed-twice'),
    await begin('pushed-twice'),
  ];
  await sql('UPDATE uploads SET display_name = $2, updated_at = now() WHERE id = $1', [
    edited.upload_id,
    'For Linux',
  ]);
  const completed = await tool.push(target, 'completed', await small('1'));
  expect(await tool.processed(completed.id)).toMatchObject({ state: 'completed' });
  const later = await begin('completed');
  for (const build of [abandoned, edited, first, later]) await fail(build);
  expect(await channels()).toEqual(['completed', 'edited', 'pushed-twice']);
  await fail(second);
  expect(await channels()).toEqual(['completed', 'edited']);
  const { body } = await owner.get(`/games/${game.id}/uploads`);
  expect((body as { uploads: object[] }).uploads).toHaveLength(1);
});

test('folders of killed processes in BUILD_DIR are deleted when they are unchanged for ten minutes', async () => {
  const names = [
    'gamewharf-build-1.1.killed',
    'gamewharf-signature-2.killed',
    'gamewharf-build-3.1.running',
    'build-4.1.of-another-program',
  ];
  for (const name of names) {
    const path = join(environment.BUILD_DIR, name);
    await mkdir(path, { recursive: true });
    const seconds = theClock().now() / 1000 - (name.endsWith('running') ? 590 : 610);
    await utimes(path, seconds, seconds);
  }
  await theApp().get(BuildJobs).sweep();
  expect((await readdir(environment.BUILD_DIR)).toSorted()).toEqual([
    'build-4.1.of-another-program',
    'gamewharf-build-3.1.running',
  ]);
});

test('without BUILD_DIR, no folder is shared with other users of the machine', async () => {
  const folders = new BuildFolders(Object.assign(new Settings(), { BUILD_DIR: undefined }), theClock());
  const [parent, mode] = await folders.with('build-1.1.test', async (folder) => [
    dirname(folder),
    (await stat(folder)).mode & 0o777,
  ]);
  expect([parent, mode]).toEqual([tmpdir(), 0o700]);
});

test('metrics count builds by result, their bytes and the age of the oldest', async () => {
  const count = async (result: string) => (await metric('gamewharf_builds_total', { result }))[0]!.value;
  const total = async (name: string) => (await metric(name)).reduce((sum, { value }) => sum + value, 0);
  const before = {
    completed: await count('completed'),
    rejected: await count('rejected'),
    failed: await count('failed'),
    bytes: await total('gamewharf_build_bytes_total'),
    seconds: await total('gamewharf_build_seconds_total'),
  };
  const { tool, target } = await newTool();
  const { id } = await tool.push(target, 'linux', await small('1.0'));
  expect(await tool.processed(id)).toMatchObject({ state: 'completed' });
  const invalid = await tool.push(target, 'other', { ...(await small('1.0')), patch: Buffer.alloc(9) });
  expect(await tool.processed(invalid.id)).toMatchObject({ state: 'failed' });
  const stored = (await tool.files(id)).reduce((sum, { size }) => sum + size, 0);
  await until(async () => (await total('gamewharf_build_bytes_total')) === before.bytes + stored);
  expect(await count('completed')).toBe(before.completed + 1);
  expect(await count('rejected')).toBe(before.rejected + 1);
  expect(await total('gamewharf_build_seconds_total')).toBeGreaterThan(before.seconds);

  // This is the state after the third process that was killed.
  await sql(`UPDATE builds SET state = 'processing' WHERE id = $1`, [id]);
  await sql(
    `INSERT INTO build_jobs (build_id, attempts, leased_until, created_at)
     VALUES ($1, 3, now() + interval '1 minute', $2)`,
    [id, new Date(theClock().now() - 100_000)],
  );
  const jobs = theApp().get(BuildJobs);
  await jobs.sweep();
  expect(await total('gamewharf_build_oldest_seconds')).toBeGreaterThanOrEqual(100);
  expect(await count('failed')).toBe(before.failed);
  await sql('UPDATE build_jobs SET leased_until = now() WHERE build_id = $1', [id]);
  await jobs.sweep();
  expect(await total('gamewharf_build_oldest_seconds')).toBe(0);
  expect(await count('failed')).toBe(before.failed + 1);
});

test('a replica whose clock is ahead takes no job of another one, and doesn’t fail its build', async () => {
  const { tool, target } = await newTool();
  const { id } = await tool.push(target, 'linux', await small('1.0'));
  expect(await tool.processed(id)).toMatchObject({ state: 'completed' });
  await sql(`UPDATE builds SET state = 'processing' WHERE id = $1`, [id]);
  theClock().advance(5 * 60_000);
  await sql(
    `INSERT INTO build_jobs (build_id, attempts, lease, leased_until)
     VALUES ($1, 1, gen_random_uuid(), now() + interval '1 minute')`,
    [id],
  );
  expect(await theApp().get(BuildQueue).claim()).toBeUndefined();
  // The last attempt.
  await sql('UPDATE build_jobs SET attempts = 3 WHERE build_id = $1', [id]);
  expect(await theApp().get(BuildQueue).givenUp()).toEqual([]);
  await sql('DELETE FROM build_jobs WHERE build_id = $1', [id]);
});

describe('hostile files fail with a message, and nothing is stored', () => {
  const entry = (path: string, size = 1) => ({ path, mode: 0o644, size });
  const link = (path: string, target: string): Container => ({
    files: [],
    folders: [],
    links: [{ path, mode: 0o777, target }],
  });
  const one = Buffer.from('x');
  const container = (...paths: string[]): [Container, Buffer[]] => [
    { files: paths.map((path) => entry(path)), folders: [], links: [] },
    paths.map(() => one),
  ];
  const [plain] = container('a');
  test.each<[string, () => Promise<{ patch: Buffer; signature: Buffer }>, string]>([
    ['a path out of the build', () => encodeBuildFiles(...container('../a')), 'relative path'],
    ['an absolute path', () => encodeBuildFiles(...container('/etc/passwd')), 'relative path'],
    ['a link out of the build', () => encodeBuildFiles(link('a', '../../etc'), []), 'points outside'],
    ['a path twice', () => encodeBuildFiles(...container('a', 'a')), 'twice'],
    ['paths that differ by case', () => encodeBuildFiles(...container('a', 'A')), 'only by case'],
    [
      'blocks of a parent that it lacks',
      () => encodeBuildFiles(plain, [one], [[{ file: 0, block: 0, count: 1 }]]),
      'blocks',
    ],
    [
      'other content',
      () => encodeBuildFiles(plain, [one], [[{ data: Buffer.from('y') }]]),
      'match the signature',
    ],
    ['no patch', async () => ({ ...(await small('1')), patch: Buffer.alloc(100, 7) }), 'is.{1,2}t a patch'],
  ])('%s', async (_, files, problem) => {
    const { tool, target } = await newTool();
    const { id } = await tool.push(target, 'linux', await files());
    const { state, error } = await tool.processed(id);
    expect([state, error]).toEqual(['failed', expect.stringMatching(problem)]);
    expect(await sql('SELECT FROM build_jobs WHERE build_id = $1', [id])).toEqual([]);
    expect(
      await sql('SELECT file_key FROM build_files WHERE build_id = $1 AND file_key IS NOT NULL', [id]),
    ).toEqual([]);
  });
});

describe('requests of one user that wait for a lock delay no write of another user', () => {
  const lockGame = (game: { id: number }) => `SELECT FROM games WHERE id = ${game.id} FOR UPDATE`;
  const lockUser = ({ id }: { id: number }) => `SELECT FROM users WHERE id = ${id} FOR UPDATE`;
  const lockFiles = ({ id }: { id: number }) => `SELECT pg_advisory_xact_lock(7305811, hashint8(${id}))`;

  async function newBuild() {
    const { owner, game, target } = await newTool();
    const { body } = await owner.post('/wharf/builds', { target, channel: 'linux' });
    return { owner, game, target, build_id: (body as { build: { id: number } }).build.id };
  }

  test('new builds', async () => {
    const { owner, game, target } = await newTool();
    const create = () => owner.post('/wharf/builds', { target, channel: 'linux' });
    expect(await writeWhileLocked(lockGame(game), create)).toBe(200);
  });

  test('failed builds', async () => {
    const { owner, game, build_id } = await newBuild();
    const fail = () => owner.post(`/wharf/builds/${build_id}/failures`, { message: 'x' });
    expect(await writeWhileLocked(lockGame(game), fail)).toBe(200);
  });

  test('published builds', async () => {
    const { owner, build_id } = await newBuild();
    const publish = () => owner.post(`/wharf/builds/${build_id}/publish`);
    const lock = `SELECT FROM builds WHERE id = ${build_id} FOR UPDATE`;
    expect(await writeWhileLocked(lock, publish)).toBe(200);
  });

  test('files of builds', async () => {
    const { owner, build_id } = await newBuild();
    const create = () => owner.post(`/wharf/builds/${build_id}/files`, { type: 'patch' });
    expect(await writeWhileLocked(lockFiles(owner), create)).toBe(200);
  });

  test('uploaded files', async () => {
    const { owner, game } = await newTool();
    const file = {
      game_id: game.id,
      filename: 'a.zip',
      size: 1,
      display_name: null,
      traits: [],
      hidden: false,
      replaces: null,
      channel_name: null,
      user_version: null,
    };
    const start = () => theApp().get(FileUploadsService).start(file, { user_id: owner.id, request_id: '' });
    expect(await writeWhileLocked(lockFiles(owner), start)).toBe(200);
  });

  test('deleted games', async () => {
    const { owner, game } = await newTool();
    const remove = () => owner.post(`/games/${game.id}/delete`);
    expect(await writeWhileLocked(lockGame(game), remove)).toBe(200);
  });

  test('API keys', async () => {
    const owner = await make.user();
    const create = () => theApp().get(ApiKeysService).createOwn(owner.id, {});
    expect(await writeWhileLocked(lockUser(owner), create)).toBe(200);
  });

  test('apps', async () => {
    const owner = await make.user();
    const app = { name: 'x', redirect_uris: [], scopes: ['profile:me'], implicit_allowed: false };
    const create = () =>
      theApp()
        .get(ApplicationsService)
        .create(owner.id, { ...app, may_start_games: false });
    expect(await writeWhileLocked(lockUser(owner), create)).toBe(200);
  });

  test('webhooks', async () => {
    const owner = await make.user();
    const webhook = { url: 'https://example.com/', events: ['build.failed'], game_id: 0, user_id: owner.id };
    const add = () => theApp().get(WebhooksService).add(webhook);
    expect(await writeWhileLocked(lockUser(owner), add)).toBe(200);
  });

  test('email addresses', async () => {
    const owner = await make.user();
    const remove = () => theApp().get(OwnAccountService).removeAddress(owner.id, 'x@example.com');
    expect(await writeWhileLocked(lockUser(owner), remove)).toBe(200);
  });
});
