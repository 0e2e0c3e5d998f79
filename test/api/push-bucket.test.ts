import { randomBytes } from 'node:crypto';
import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openZip } from '../../src/wharf/zip/zip-archive';
import { filesToPush, joined, rebuild, type Tree, createTree } from '../support/pushed-builds';
import { S3Double } from '../support/s3';
import { type Actor } from '../support/actor';
import { baseUrl, theClock, useStore } from '../support/app';
import { send } from '../support/http';
import { make, useGame } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { UploadTool } from '../support/upload-tool';

const folder = mkdtemp(join(tmpdir(), 'push-bucket-'));
const environment: Record<string, string> = {};
let bucket: S3Double;
beforeAll(async () => {
  bucket = await S3Double.open(theClock());
  Object.assign(environment, bucket.settings, { BUILD_DIR: join(await folder, 'builds') });
});
useStore(environment);
afterAll(async () => {
  await bucket.close();
  await rm(await folder, { recursive: true });
});

const store = useGame();
let tool: UploadTool;
let target: string;
beforeEach(async () => {
  tool = new UploadTool(baseUrl(), store.owner.key!);
  target = `${store.owner.username}/${store.game.slug}`;
  bucket.objects.clear();
});

const kept = randomBytes(300_000);
const OLD = createTree({ 'game.bin': kept, 'version.txt': Buffer.from('1.0') });
const NEW = createTree({
  'game.bin': Buffer.concat([kept.subarray(0, 131_072), randomBytes(100_000), kept.subarray(231_072)]),
  'version.txt': Buffer.from('1.1'),
});
const text = (content: string) => createTree({ 'a.txt': Buffer.from(content) });

async function treeIn(archive: Buffer): Promise<Tree> {
  const path = join(await folder, randomBytes(8).toString('hex'));
  await writeFile(path, archive);
  const zip = await openZip(path, 1e9);
  const contents: Buffer[] = [];
  for (const i of zip.container.files.keys()) contents.push(await joined(zip.read(i)));
  zip.close();
  return { container: zip.container, contents };
}

const storedFor = (build_id: number, attempt = 1) =>
  ['archive.zip', 'patch.pwr', 'signature.pws'].map(
    (name) => `${store.game.id}/builds/${build_id}.${attempt}/${name}`,
  );

/** Waits for exactly these objects, because parts are deleted after the build is visible. */
const untilStored = (keys: string[]) =>
  until(() => JSON.stringify([...bucket.objects.keys()].toSorted()) === JSON.stringify(keys.toSorted()));

/** Waits until no job is running. */
const untilEmpty = () => until(async () => (await readdir(environment.BUILD_DIR!)).length === 0);

/** Downloads what a launcher would, from the storage itself. */
async function download(player: Actor, build_id: number, type: string): Promise<Buffer> {
  const path = `/builds/${build_id}/download/${type}/default`;
  const { status, headers } = await send('GET', path, { headers: player.headers });
  expect(status).toBe(302);
  const url = headers.get('location')!;
  expect(new URL(url).origin).toBe(environment.FILES_S3_ENDPOINT);
  const response = await fetch(url);
  expect(response.status).toBe(200);
  return Buffer.from(await response.arrayBuffer());
}

test('builds are pushed into a bucket, and launchers update from there', async () => {
  tool.partBytes = 256 * 1024;
  const first = await tool.push(target, 'linux', await filesToPush(OLD));
  expect(await tool.processed(first.id)).toMatchObject({ state: 'completed', error: null });
  const second = await tool.push(target, 'linux', await filesToPush(NEW, OLD));
  expect(second.parent_build).toEqual({ id: first.id });
  expect(await tool.processed(second.id)).toMatchObject({ state: 'completed', error: null });
  await untilStored([...storedFor(first.id), ...storedFor(second.id)]);
  await untilEmpty();

  const player = await make.user();
  await make.downloadKey({ game: store.game, user_id: player.id });
  const { body } = await player.get(`/builds/${first.id}/upgrade-paths/${second.id}`);
  expect((body as { upgrade_path: { builds: { id: number }[] } }).upgrade_path.builds).toMatchObject([
    { id: first.id },
    { id: second.id },
  ]);
  const [patch, signature, archive] = [
    await download(player, second.id, 'patch'),
    await download(player, second.id, 'signature'),
    await download(player, second.id, 'archive'),
  ];
  // Most of the game is in the parent.
  expect(patch.length).toBeLessThan(kept.length);
  expect(await rebuild(patch, signature, OLD)).toEqual(NEW);
  expect((await treeIn(archive)).contents).toEqual(NEW.contents);
});

