import { readdir } from 'node:fs/promises';
import { MAX_FAILED_WITH_EVENTS } from '../../src/push/build-events.service';
import { MAX_UNFINISHED } from '../../src/push/pushes.service';
import { MAX_SESSIONS } from '../../src/uploads/sessions/upload-sessions.service';
import { HOSTILE_BUILDS } from '../support/hostile-builds';
import { baseUrl } from '../support/app';
import { useFiles } from '../support/files';
import { failure } from '../support/http';
import { holdLocks, untilBlocked } from '../support/locks';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { UploadTool } from '../support/upload-tool';

const MAX_BYTES = 40_000_000;
const MEGABYTE = 2 ** 20;
const { environment } = useFiles({ FILES_MAX_BYTES: String(MAX_BYTES) });

const newTool = async () => {
  const { owner } = await actors();
  const game = await make.game({ owner });
  const target = `${owner.username}/${game.slug}`;
  return { target, tool: new UploadTool(baseUrl(), owner.key!) };
};

const filesIn = async (path: string) => {
  const entries = await readdir(path, { recursive: true, withFileTypes: true }).catch(() => []);
  return entries.filter((entry) => entry.isFile()).map(({ name }) => name);
};

/** Checks that no archive, part or temporary file is left. */
async function nothingIsStored(): Promise<void> {
  // Parts are deleted after the failure is visible.
  await until(async () => (await sql('SELECT FROM upload_sessions')).length === 0);
  expect(await filesIn(environment.FILES_DIR)).toEqual([]);
  await until(async () => (await readdir(environment.BUILD_DIR)).length === 0);
  expect(await sql('SELECT FROM upload_parts')).toEqual([]);
  expect(await sql('SELECT FROM build_jobs')).toEqual([]);
  expect(await sql('SELECT FROM build_files WHERE file_key IS NOT NULL')).toEqual([]);
  expect(await sql('SELECT FROM builds WHERE file_key IS NOT NULL OR size IS NOT NULL')).toEqual([]);
}

test.each(HOSTILE_BUILDS)('%s: the build fails, says so and leaves nothing', async (_, files, error) => {
  const { tool, target } = await newTool();
  const build = await tool.push(target, 'linux', files());
  expect(await tool.processed(build.id)).toMatchObject({
    state: 'failed',
    error: expect.stringContaining(error) as string,
  });
  await nothingIsStored();
});

/** A started build with its own owner, and a session for its patch. */
async function newSession() {
  const owner = await make.user();
  const game = await make.game({ owner });
  const tool = new UploadTool(baseUrl(), owner.key!);
  const { build } = await tool.post<{ build: { id: number } }>('/wharf/builds', {
    target: String(game.id),
    channel: 'linux',
  });
  const { location } = await tool.startFile(build.id, 'patch', Buffer.alloc(0));
  const [session] = await sql<{ id: string }>('SELECT id FROM upload_sessions WHERE game_id = $1', [game.id]);
  return { owner, game, tool, build, location, session: session!.id };
}

test('limits concurrently started builds', async () => {
  const owner = await make.user();
  const games = [await make.game({ owner }), await make.game({ owner })];
  await sql(
    `INSERT INTO builds (game_id, channel_name, state, expires_at)
     SELECT $1, 'older', 'started', now() + interval '1 day' FROM generate_series(3, $2::int)`,
    [games[0]!.id, MAX_UNFINISHED],
  );
  // The first response is compared with the description of the API, which takes a while to create.
  await owner.get('/profile');
  const started = await Promise.all(
    Array.from({ length: 4 }, (_, i) =>
      owner.post('/wharf/builds', { target: String(games[i % 2]!.id), channel: `channel-${i}` }),
    ),
  );
  const refused = started.filter(({ status }) => status !== 200);
  expect(refused).toEqual(Array(2).fill(failure(429, 'too many unfinished builds')));
});

