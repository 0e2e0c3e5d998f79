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
import { filesToPush, joined, treeOf } from '../support/pushed-builds';
import { S3Double } from '../support/s3';
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
beforeAll(async () => {
  service = await ServiceProcess.open(environment);
});
afterEach(() => service.kill());
afterAll(async () => {
  await bucket.close();
  await rm(await folder, { recursive: true });
});

const BLOCK = 256 * 1024;
const content = randomBytes(3 * BLOCK);
const OLD = treeOf({ 'game.bin': content, 'version.txt': Buffer.from('1.0') });
/** Incompressible, so that the patch has more than one part; half of it is in the parent. */
const NEW = treeOf({
  'game.bin': Buffer.concat([content.subarray(0, BLOCK), randomBytes(2 * BLOCK)]),
  'version.txt': Buffer.from('1.1'),
});

let owner: Actor;
let game: { id: number; slug: string };
let tool: UploadTool;
beforeEach(async () => {
  owner = await make.user({ developer: true });
  game = await make.game({ owner });
  tool = new UploadTool(service.url, owner.key!);
  tool.partBytes = BLOCK;
  bucket.objects.clear();
});

const push = (files: { patch: Buffer; signature: Buffer }) =>
  tool.push(`${owner.username}/${game.slug}`, 'linux', files);

/** Starts the service, and pushes the parent. */
async function withParent(): Promise<number> {
  await service.start({ BUILD_WORKERS: '1' });
  const { id } = await push(await filesToPush(OLD));
  expect(await tool.processed(id)).toMatchObject({ state: 'completed' });
  await until(async () => (await sql('SELECT FROM upload_parts')).length === 0);
  return id;
}

/** Ends the lease of the killed process, so that no test waits for it. */
const endLease = () => sql('UPDATE build_jobs SET leased_until = now()');

const storedFor = (build_id: number, attempt: number) =>
  ['archive.zip', 'patch.pwr', 'signature.pws'].map(
    (name) => `${game.id}/builds/${build_id}.${attempt}/${name}`,
  );

/** The build is completed by the attempt, has the files that were pushed, and nothing else is left. */
async function expectCompleted(build_id: number, attempt: number, parent?: number): Promise<void> {
  expect(await tool.processed(build_id)).toMatchObject({ state: 'completed', error: null });
  const keys = [...storedFor(build_id, attempt), ...(parent === undefined ? [] : storedFor(parent, 1))];
  // The sessions of a push are discarded after its build is visible; what a killed process hasn't discarded is swept.
  theClock().advance(24 * 3600_000);
  await until(async () => {
    await theApp().get(UploadSessions).sweep();
    return JSON.stringify([...bucket.objects.keys()].toSorted()) === JSON.stringify(keys.toSorted());
  });
  expect(await sql('SELECT FROM upload_parts')).toEqual([]);
  expect(await sql('SELECT FROM build_jobs')).toEqual([]);
  await until(async () => {
    await theApp().get(BuildJobs).sweep();
    return (await readdir(environment.BUILD_DIR!).catch(() => [])).length === 0;
  });
  const path = join(await folder, 'archive.zip');
  await writeFile(path, bucket.objects.get(keys[0]!)!);
  const zip = await openZip(path, 1e9);
  expect(zip.container.files.map(({ path }) => path)).toEqual(['game.bin', 'version.txt']);
  for (const [i, expected] of NEW.contents.entries())
    expect((await joined(zip.read(i))).equals(expected)).toBe(true);
  zip.close();
}