test('butler fetch requests the channel, the files of its head, and the archive', async () => {
  const { id } = await tool.push(target, 'linux', await filesToPush(OLD));
  await tool.processed(id);
  tool.requests.splice(0);
  expect((await treeIn(await tool.fetch(target, 'linux'))).contents).toEqual(OLD.contents);
  const [archive, object] = ['GET /wharf/builds/N/files/N/download 302', /^GET \/games\/.* 206$/];
  expect(tool.requests).toEqual([
    'GET /wharf/channels/linux 200',
    'GET /wharf/builds/N/files 200',
    ...[1, 2, 3].flatMap(() => [archive, expect.stringMatching(object) as string]),
  ]);
});

/** The tool never gets the first response to a part that isn't the last one, although the service has stored it. */
class DisconnectedTool extends UploadTool {
  readonly lost = new Set<string>();

  override async put(location: string, range: string, body?: Buffer) {
    const response = await super.put(location, range, body);
    const part = `${location} ${range}`;
    if (body === undefined || !range.endsWith('/*') || this.lost.has(part)) return response;
    this.lost.add(part);
    throw new TypeError('fetch failed');
  }
}

test('a part whose response is lost is sent again', async () => {
  const disconnected = new DisconnectedTool(baseUrl(), store.owner.key!);
  disconnected.partBytes = 256 * 1024;
  const { id } = await disconnected.push(target, 'linux', await filesToPush(OLD));
  // The first of the patch's two parts.
  expect(disconnected.lost.size).toBe(1);
  expect(await tool.processed(id)).toMatchObject({ state: 'completed', error: null });
});

describe('a process whose job another one has taken over', () => {
  /** Another process has the job while this one reads the first part of the signature. */
  async function takenOver(files: { patch: Buffer; signature: Buffer }) {
    const held = bucket.hold('GET', /^parts\//);
    const { id } = await tool.push(target, 'linux', files);
    await held.reached;
    const [job] = await sql(
      `UPDATE build_jobs SET lease = gen_random_uuid(), attempts = 2, leased_until = now() + interval '1 hour'
       WHERE build_id = $1 RETURNING *`,
      [id],
    );
    const parts = [...bucket.objects.keys()];
    expect(parts).toHaveLength(2);
    return {
      id,
      untilEnded: async () => {
        held.release();
        await untilEmpty();
      },
      expectUnchanged: async () => {
        expect(await sql('SELECT * FROM build_jobs WHERE build_id = $1', [id])).toEqual([job]);
        expect(await tool.get(`/wharf/builds/${id}`)).toMatchObject({
          build: { state: 'processing', error: null },
        });
        expect(await tool.get(`/wharf/builds/${id}/events`)).toEqual({ events: [] });
        expect([...bucket.objects.keys()]).toEqual(parts);
      },
    };
  }

  afterEach(() => sql('DELETE FROM build_jobs'));

  test('doesn’t fail the build', async () => {
    const { patch } = await filesToPush(text('1'));
    const { untilEnded, expectUnchanged } = await takenOver({ patch, signature: Buffer.from('none') });
    await untilEnded();
    await expectUnchanged();
  });

  test('doesn’t complete the build, and deletes what it stored', async () => {
    const { untilEnded, expectUnchanged } = await takenOver(await filesToPush(text('1')));
    await untilEnded();
    await expectUnchanged();
  });

  test('deletes what it stored before it failed', async () => {
    const { untilEnded, expectUnchanged } = await takenOver(await filesToPush(text('1')));
    // The archive is already stored.
    const second = bucket.hold('PUT', /signature\.pws$/);
    const ended = untilEnded();
    await second.reached;
    bucket.cutAfter = 1;
    second.release();
    await ended;
    bucket.cutAfter = Infinity;
    await expectUnchanged();
  });
});
