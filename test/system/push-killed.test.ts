import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { BuildJobs } from '../../src/push/build-jobs.service';
import { UploadSessions } from '../../src/uploads/sessions/upload-sessions.service';
import { openZip } from '../../src/wharf/zip/zip-archive';
import { type Actor } from '../support/actor';
import { theApp, theClock, useStore } from '../support/app';
import { holdLocks, untilBlocked } from '../support/locks';
import { make } from '../support/make';
import { filesToPush, joined, createTree } from '../support/pushed-builds';
import { type HeldRequest, S3Double } from '../support/s3';
import { ServiceProcess } from '../support/service-process';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { UploadTool } from '../support/upload-tool';

const folder = mkdtemp(join(tmpdir(), 'push-killed-'));
// The service of this process only checks what a killed one leaves behind.
const environment: Record<string, string> = { BUILD_WORKERS: '0' };
let bucket: S3Double;
let service: ServiceProcess;
beforeAll(async () => {
  bucket = await S3Double.open();
  Object.assign(environment, bucket.settings, { BUILD_DIR: join(await folder, 'builds') });
});
useStore(environment);
afterAll(async () => {
  await service.kill();
  await bucket.close();
  await rm(await folder, { recursive: true });
});

const BLOCK = 256 * 1024;
const content = randomBytes(3 * BLOCK);
const OLD = createTree({ 'game.bin': content, 'version.txt': Buffer.from('1.0') });
/** Incompressible, so that the patch has more than one part; half of it is in the parent. */
const NEW = createTree({
  'game.bin': Buffer.concat([content.subarray(0, BLOCK), randomBytes(2 * BLOCK)]),
  'version.txt': Buffer.from('1.1'),
});

type Files = Awaited<ReturnType<typeof filesToPush>>;

let owner: Actor;
let game: { id: number; slug: string };
let target: string;
let tool: UploadTool;
let files: Files;