describe('a push survives that the service is killed', () => {
  test('while it receives a part', async () => {
    const parent = await withParent();
    const target = `${owner.username}/${game.slug}`;
    const { build } = await tool.post<{ build: { id: number } }>('/wharf/builds', {
      target,
      channel: 'linux',
    });
    const files = await filesToPush(NEW, OLD);
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
    // Stored, but not recorded.
    const held = bucket.hold('PUT', /^parts\//, { isDone: true });
    const sent = part(BLOCK).catch(() => 'cut');
    await held.reached;
    await service.kill();
    held.release();
    expect(await sent).toBe('cut');
    await service.start({ BUILD_WORKERS: '1' });
    const { status, headers } = await tool.put(patch.location, 'bytes */*');
    expect([status, headers.get('range')]).toEqual([308, `bytes=0-${BLOCK - 1}`]);
    await tool.send(patch);
    for (const { id, content } of [signature, patch])
      await tool.post(`/wharf/builds/${build.id}/files/${id}`, { size: String(content.length) });
    await expectCompleted(build.id, 1, parent);
  });

  test('when all parts are stored, but its job has not begun', async () => {
    await service.start({ BUILD_WORKERS: '0' });
    const { id } = await push(await filesToPush(NEW));
    await service.kill();
    expect(await sql('SELECT attempts FROM build_jobs')).toEqual([{ attempts: 0 }]);
    await service.start({ BUILD_WORKERS: '1' });
    await expectCompleted(id, 1);
  });

  test.each<[string, 'GET' | 'PUT', RegExp, boolean]>([
    ['reads the parts', 'GET', /^parts\//, false],
    ['reads the archive of the parent', 'GET', /archive\.zip$/, false],
    ['reads the signature of the parent', 'GET', /signature\.pws$/, false],
    ['uploads the archive', 'PUT', /archive\.zip$/, false],
    ['has uploaded the archive', 'PUT', /archive\.zip$/, true],
    ['has uploaded the signature', 'PUT', /signature\.pws$/, true],
    ['has uploaded the patch', 'PUT', /patch\.pwr$/, true],
  ])('while its job %s', async (_, method, key, isDone) => {
    const parent = await withParent();
    const files = await filesToPush(NEW, OLD);
    const held = bucket.hold(method, key, { isDone });
    const { id } = await push(files);
    await held.reached;
    await service.kill();
    held.release();
    expect(await sql('SELECT state FROM builds WHERE id = $1', [id])).toEqual([{ state: 'processing' }]);
    await endLease();
    await service.start({ BUILD_WORKERS: '1' });
    await expectCompleted(id, 2, parent);
  });

  test('before its job commits', async () => {
    const parent = await withParent();
    const held = bucket.hold('PUT', /patch\.pwr$/, { isDone: true });
    const { id } = await push(await filesToPush(NEW, OLD));
    await held.reached;
    const lock = await holdLocks('SELECT FROM build_jobs FOR UPDATE');
    held.release();
    await untilBlocked();
    await service.kill();
    await lock.release();
    expect(await sql('SELECT state FROM builds WHERE id = $1', [id])).toEqual([{ state: 'processing' }]);
    await endLease();
    await service.start({ BUILD_WORKERS: '1' });
    await expectCompleted(id, 2, parent);
  });

  test('after its job has committed, before the parts are deleted', async () => {
    const parent = await withParent();
    const held = bucket.hold('DELETE', /^parts\//);
    const { id } = await push(await filesToPush(NEW, OLD));
    await held.reached;
    await service.kill();
    held.release();
    expect(await sql('SELECT state FROM builds WHERE id = $1', [id])).toEqual([{ state: 'completed' }]);
    await service.start({ BUILD_WORKERS: '1' });
    await expectCompleted(id, 1, parent);
  });

  test('three times, and fails at the fourth attempt', async () => {
    await service.start({ BUILD_WORKERS: '0' });
    const { id } = await push(await filesToPush(NEW));
    for (let attempt = 1; attempt <= 3; attempt++) {
      await service.kill();
      const held = bucket.hold('PUT', /patch\.pwr$/, { isDone: true });
      await service.start({ BUILD_WORKERS: '1' });
      await held.reached;
      await service.kill();
      held.release();
      await endLease();
    }
    await theApp().get(BuildJobs).sweep();
    await service.start({ BUILD_WORKERS: '1' });
    expect(await tool.processed(id)).toMatchObject({
      state: 'failed',
      error: 'The build could not be processed. Push it again.',
    });
    expect([...bucket.objects.keys()]).toEqual([]);
  });
});