test('limits the bytes of the events of a build', async () => {
  const { owner, build } = await newSession();
  const path = `/wharf/builds/${build.id}/events`;
  const report = (data: string) => owner.post(path, { type: 'log', message: 'm', data });
  for (let sent = 0; sent + 100_001 <= MEGABYTE; sent += 100_001)
    expect((await report('x'.repeat(100_000))).status).toBe(200);
  expect(await report('x'.repeat(100_000))).toEqual(failure(429, 'too many events of the build'));
  expect((await report('')).status).toBe(200);
  // A character has up to three bytes here.
  expect(await report('€'.repeat(20_000))).toEqual(failure(429, 'too many events of the build'));
});

test('only the newest failed builds of a game keep all their events', async () => {
  const { owner, game, build } = await newSession();
  const path = (id: number) => `/wharf/builds/${id}`;
  const report = (id: number) => owner.post(`${path(id)}/events`, { type: 'log', message: 'm' });
  const start = async () => {
    const { body } = await owner.post('/wharf/builds', { target: String(game.id), channel: 'linux' });
    const { id } = (body as { build: { id: number } }).build;
    expect((await report(id)).status).toBe(200);
    return id;
  };
  const fail = (id: number) => owner.post(`${path(id)}/failures`, { message: 'canceled' });
  const events = (id: number) =>
    sql<{ type: string }>('SELECT type FROM build_events WHERE build_id = $1 ORDER BY id', [id]);
  const [log, failed] = [{ type: 'log' }, { type: 'failed' }];
  expect((await report(build.id)).status).toBe(200);
  const builds: number[] = [];
  for (let i = 0; i < MAX_FAILED_WITH_EVENTS; i++) builds.push(await start());
  for (const id of builds) await fail(id);
  expect(await events(builds[0]!)).toEqual([log, failed]);
  expect((await report(builds[0]!)).status).toBe(200);
  // It is older than all that have failed, so only its reason is kept.
  await fail(build.id);
  expect(await events(build.id)).toEqual([failed]);
  expect(await report(build.id)).toEqual(failure(429, 'too many events of the build'));
  expect(await events(builds[0]!)).toEqual([log, failed, log]);
  await fail(await start());
  expect(await events(builds[0]!)).toEqual([failed]);
  expect(await events(builds[1]!)).toEqual([log, failed]);
});

describe('if a write of a push fails', () => {
  /** While `work` runs, the database rejects changes of the table. */
  async function rejecting(change: string, work: () => Promise<void>): Promise<void> {
    await sql(`
      CREATE FUNCTION reject() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no' USING ERRCODE = '40001'; END $$;
      CREATE TRIGGER reject BEFORE ${change} EXECUTE FUNCTION reject()`);
    try {
      await work();
    } finally {
      await sql('DROP FUNCTION reject CASCADE');
    }
  }
  const sessionsOf = (game: { id: number }) =>
    sql<{ expired: boolean }>(
      'SELECT expires_at < now() AS expired FROM upload_sessions WHERE game_id = $1',
      [game.id],
    );

  test('no session is left without its file', async () => {
    const { owner, game, build } = await newSession();
    await rejecting('INSERT ON build_files', async () => {
      const { status } = await owner.post(`/wharf/builds/${build.id}/files`, { type: 'signature' });
      expect(status).toBe(503);
    });
    expect(await sessionsOf(game)).toEqual([{ expired: false }]);
  });

  test('a build fails only together with its sessions', async () => {
    const { owner, game, build } = await newSession();
    const fail = () => owner.post(`/wharf/builds/${build.id}/failures`, { message: 'canceled' });
    await rejecting('UPDATE ON upload_sessions', async () => {
      expect((await fail()).status).toBe(503);
    });
    expect(await sql('SELECT state FROM builds WHERE id = $1', [build.id])).toEqual([{ state: 'started' }]);
    expect((await fail()).status).toBe(200);
    expect(await sessionsOf(game)).toEqual([]);
  });
});

