import { createHash, randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { openZip } from '../../src/wharf/zip/zip-archive';
import {
  joined,
  recordedTrees,
  recording,
  RECORDINGS,
  type TreeEntry,
  asSent,
  sortByPath,
} from '../support/pushed-builds';
import { runIf } from '../support/run-if';
import { baseUrl } from '../support/app';
import { useFiles } from '../support/files';
import { actors, make } from '../support/make';
import { until } from '../support/time';
import { UploadTool } from '../support/upload-tool';

const QUOTA = 1_000_000_000;
const { folder, environment } = useFiles({ FILES_QUOTA_BYTES: String(QUOTA) });

const isRecorded = existsSync(RECORDINGS);
const withRecordings = runIf(isRecorded, 'recordings of the upload tool are missing');

/** The files and links of a zip archive. */
async function treeIn(archive: Buffer): Promise<TreeEntry[]> {
  const path = join(folder, `${randomBytes(8).toString('hex')}.zip`);
  await writeFile(path, archive);
  const zip = await openZip(path, 1e9);
  const entries: TreeEntry[] = zip.container.links.map(({ path, target }) => ({ path, link: target }));
  for (const [number, { path, mode, size }] of zip.container.files.entries()) {
    const sha256 = createHash('sha256')
      .update(await joined(zip.read(number)))
      .digest('hex');
    entries.push({ path, mode: mode.toString(8), size, sha256 });
  }
  for (const { path } of zip.container.folders) entries.push({ path, dir: true });
  zip.close();
  return sortByPath(entries);
}

const newTool = async () => {
  const { owner } = await actors();
  const game = await make.game({ owner });
  return {
    owner,
    game,
    target: `${owner.username}/${game.slug}`,
    tool: new UploadTool(baseUrl(), owner.key!),
  };
};

withRecordings.describe('the recorded pushes', () => {
  test('a build beyond the quota of the owner fails and says so', async () => {
    const { tool, target, game } = await newTool();
    await make.build({ game, channel_name: 'other', file_key: 'other.zip', size: QUOTA });
    const [name] = Object.keys(recordedTrees());
    const files = { patch: recording(`${name}.1.patch`), signature: recording(`${name}.1.signature`) };
    const build = await tool.push(target, 'linux', files);
    expect(await tool.processed(build.id)).toMatchObject({
      state: 'failed',
      error: 'Not enough space: the files of the owner exceed the quota.',
    });
    // Files are deleted after the failure is visible.
    await until(async () => (await readdir(join(environment.FILES_DIR, 'parts'))).length === 0);
  });

  const cases = isRecorded ? Object.entries(recordedTrees()) : [];
  test.each(cases)('%s', async (name, trees) => {
    const { tool, target } = await newTool();
    let parent: number | undefined;
    for (const [i, tree] of trees.entries()) {
      const files = {
        patch: recording(`${name}.${i + 1}.patch`),
        signature: recording(`${name}.${i + 1}.signature`),
      };
      const build = await tool.push(target, name.toLowerCase(), files, { user_version: `1.${i}` });
      expect(build.parent_build?.id).toBe(parent);
      expect(await tool.processed(build.id)).toMatchObject({ state: 'completed', error: null });
      parent = build.id;
      const stored = await tool.files(build.id);
      expect(stored.map(({ type, state }) => `${type} ${state}`).toSorted()).toEqual([
        'archive uploaded',
        'patch uploaded',
        'signature uploaded',
      ]);
      const download = (type: string) => tool.download(build.id, stored.find((one) => one.type === type)!.id);
      expect(files.patch.equals(await download('patch'))).toBe(true);
      expect(files.signature.equals(await download('signature'))).toBe(true);
      const found = await treeIn(await download('archive'));
      const isFolder = (entry: TreeEntry) => 'dir' in entry;
      expect(found.filter((entry) => !isFolder(entry))).toEqual(
        sortByPath(tree.filter((entry) => !isFolder(entry)).map(asSent)),
      );
      const folders = found.filter(isFolder).map(({ path }) => path);
      expect(folders).toEqual(expect.arrayContaining(tree.filter(isFolder).map(({ path }) => path)));
    }
    // Parts are deleted after the build is visible.
    for (const emptied of [environment.BUILD_DIR, join(environment.FILES_DIR, 'parts')])
      await until(async () => (await readdir(emptied)).length === 0);
  });
});
