import { randomBytes } from 'node:crypto';
import {
  createReadStream,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { BuildPruning } from '../../src/uploads/build-pruning.service';
import { BuildSignatures } from '../../src/uploads/build-signatures.service';
import { DownloadCounts } from '../../src/uploads/download-counts.service';
import { FilesService } from '../../src/uploads/files.service';
import { FileStorage } from '../../src/uploads/storage/file-storage';
import { UnusedFiles } from '../../src/uploads/unused-files.service';
import { BLOCK_BYTES } from '../../src/wharf/pwr/container';
import { applyPatch } from '../../src/wharf/pwr/patch';
import { readSignature, writeSignature } from '../../src/wharf/pwr/signature';
import { openZip } from '../../src/wharf/zip/zip-archive';
import { holdLocks, untilBlocked } from '../support/locks';
import { chunked, createTree, encodePatch, joined, parentFrom, type Tree } from '../support/pushed-builds';
import { theApp, theClock, useStore } from '../support/app';
import { failure, send } from '../support/http';
import { make, useGame } from '../support/make';
import { sql } from '../support/sql';
import { createZip } from '../support/zip-archives';

const folder = mkdtempSync(join(tmpdir(), 'gamewharf-updates-'));
useStore({ FILES_DIR: join(folder, 'files'), BUILD_DIR: join(folder, 'builds') });
afterAll(() => rmSync(folder, { recursive: true }));

const MAX_BYTES = 10_000_000;
const { signal } = new AbortController();

interface Stored {
  id: number;
  file_key: string | null;
}
type Path = { upgrade_path: { builds: { id: number; files: object[] }[] } };

const store = useGame();
let number = 0;

const zipFiles = (tree: Record<string, Buffer>) =>
  createZip(Object.entries(tree).map(([name, content]) => ({ name, content })));

/** Stores a build as `files put` does. */
async function put(bytes: Buffer, filename = 'sun.zip', channel_name = 'windows'): Promise<Stored> {
  const file = { game_id: store.game.id, filename, size: bytes.length, channel_name, user_version: '1.0' };
  await theApp()
    .get(FilesService)
    .put(
      { ...file, content: chunked(bytes), traits: ['p_windows'], display_name: null },
      signal,
      () => undefined,
    );
  const [build] = await sql<Stored>('SELECT id, file_key FROM builds ORDER BY id DESC LIMIT 1');
  return build!;
}

const sign = () =>
  theApp().get(BuildSignatures).signNewest({ game_id: store.game.id, channel_name: 'windows' }, signal);

async function storeFile(build: Stored, type: 'patch' | 'signature', bytes: Buffer): Promise<string> {
  const key = `pushed/${number++}`;
  await theApp()
    .get(FileStorage)
    .put(key, bytes.length, Readable.from([bytes]), signal);
  await sql(
    `INSERT INTO build_files (id, build_id, type, state, size, file_key)
     VALUES (nextval('builds_id_seq'), $1, $2, 'uploaded', $3, $4)`,
    [build.id, type, bytes.length, key],
  );
  return key;
}

const hide = (build: Stored) => sql('UPDATE builds SET hidden = true WHERE id = $1', [build.id]);
const storedPath = (key: string | null) => join(folder, 'files', key!);

/** A build that was pushed after another one. */
async function pushed(parent: Stored | null, tree: Tree, parentTree: Tree): Promise<Stored> {
  const { container, contents } = tree;
  const build = await put(
    zipFiles(Object.fromEntries(container.files.map(({ path }, i) => [path, contents[i]!]))),
  );
  await sql('UPDATE builds SET parent_build_id = $2 WHERE id = $1', [build.id, parent?.id ?? null]);
  await storeFile(
    build,
    'signature',
    await joined(writeSignature(container, (file) => chunked(contents[file]!))),
  );
  const operations = contents.map((data, file) => {
    const old = parentTree.container.files.findIndex(
      ({ size }, i) => size > 0 && parentTree.contents[i]!.equals(data),
    );
    return old < 0
      ? [{ data }]
      : [{ file: old, block: 0, count: Math.ceil(container.files[file]!.size / BLOCK_BYTES) }];
  });
  await storeFile(build, 'patch', await encodePatch(parentTree.container, container, operations));
  return build;
}

const NOTHING = createTree({});
const kept = randomBytes(3 * BLOCK_BYTES + 7);
const OLD = createTree({
  'data/kept.bin': kept,
  'a.txt': Buffer.from('old'),
  'gone.txt': Buffer.from('gone'),
});
const NEW = createTree({
  'data/kept.bin': kept,
  'a.txt': Buffer.from('new text'),
  'b.txt': Buffer.from('added'),
});
const pushes = async () => {
  const first = await pushed(null, OLD, NOTHING);
  return [first, await pushed(first, NEW, OLD)] as const;
};

describe('files of a build', () => {
  test('are its archive, patch and signature', async () => {
    const [, build] = await pushes();
    const { body } = await store.stranger.get(`/builds/${build.id}`);
    const { files } = (body as { build: { files: object[] } }).build;
    const stored = { id: expect.any(Number) as number, sub_type: 'default', state: 'uploaded' };
    expect(files).toEqual([
      { ...stored, type: 'archive', id: build.id, size: expect.any(Number) as number },
      { ...stored, type: 'patch', size: expect.any(Number) as number },
      { ...stored, type: 'signature', size: expect.any(Number) as number },
    ]);
    expect(new Set(files.map((file) => (file as { id: number }).id)).size).toBe(3);
  });

  test('are left out until they are stored', async () => {
    const build = await put(zipFiles({ a: kept }));
    await sql(
      `INSERT INTO build_files (id, build_id, type, state, size)
       VALUES (nextval('builds_id_seq'), $1, 'patch', 'uploaded', 5)`,
      [build.id],
    );
    expect(await store.stranger.get(`/builds/${build.id}`)).toMatchObject({
      body: { build: { files: [{ type: 'archive' }] } },
    });
    expect(await store.stranger.get(`/builds/${build.id}/download/patch/default`)).toEqual(
      failure(404, 'invalid build file'),
    );
  });

  test.each(['optimized/default', 'patch/optimized', 'signature/rediff'])(
    '%s: is none of them',
    async (file) => {
      const [, build] = await pushes();
      expect(await store.stranger.get(`/builds/${build.id}/download/${file}`)).toEqual(
        failure(404, 'invalid build file'),
      );
    },
  );

  test('need the same access as the archive', async () => {
    const [, build] = await pushes();
    await sql('UPDATE games SET min_price = 500 WHERE id = $1', [store.game.id]);
    for (const type of ['archive', 'patch', 'signature']) {
      const path = `/builds/${build.id}/download/${type}/default`;
      expect(await store.stranger.get(path)).toEqual(failure(403, 'you must buy this game to download'));
      expect(await store.owner.get(path)).toMatchObject({ status: 302 });
    }
    await hide(build);
    await sql('UPDATE games SET min_price = 0 WHERE id = $1', [store.game.id]);
    for (const type of ['archive', 'patch', 'signature'])
      expect(await store.stranger.get(`/builds/${build.id}/download/${type}/default`)).toEqual(
        failure(404, 'invalid build'),
      );
  });

  test('count as a download, but for signatures', async () => {
    const [, build] = await pushes();
    const downloads = async () => {
      await theApp().get(DownloadCounts).flush();
      const [row] = await sql<{ downloads_count: number }>(
        'SELECT downloads_count FROM games WHERE id = $1',
        [store.game.id],
      );
      return row!.downloads_count;
    };
    await store.stranger.get(`/builds/${build.id}/download/signature/default`);
    expect(await downloads()).toBe(0);
    await store.stranger.get(`/builds/${build.id}/download/patch/default`);
    expect(await downloads()).toBe(1);
  });
});

describe('signatures of zip archives', () => {
  test('are computed for the newest build of a channel', async () => {
    const build = await put(zipFiles({ 'data/a.bin': kept }));
    expect(await sign()).toBeUndefined();
    const { location } = await redirect(
      `/builds/${build.id}/download/signature/default`,
      store.stranger.headers,
    );
    const signature = await readSignature(
      chunked(Buffer.from(await (await fetch(location)).arrayBuffer())),
      MAX_BYTES,
    );
    expect(signature.container).toMatchObject({ files: [{ path: 'data/a.bin', size: kept.length }] });
    expect(signature.matches(0, 3, kept.subarray(3 * BLOCK_BYTES))).toBe(true);
    // The second call finds nothing to do.
    expect(await sign()).toBeUndefined();
    expect(await sql('SELECT FROM build_files WHERE build_id = $1', [build.id])).toHaveLength(1);
  });

  test('are computed in BUILD_DIR, which is empty afterwards', async () => {
    rmSync(join(folder, 'builds'), { recursive: true, force: true });
    await put(zipFiles({ a: kept }));
    expect(await sign()).toBeUndefined();
    expect(readdirSync(join(folder, 'builds'))).toEqual([]);
  });

  test('are missing for archives that can’t be read, and for other formats', async () => {
    const build = await put(zipFiles({ '../a': kept }));
    expect(await sign()).toContain('isn’t a relative path');
    await put(Buffer.from('an installer'), 'setup.exe');
    expect(await sign()).toBeUndefined();
    expect(await sql('SELECT FROM build_files WHERE build_id >= $1', [build.id])).toEqual([]);
  });

  test('are found for all builds that have none', async () => {
    const builds = [await put(zipFiles({ a: kept })), await put(zipFiles({ a: kept }), 'b.ZIP', 'linux')];
    await put(Buffer.from('text'), 'readme.txt', 'other');
    await put(zipFiles({ a: kept }), 'c.zip', 'processing');
    await sql(`UPDATE builds SET state = 'processing' WHERE channel_name = 'processing'`);
    const found: number[] = [];
    for await (const { id } of theApp().get(BuildSignatures).unsigned(store.game.id)) found.push(id);
    expect(found).toEqual(builds.map(({ id }) => id));
  });

  test('are stored once if two processes compute them', async () => {
    const build = await put(zipFiles({ a: kept }));
    await Promise.all([sign(), sign()]);
    const files = await sql<Stored>('SELECT file_key FROM build_files WHERE build_id = $1', [build.id]);
    expect(files).toHaveLength(1);
    expect(existsSync(storedPath(files[0]!.file_key))).toBe(true);
  });

  test('are deleted with the archive that an import replaces', async () => {
    const build = await put(zipFiles({ a: kept }));
    await sign();
    const [signature] = await sql<Stored>('SELECT file_key FROM build_files WHERE build_id = $1', [build.id]);
    const keys = [build.file_key, signature!.file_key];
    await sql(`UPDATE builds SET user_version = '2' WHERE id = $1`, [build.id]);
    expect(await sql('SELECT FROM build_files WHERE build_id = $1', [build.id])).toHaveLength(1);
    await theApp().get(UnusedFiles).deleteDue();
    expect(keys.map((key) => existsSync(storedPath(key)))).toEqual([true, true]);
    await sql(`UPDATE builds SET file_key = 'other.zip' WHERE id = $1`, [build.id]);
    expect(await sql('SELECT FROM build_files WHERE build_id = $1', [build.id])).toEqual([]);
    await theApp().get(UnusedFiles).deleteDue();
    expect(keys.map((key) => existsSync(storedPath(key)))).toEqual([false, false]);
  });
});

describe('an upgrade path', () => {
  const upgrade = (from: Stored, to: Stored, actor = store.stranger) =>
    actor.get(`/builds/${from.id}/upgrade-paths/${to.id}`);
  const NONE = failure(404, 'invalid upgrade path');
  const idsIn = ({ body }: { body: unknown }) => (body as Path).upgrade_path.builds.map(({ id }) => id);

  test('lists the builds from the current one to the target, with their files', async () => {
    const [first, second] = await pushes();
    const third = await pushed(second, OLD, NEW);
    const response = await upgrade(first, third);
    expect(response.status).toBe(200);
    expect(idsIn(response)).toEqual([first.id, second.id, third.id]);
    const { builds } = (response.body as Path).upgrade_path;
    expect(builds[1]).toMatchObject({
      parent_build_id: first.id,
      version: 2,
      files: [{ type: 'archive' }, { type: 'patch' }, { type: 'signature' }],
    });
    expect(builds[1]).not.toHaveProperty('user');
    expect(idsIn(await upgrade(second, second))).toEqual([second.id]);
  });

  test('skips a build that was pushed at the same time', async () => {
    const [first, second] = await pushes();
    const third = await pushed(first, NEW, OLD);
    expect(idsIn(await upgrade(first, third))).toEqual([first.id, third.id]);
    expect(await upgrade(second, third)).toEqual(NONE);
  });

  test('doesn’t exist without a patch, backwards, or to a build that wasn’t pushed', async () => {
    const [first, second] = await pushes();
    const third = await put(zipFiles({ a: kept }));
    expect(await upgrade(second, first)).toEqual(NONE);
    expect(await upgrade(second, third)).toEqual(NONE);
    await sql(`DELETE FROM build_files WHERE build_id = $1 AND type = 'patch'`, [second.id]);
    expect(await upgrade(first, second)).toEqual(NONE);
  });

  test('has at most 50 builds', async () => {
    const builds = [await put(zipFiles({ a: kept }))];
    for (let i = 1; i <= 50; i++) {
      const build = await make.build({
        game: store.game,
        file_key: `${i}.zip`,
        size: 1,
        parent_build_id: builds.at(-1)!.id,
      });
      await sql(
        `INSERT INTO build_files (id, build_id, type, state, size, file_key)
         VALUES (nextval('builds_id_seq'), $1, 'patch', 'uploaded', 1, $2)`,
        [build.id, `${i}.pwr`],
      );
      builds.push(build as unknown as Stored);
    }
    expect(idsIn(await upgrade(builds[1]!, builds[50]!))).toHaveLength(50);
    expect(await upgrade(builds[0]!, builds[50]!)).toEqual(NONE);
  });

  test('exists for editors only if it passes through a hidden build', async () => {
    const [first, second] = await pushes();
    const third = await pushed(second, OLD, NEW);
    await hide(second);
    expect(await upgrade(first, third)).toEqual(NONE);
    expect(idsIn(await upgrade(first, third, store.owner))).toEqual([first.id, second.id, third.id]);
    expect(await upgrade(first, second)).toEqual(failure(404, 'invalid build'));
  });

  test('needs access to the game', async () => {
    const [first, second] = await pushes();
    await sql('UPDATE games SET min_price = 500 WHERE id = $1', [store.game.id]);
    expect(await upgrade(first, second)).toEqual(failure(403, 'you must buy this game to download'));
    const { id } = (await insertKey()) as { id: number };
    expect(
      await store.stranger.get(`/builds/${first.id}/upgrade-paths/${second.id}?download_key_id=${id}`),
    ).toMatchObject({
      status: 200,
    });
    await sql(`UPDATE games SET visibility = 'private' WHERE id = $1`, [store.game.id]);
    expect(await upgrade(first, second, store.developer)).toEqual(failure(404, 'invalid build'));
    const other = { id: 4_000_000, file_key: null };
    expect(await upgrade(first, other, store.owner)).toEqual(failure(404, 'invalid build'));
    expect(await store.owner.get(`/builds/${first.id}/upgrade-paths/x`)).toEqual(
      failure(400, 'target_build_id must be an integer'),
    );
  });
});

const insertKey = () => make.downloadKey({ game: store.game, user_id: store.stranger.id });

describe('files of old builds are deleted', () => {
  const prunable = async (keep: number) => {
    const found: number[] = [];
    for await (const { id, game: name } of theApp().get(BuildPruning).prunable(keep))
      if (name === `${store.owner.username}/${store.game.slug}`) found.push(id);
    return found;
  };
  const prune = async (build: Stored) => {
    for await (const one of theApp().get(BuildPruning).prunable(1))
      if (one.id === build.id) return theApp().get(BuildPruning).prune(one);
    return undefined;
  };

  test('are deleted from the storage, but not their records', async () => {
    const builds: Stored[] = [];
    for (let i = 0; i < 4; i++) {
      builds.push(await put(zipFiles({ a: kept })));
      await sign();
    }
    const other = await put(zipFiles({ a: kept }), 'a.zip', 'linux');
    expect(await prunable(2)).toEqual([builds[0]!.id, builds[1]!.id]);
    const [{ file_key: signature }] = (await sql<Stored>(
      'SELECT file_key FROM build_files WHERE build_id = $1',
      [builds[0]!.id],
    )) as [Stored];
    expect(await prune(builds[0]!)).toBe(true);
    for (const key of [builds[0]!.file_key, signature]) expect(existsSync(storedPath(key))).toBe(false);
    for (const { file_key } of [...builds.slice(1), other])
      expect(existsSync(storedPath(file_key))).toBe(true);
    expect(await store.stranger.get(`/builds/${builds[0]!.id}`)).toMatchObject({
      status: 200,
      body: { build: { version: 1, state: 'completed', files: [] } },
    });
    expect(await store.stranger.get(`/builds/${builds[0]!.id}/download/archive/default`)).toEqual(
      failure(404, 'invalid build file'),
    );
    expect(await prunable(2)).toEqual([builds[1]!.id]);
  });

  test('the head, the parent of the next push, hidden builds and parents of running pushes keep theirs', async () => {
    const head = await put(zipFiles({ a: kept }));
    await sign();
    const hidden = await put(zipFiles({ a: kept }));
    await hide(hidden);
    expect(await prunable(1)).toEqual([]);
    const newest = await put(Buffer.from('no zip archive'), 'a.exe');
    expect(await prunable(1)).toEqual([]);
    await storeFile(newest, 'signature', Buffer.from('a signature'));
    expect(await prunable(1)).toEqual([head.id]);
    const running = await make.build({ game: store.game, state: 'started', parent_build_id: head.id });
    expect(await prunable(1)).toEqual([]);
    await sql(`UPDATE builds SET state = 'failed' WHERE id = $1`, [running.id]);
    expect(await prunable(1)).toEqual([head.id]);
  });

  test('a push that began with them in the meantime keeps them', async () => {
    const first = await put(zipFiles({ a: kept }));
    await put(zipFiles({ a: kept }));
    await sign();
    const pruning = theApp().get(BuildPruning);
    for await (const build of pruning.prunable(1)) {
      if (build.id !== first.id) continue;
      await make.build({ game: store.game, state: 'started', parent_build_id: first.id });
      expect(await pruning.prune(build)).toBe(false);
    }
    expect(existsSync(storedPath(first.file_key))).toBe(true);
  });

  test('a push that is just beginning with them keeps them', async () => {
    const first = await put(zipFiles({ a: kept }));
    await put(zipFiles({ a: kept }));
    await sign();
    const push = await holdLocks(
      `INSERT INTO builds (game_id, channel_name, state, parent_build_id)
       VALUES (${store.game.id}, 'windows', 'started', ${first.id})`,
    );
    const pruned = prune(first);
    await untilBlocked();
    await push.commit();
    expect(await pruned).toBe(false);
    expect(existsSync(storedPath(first.file_key))).toBe(true);
  });

  test('a file that another record shares is kept', async () => {
    const [path, key] = [storedPath('imported.zip'), 'imported.zip'];
    writeFileSync(path, 'text');
    const [first, second] = [
      await make.build({ game: store.game, file_key: key, size: 4 }),
      await make.build({ game: store.game, file_key: key, size: 4 }),
    ];
    await put(zipFiles({ a: kept }));
    await sign();
    expect(await prune(first as unknown as Stored)).toBe(true);
    expect(existsSync(path)).toBe(true);
    expect(await prune(second as unknown as Stored)).toBe(true);
    expect(existsSync(path)).toBe(false);
  });
});

describe('files that no record uses are deleted later', () => {
  const unused = () => theApp().get(UnusedFiles);
  const storageFails = () =>
    jest.spyOn(theApp().get(FileStorage), 'delete').mockRejectedValue(new Error('unavailable'));

  test('a failure of the storage delays those of pruned builds', async () => {
    const first = await put(zipFiles({ a: kept }));
    await put(zipFiles({ a: kept }));
    await sign();
    const failing = storageFails();
    for await (const build of theApp().get(BuildPruning).prunable(1))
      if (build.id === first.id) expect(await theApp().get(BuildPruning).prune(build)).toBe(true);
    failing.mockRestore();
    expect(existsSync(storedPath(first.file_key))).toBe(true);
    // The deletion is retried later, so that it doesn't keep other files from being deleted.
    const other = await put(zipFiles({ a: kept }));
    await sql('DELETE FROM builds WHERE id = $1', [other.id]);
    await unused().deleteDue();
    expect([first, other].map(({ file_key }) => existsSync(storedPath(file_key)))).toEqual([true, false]);
    theClock().advance(10 * 60_000);
    await unused().deleteDue();
    expect(existsSync(storedPath(first.file_key))).toBe(false);
    expect(await sql('SELECT FROM unused_files WHERE due_at <= now()')).toEqual([]);
  });

  test('a process that is killed before it records what it has stored leaves none', async () => {
    const storage = theApp().get(FileStorage);
    await sql('DELETE FROM unused_files');
    const { file_key } = await put(zipFiles({ a: kept }));
    const [announced] = await sql<{ file_key: string }>('SELECT file_key FROM unused_files');
    expect(announced).toEqual({ file_key });
    // A stored file that no record names is deleted a day later.
    const lost = `${store.game.id}/00000000-0000-4000-8000-000000000000/lost.zip`;
    await unused().announce(lost);
    await storage.put(lost, 1, Readable.from([Buffer.from('x')]), signal);
    await unused().deleteDue();
    expect(existsSync(storedPath(lost))).toBe(true);
    theClock().advance(24 * 3600 * 1000);
    await unused().deleteDue();
    expect(existsSync(storedPath(lost))).toBe(false);
    expect(existsSync(storedPath(file_key))).toBe(true);
    expect(await sql('SELECT FROM unused_files')).toEqual([]);
  });

  test('another record of the game that uses them keeps them', async () => {
    const { file_key } = await put(zipFiles({ a: kept }));
    const { id } = await make.upload({ game: store.game, file_key, size: 1 });
    await sql('DELETE FROM builds WHERE file_key = $1', [file_key]);
    await unused().deleteDue();
    expect(existsSync(storedPath(file_key))).toBe(true);
    await sql('DELETE FROM uploads WHERE id = $1', [id]);
    await unused().deleteDue();
    expect(existsSync(storedPath(file_key))).toBe(false);
  });

  test('a record of another game keeps them, and keys that no game can have are ignored', async () => {
    const { id, file_key } = await put(zipFiles({ a: kept }));
    const elsewhere = await make.upload({ game: await make.game({ owner: store.owner }), file_key, size: 1 });
    const huge = `${'9'.repeat(30)}/builds/a.zip`;
    await sql('INSERT INTO unused_files (file_key) VALUES ($1)', [huge]);
    await sql('DELETE FROM builds WHERE id = $1', [id]);
    await unused().deleteDue();
    expect(existsSync(storedPath(file_key))).toBe(true);
    expect(await sql('SELECT FROM unused_files WHERE file_key = ANY ($1)', [[file_key, huge]])).toEqual([]);
    await sql('DELETE FROM uploads WHERE id = $1', [elsewhere.id]);
    await unused().deleteDue();
    expect(existsSync(storedPath(file_key))).toBe(false);
  });

  test('files whose keys an import chose are kept', async () => {
    writeFileSync(storedPath('chosen.zip'), 'text');
    const { id } = await make.build({ game: store.game, file_key: 'chosen.zip', size: 4 });
    await sql('DELETE FROM builds WHERE id = $1', [id]);
    await unused().deleteDue();
    expect(existsSync(storedPath('chosen.zip'))).toBe(true);
  });
});

/** What a request for a redirect returned. */
async function redirect(path: string, headers: Record<string, string>) {
  const { status, headers: received } = await send('GET', path, { headers });
  return { status, location: received.get('location')! };
}

describe('a launcher updates a game', () => {
  /** The requests of the launcher's client library, in the order of its source. */
  class Launcher {
    readonly requests: string[] = [];
    readonly folder = join(folder, `installed-${number++}`);
    private uuid = '';

    constructor(
      private readonly key: string,
      private readonly download_key_id: number,
    ) {}

    install({ container, contents }: Tree): void {
      for (const [i, { path }] of container.files.entries()) this.write(path, contents[i]!);
    }

    async update(from: Stored, to: Stored): Promise<void> {
      const form = `download_key_id=${this.download_key_id}`;
      const session = await this.ask('POST', `/games/${store.game.id}/download-sessions`, form);
      this.uuid = (session.body as { uuid: string }).uuid;
      const path = await this.ask('GET', `/builds/${from.id}/upgrade-paths/${to.id}?${form}`);
      if (path.status !== 200) return this.heal(to);
      for (const { id } of (path.body as Path).upgrade_path.builds.slice(1)) await this.patch(id);
    }

    private write(path: string, content: Buffer): void {
      mkdirSync(dirname(join(this.folder, path)), { recursive: true });
      writeFileSync(join(this.folder, path), content);
    }

    /** The launcher applies a patch without its signature. */
    private async patch(build: number): Promise<void> {
      const patch = await this.open(build, 'patch');
      const { container, contents } = NEW;
      const computed = await joined(writeSignature(container, (file) => chunked(contents[file]!)));
      const signature = await readSignature(chunked(computed), MAX_BYTES);
      const parent = this.tree(OLD);
      for await (const { entry, content } of applyPatch(chunked(patch), parentFrom(parent), signature))
        this.write(entry.path, await joined(content));
      for (const { path } of parent.container.files)
        if (!container.files.some((file) => file.path === path)) rmSync(join(this.folder, path));
    }

    private async heal(build: Stored): Promise<void> {
      const signature = await readSignature(chunked(await this.open(build.id, 'signature')), MAX_BYTES);
      const archive = join(folder, `archive-${number++}`);
      writeFileSync(archive, await this.open(build.id, 'archive'));
      const zip = await openZip(archive, MAX_BYTES);
      for (const [place, { path }] of signature.container.files.entries()) {
        const installed = join(this.folder, path);
        const old = existsSync(installed) ? await joined(createReadStream(installed)) : Buffer.alloc(0);
        if (signature.matches(place, 0, old.subarray(0, BLOCK_BYTES))) continue;
        const inZip = zip.container.files.findIndex((file) => file.path === path);
        this.write(path, await joined(zip.read(inZip)));
      }
      zip.close();
      for (const { path } of OLD.container.files)
        if (!signature.container.files.some((file) => file.path === path)) rmSync(join(this.folder, path));
    }

    private tree(like: Tree): Tree {
      return {
        ...like,
        contents: like.container.files.map(({ path }) => readFileSync(join(this.folder, path))),
      };
    }

    /** Sends no header, but the key in the query; then requests the signed URL, with the same range. */
    private async open(build: number, type: string): Promise<Buffer> {
      const query = `api_key=${this.key}&download_key_id=${this.download_key_id}&uuid=${this.uuid}`;
      const range = { range: 'bytes=0-' };
      const path = `/builds/${build}/download/${type}/default`;
      this.requests.push(`GET ${path}`);
      const { status, location } = await redirect(`${path}?${query}`, {
        ...range,
        'user-agent': 'butler/head',
      });
      expect(status).toBe(302);
      const response = await fetch(location, { headers: range });
      expect(response.status).toBe(206);
      return Buffer.from(await response.arrayBuffer());
    }

    private async ask(method: string, path: string, body?: string) {
      this.requests.push(`${method} ${path.split('?')[0]}`);
      return send(method, path, {
        headers: {
          'user-agent': 'butler/head',
          accept: 'application/vnd.itch.v2',
          'accept-language': '*',
          'accept-encoding': 'gzip',
          authorization: this.key,
          ...(body !== undefined && { 'content-type': 'application/x-www-form-urlencoded' }),
        },
        body,
      });
    }
  }

  const installed = async () => {
    await sql('UPDATE games SET min_price = 500 WHERE id = $1', [store.game.id]);
    const { id } = (await insertKey()) as { id: number };
    const launcher = new Launcher(store.stranger.key!, id);
    launcher.install(OLD);
    return launcher;
  };
  const expectNew = ({ folder: at }: Launcher) => {
    for (const [i, { path }] of NEW.container.files.entries())
      expect(readFileSync(join(at, path)).equals(NEW.contents[i]!)).toBe(true);
    expect(existsSync(join(at, 'gone.txt'))).toBe(false);
  };

  test('the patches of pushed builds lead to the newest build', async () => {
    const [first, second] = await pushes();
    const launcher = await installed();
    await launcher.update(first, second);
    expectNew(launcher);
    expect(launcher.requests).toEqual([
      `POST /games/${store.game.id}/download-sessions`,
      `GET /builds/${first.id}/upgrade-paths/${second.id}`,
      `GET /builds/${second.id}/download/patch/default`,
    ]);
  });

  test('a build stored as a zip archive needs only its signature and archive', async () => {
    const files = (tree: Tree) =>
      zipFiles(Object.fromEntries(tree.container.files.map(({ path }, i) => [path, tree.contents[i]!])));
    const first = await put(files(OLD));
    const second = await put(files(NEW));
    expect(await sign()).toBeUndefined();
    const launcher = await installed();
    await launcher.update(first, second);
    expectNew(launcher);
    expect(launcher.requests).toEqual([
      `POST /games/${store.game.id}/download-sessions`,
      `GET /builds/${first.id}/upgrade-paths/${second.id}`,
      `GET /builds/${second.id}/download/signature/default`,
      `GET /builds/${second.id}/download/archive/default`,
    ]);
    // A session counts as one download.
    await theApp().get(DownloadCounts).flush();
    expect(await sql('SELECT downloads_count FROM games WHERE id = $1', [store.game.id])).toEqual([
      { downloads_count: 1 },
    ]);
  });
});
