import { hash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { brotliDecompressSync } from 'node:zlib';
import { BuildFileError } from '../../src/wharf/pwr/build-file-error';
import { writeSignature } from '../../src/wharf/pwr/signature';
import {
  chunked,
  joined,
  NO_TREE,
  rebuild,
  recordedTrees,
  recording,
  RECORDINGS,
  type Tree,
  type TreeEntry,
  asSent,
  sortByPath,
} from '../support/pushed-builds';
import { runIf } from '../support/run-if';

const isRecorded = existsSync(RECORDINGS);
const withRecordings = runIf(isRecorded, 'recordings of the upload tool are missing');
const recordings = isRecorded
  ? Object.entries(recordedTrees()).flatMap(([name, trees]) =>
      trees.map((expected, i) => ({ name, push: i + 1, expected })),
    )
  : [{ name: '', push: 0, expected: [] }];

const trees = new Map<string, Promise<Tree>>();

/** A recorded build, from its parents. */
const rebuildTree = (name: string, push: number): Promise<Tree> => {
  if (push === 0) return Promise.resolve(NO_TREE);
  const key = `${name}.${push}`;
  const tree =
    trees.get(key) ??
    rebuildTree(name, push - 1).then((parent) =>
      rebuild(recording(`${key}.patch`), recording(`${key}.signature`), parent),
    );
  trees.set(key, tree);
  return tree;
};

const described = ({ container, contents }: Tree): TreeEntry[] => [
  ...container.files.map(({ path, mode, size }, i) => ({
    path,
    mode: mode.toString(8),
    size,
    sha256: hash('sha256', contents[i]!),
  })),
  ...container.links.map(({ path, target }) => ({ path, link: target })),
];

const isEmptyFolder = (entry: TreeEntry) => 'dir' in entry;

withRecordings.describe('pushes of the upload tool', () => {
  test.each(recordings)('$name, push $push: are rebuilt exactly', async ({ name, push, expected }) => {
    const tree = await rebuildTree(name, push);
    expect(sortByPath(described(tree))).toEqual(
      sortByPath(expected.filter((entry) => !isEmptyFolder(entry)).map(asSent)),
    );
    const folders = tree.container.folders.map(({ path }) => path);
    expect(folders).toEqual(expect.arrayContaining(expected.filter(isEmptyFolder).map(({ path }) => path)));
  });

  test.each(recordings)('$name, push $push: have the signature that is computed', async ({ name, push }) => {
    const { container, contents } = await rebuildTree(name, push);
    const written = await joined(writeSignature(container, (file) => chunked(contents[file]!)));
    const recorded = recording(`${name}.${push}.signature`);
    const start = 5 + recorded[4]!;
    expect(written.subarray(0, start)).toEqual(recorded.subarray(0, start));
    expect(brotliDecompressSync(written.subarray(start))).toEqual(
      brotliDecompressSync(recorded.subarray(start)),
    );
  });

  /** Every bit of a small file, and some of a large one. */
  function* flipped(file: Buffer): Generator<{ bit: number; bytes: Buffer }> {
    const step = Math.max(1, Math.floor((file.length * 8) / 24));
    for (let bit = 0; bit < file.length * 8; bit += step) {
      const bytes = Buffer.from(file);
      bytes[bit >> 3]! ^= 1 << (bit & 7);
      yield { bit, bytes };
    }
  }

  test.each(recordings)(
    '$name, push $push: with one other bit are rejected, or are the same build',
    async ({ name, push }) => {
      const parent = await rebuildTree(name, push - 1);
      const tree = await rebuildTree(name, push);
      const [patch, signature] = ['patch', 'signature'].map((type) =>
        recording(`${name}.${push}.${type}`),
      ) as [Buffer, Buffer];
      const accepted: string[] = [];
      const attempt = async (place: string, ...files: [Buffer, Buffer]) => {
        try {
          expect(await rebuild(...files, parent)).toEqual(tree);
          accepted.push(place);
        } catch (error) {
          if (!(error instanceof BuildFileError)) throw error;
        }
      };
      for (const { bit, bytes } of flipped(patch)) await attempt(`patch ${bit}`, bytes, signature);
      for (const { bit, bytes } of flipped(signature)) await attempt(`signature ${bit}`, patch, bytes);
      // Bits of the header's compression quality, and of Brotli, that change no byte of the messages.
      expect(accepted.length).toBeLessThan(20);
    },
  );

  test.each(recordings)('$name, push $push: that are cut are rejected', async ({ name, push }) => {
    const parent = await rebuildTree(name, push - 1);
    const [patch, signature] = ['patch', 'signature'].map((type) => recording(`${name}.${push}.${type}`)) as [
      Buffer,
      Buffer,
    ];
    for (const bytes of [0, 3, 10, 20, patch.length - 1].filter((bytes) => bytes < patch.length))
      await expect(rebuild(patch.subarray(0, bytes), signature, parent)).rejects.toThrow(BuildFileError);
    for (const bytes of [0, 3, 10, 20, signature.length - 1])
      await expect(rebuild(patch, signature.subarray(0, bytes), parent)).rejects.toThrow(BuildFileError);
    for (const more of [Buffer.from([0]), Buffer.from('more')]) {
      await expect(rebuild(Buffer.concat([patch, more]), signature, parent)).rejects.toThrow(
        'bytes after its end',
      );
      await expect(rebuild(patch, Buffer.concat([signature, more]), parent)).rejects.toThrow(
        'bytes after its end',
      );
    }
  });
});