/** Steps of a job at which it is held, by the request to the bucket. */
const STEPS: [name: string, method: 'GET' | 'PUT', key: RegExp, isDone: boolean][] = [
  ['reads the parts', 'GET', /^parts\//, false],
  ['reads the archive of the parent', 'GET', /archive\.zip$/, false],
  ['reads the signature of the parent', 'GET', /signature\.pws$/, false],
  ['uploads the archive', 'PUT', /archive\.zip$/, false],
  ['has uploaded the archive', 'PUT', /archive\.zip$/, true],
  ['has uploaded the signature', 'PUT', /signature\.pws$/, true],
  ['has uploaded the patch', 'PUT', /patch\.pwr$/, true],
];
/** Besides the steps: before the commit, after it, and three times. */
const HELD_JOBS = STEPS.length + 3;

const RECEIVING = 'while it receives a part';
const NOT_BEGUN = 'when all parts are stored, but its job has not begun';
const BEFORE_COMMIT = 'before its job commits';
const COMMITTED = 'after its job has committed, before the parts are deleted';
const THREE_TIMES = 'three times, and fails at the fourth attempt';
const whileItsJob = (step: string) => `while its job ${step}`;

/** The attempt that completes the build, by how it was interrupted. */
const ATTEMPTS = {
  [RECEIVING]: 1,
  [NOT_BEGUN]: 1,
  ...Object.fromEntries(STEPS.map(([step]) => [whileItsJob(step), 2])),
  [BEFORE_COMMIT]: 2,
  [COMMITTED]: 1,
};

/** The IDs of the builds, by how they were interrupted. */
const builds = new Map<string, number>();
const buildId = (name: string) => builds.get(name)!;
let parent: number;

const push = async () => (await tool.push(target, 'linux', files)).id;
const start = () => service.start({ BUILD_WORKERS: String(HELD_JOBS) });
const readState = async (id: number) =>
  (await sql<{ state: string }>('SELECT state FROM builds WHERE id = $1', [id]))[0]!.state;
/** As if the leases of the killed process had ended. */
const endLeases = () => sql('UPDATE build_jobs SET leased_until = now()');

const storedFor = (build_id: number, attempt: number) =>
  ['archive.zip', 'patch.pwr', 'signature.pws'].map(
    (name) => `${game.id}/builds/${build_id}.${attempt}/${name}`,
  );

/** Sends the first part of a patch, and the second one, which is stored, but not recorded. Returns how to send the rest. */
async function pushUntilPart(): Promise<() => Promise<void>> {
  const { build } = await tool.post<{ build: { id: number } }>('/wharf/builds', { target, channel: 'linux' });
  builds.set(RECEIVING, build.id);
  const signature = await tool.startFile(build.id, 'signature', files.signature);
  const patch = await tool.startFile(build.id, 'patch', files.patch);
  await tool.send(signature);
  const part = (start: number) =>
    tool.put(
      patch.location,
      `bytes ${start}-${start + BLOCK - 1}/*`,
      files.patch.subarray(start, start + BLOCK),
    );
  expect((await part(0)).status).toBe(308);
  const held = bucket.hold('PUT', /^parts\//, { isDone: true });
  const sent = part(BLOCK).catch(() => 'cut');
  await held.reached;
  return async () => {
    held.release();
    expect(await sent).toBe('cut');
    const { status, headers } = await tool.put(patch.location, 'bytes */*');
    expect([status, headers.get('range')]).toEqual([308, `bytes=0-${BLOCK - 1}`]);
    await tool.send(patch);
    for (const { id, content } of [signature, patch])
      await tool.post(`/wharf/builds/${build.id}/files/${id}`, { size: String(content.length) });
  };
}

/** One push for each interruption. They wait at the same time, so that the service is killed once for all of them. */
beforeAll(async () => {
  service = await ServiceProcess.open(environment);
  owner = await make.user({ developer: true });
  game = await make.game({ owner });
  target = `${owner.username}/${game.slug}`;
  tool = new UploadTool(service.url, owner.key!);
  tool.partBytes = BLOCK;
  await start();
  files = await filesToPush(OLD);
  parent = await push();
  expect(await tool.processed(parent)).toMatchObject({ state: 'completed' });
  await until(async () => (await sql('SELECT FROM upload_parts')).length === 0);
  files = await filesToPush(NEW, OLD);

  const holds: HeldRequest[] = [];
  const pushUntil = async (name: string, ...hold: Parameters<S3Double['hold']>) => {
    const held = bucket.hold(...hold);
    holds.push(held);
    builds.set(name, await push());
    await held.reached;
    return held;
  };
  for (const [step, method, key, isDone] of STEPS)
    await pushUntil(whileItsJob(step), method, key, { isDone });
  await pushUntil(COMMITTED, 'DELETE', /^parts\//);
  const committing = await pushUntil(BEFORE_COMMIT, 'PUT', /patch\.pwr$/, { isDone: true });
  const lock = await holdLocks(
    `SELECT FROM build_jobs WHERE build_id = ${buildId(BEFORE_COMMIT)} FOR UPDATE`,
  );
  committing.release();
  await untilBlocked();
  await pushUntil(THREE_TIMES, 'PUT', /patch\.pwr$/, { isDone: true });
  // All workers are busy.
  builds.set(NOT_BEGUN, await push());
  const sendRest = await pushUntilPart();
  await service.kill();
  await lock.release();
  for (const held of holds) held.release();

  expect(
    await sql('SELECT build_id, attempts FROM build_jobs WHERE build_id <> ALL ($1) OR attempts <> 1', [
      [...builds.values()],
    ]),
  ).toEqual([{ build_id: buildId(NOT_BEGUN), attempts: 0 }]);
  for (const [name, id] of builds)
    expect([name, await readState(id)]).toEqual([
      name,
      name === COMMITTED ? 'completed' : name === RECEIVING ? 'started' : 'processing',
    ]);

  for (const attempt of [2, 3]) {
    const held = bucket.hold('PUT', new RegExp(`/${buildId(THREE_TIMES)}\\.${attempt}/patch\\.pwr$`), {
      isDone: true,
    });
    await endLeases();
    await start();
    await held.reached;
    if (attempt === 2) {
      await sendRest();
      for (const name of Object.keys(ATTEMPTS)) await tool.processed(buildId(name));
    }
    await service.kill();
    held.release();
  }
  await endLeases();
  await theApp().get(BuildJobs).sweep();
}, 600_000);

describe('a push survives that the service is killed', () => {
  test.each(Object.entries(ATTEMPTS))('%s', async (name, attempt) => {
    const id = buildId(name);
    expect(await sql('SELECT state, error FROM builds WHERE id = $1', [id])).toEqual([
      { state: 'completed', error: null },
    ]);
    const path = join(await folder, 'archive.zip');
    await writeFile(path, bucket.objects.get(storedFor(id, attempt)[0]!)!);
    const zip = await openZip(path, 1e9);
    expect(zip.container.files.map(({ path }) => path)).toEqual(['game.bin', 'version.txt']);
    for (const [i, expected] of NEW.contents.entries())
      expect((await joined(zip.read(i))).equals(expected)).toBe(true);
    zip.close();
  });

  test(THREE_TIMES, async () => {
    expect(await sql('SELECT state, error FROM builds WHERE id = $1', [buildId(THREE_TIMES)])).toEqual([
      { state: 'failed', error: 'The build could not be processed. Push it again.' },
    ]);
  });

  test('nothing but the files of completed builds is left', async () => {
    const keys = Object.entries(ATTEMPTS).flatMap(([name, attempt]) => storedFor(buildId(name), attempt));
    const expected = [...storedFor(parent, 1), ...keys].toSorted();
    // What a killed process hasn't discarded is swept.
    theClock().advance(24 * 3600_000);
    await theApp().get(UploadSessions).sweep();
    await theApp().get(BuildJobs).sweep();
    expect([...bucket.objects.keys()].toSorted()).toEqual(expected);
    expect(await sql('SELECT FROM upload_parts')).toEqual([]);
    expect(await sql('SELECT FROM build_jobs')).toEqual([]);
    expect(await readdir(environment.BUILD_DIR!)).toEqual([]);
  });
});