test('a build that fails at the same time gets no session', async () => {
  const { owner, game, build, session } = await newSession();
  const failing = await holdLocks(`UPDATE builds SET state = 'failed' WHERE id = ${build.id}`);
  const file = owner.post(`/wharf/builds/${build.id}/files`, { type: 'signature' });
  await Promise.race([untilBlocked(), file]);
  await failing.commit();
  expect(await file).toEqual(failure(409, 'the build takes no more files'));
  expect(await sql('SELECT id FROM upload_sessions WHERE game_id = $1', [game.id])).toEqual([
    { id: session },
  ]);
});

test('limits concurrently started sessions', async () => {
  const { owner, game, build } = await newSession();
  const channels = ['a', 'b', 'c'].map((channel) =>
    owner.post('/wharf/builds', { target: String(game.id), channel }),
  );
  const builds = (await Promise.all(channels)).map(
    ({ body }) => (body as { build: { id: number } }).build.id,
  );
  await sql(
    `INSERT INTO upload_sessions (id, game_id, max_bytes, expires_at)
     SELECT gen_random_uuid(), $1, 1, now() + interval '1 day' FROM generate_series(3, $2::int - 1)`,
    [game.id, MAX_SESSIONS],
  );
  const start = (id: number) =>
    owner.post(`/wharf/builds/${id}/files`, {
      type: 'signature',
      sub_type: 'default',
      upload_type: 'deferred_resumable',
    });
  const started = await Promise.all([build.id, ...builds].map(start));
  const refused = started.filter(({ status }) => status !== 200);
  expect(refused).toEqual(Array(2).fill(failure(429, 'too many unfinished uploads')));
  expect(await sql('SELECT FROM upload_sessions WHERE game_id = $1', [game.id])).toHaveLength(MAX_SESSIONS);
});

test('requests for the same file at once get the same session', async () => {
  const { owner, game, build } = await newSession();
  const asked = { type: 'signature', sub_type: 'default', upload_type: 'deferred_resumable' };
  const files = await Promise.all(
    Array.from({ length: 4 }, () => owner.post(`/wharf/builds/${build.id}/files`, asked)),
  );
  for (const file of files) expect(file).toEqual(files[0]);
  expect(await sql('SELECT FROM upload_sessions WHERE game_id = $1', [game.id])).toHaveLength(2);
});

test('one large part ends where the quota of the owner does', async () => {
  const { game, tool, location } = await newSession();
  await sql(
    `INSERT INTO upload_sessions (id, game_id, max_bytes, received, expires_at)
     VALUES (gen_random_uuid(), $1, $2, $2, now() + interval '1 day')`,
    [game.id, 4 * MAX_BYTES - 1],
  );
  const content = Buffer.alloc(20 * MEGABYTE);
  const { status, headers } = await tool.put(location, `bytes 0-${content.length - 1}/*`, content);
  expect([status, headers.get('range')]).toEqual([308, `bytes=0-${16 * MEGABYTE - 1}`]);
  const next = await tool.put(
    location,
    `bytes ${16 * MEGABYTE}-${content.length - 1}/*`,
    content.subarray(16 * MEGABYTE),
  );
  expect([next.status, next.bytes.toString()]).toEqual([429, '{"errors":["too many unfinished uploads"]}']);
});

test('a file in thousands of small parts is not accepted', async () => {
  const { tool, location, session } = await newSession();
  await sql(
    `INSERT INTO upload_parts (session_id, file_key, start, size) SELECT $1, 'none/' || i, i, 1 FROM generate_series(0, 1000) i`,
    [session],
  );
  await sql('UPDATE upload_sessions SET received = 1001 WHERE id = $1', [session]);
  const { status, bytes } = await tool.put(location, 'bytes 1001-1001/*', Buffer.alloc(1));
  expect([status, bytes.toString()]).toEqual([429, '{"errors":["too many small parts"]}']);
});
