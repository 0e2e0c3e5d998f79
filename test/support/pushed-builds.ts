import { readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { BLOCK_BYTES, EMPTY_CONTAINER, encodeContainer, entriesIn } from '../../src/wharf/pwr/container';
import type { Container } from '../../src/wharf/pwr/entries';
import { type Bytes, encodeFile, PATCH_MAGIC } from '../../src/wharf/pwr/message-reader';
import { applyPatch, type Parent } from '../../src/wharf/pwr/patch';
import { delimited, encodeField } from '../../src/wharf/pwr/protobuf';
import { readSignature, writeSignature } from '../../src/wharf/pwr/signature';

/** Recordings of the real upload tool. They aren't part of the repository. */
export const RECORDINGS = process.env.PUSH_RECORDINGS ?? resolve(__dirname, '../../../shared/data/wharf');

export type TreeEntry = { path: string } & (
  { mode: string; size: number; sha256: string } | { link: string } | { dir: true }
);

export const sortByPath = (entries: TreeEntry[]) => entries.toSorted((a, b) => (a.path < b.path ? -1 : 1));

/** The upload tool makes files readable. */
export const asSent = (entry: TreeEntry) =>
  'mode' in entry ? { ...entry, mode: (parseInt(entry.mode, 8) | 0o644).toString(8) } : entry;

export const recordedTrees = (): Record<string, TreeEntry[][]> =>
  JSON.parse(readFileSync(`${RECORDINGS}/trees.json`, 'utf8')) as Record<string, TreeEntry[][]>;

export const recording = (name: string): Buffer => readFileSync(`${RECORDINGS}/builds/${name}`);

/** The bytes in chunks. */
export async function* chunked(bytes: Buffer, size = 10_000): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += size) yield await Promise.resolve(bytes.subarray(at, at + size));
}

export async function joined(bytes: Bytes): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of bytes) chunks.push(chunk);
  return Buffer.concat(chunks);
}

/** A build in memory. */
export interface Tree {
  container: Container;
  contents: Buffer[];
}

export const NO_TREE: Tree = { container: EMPTY_CONTAINER, contents: [] };

export const createTree = (files: Record<string, Buffer>): Tree => ({
  container: {
    files: Object.entries(files).map(([path, { length: size }]) => ({ path, mode: 0o644, size })),
    folders: [],
    links: [],
  },
  contents: Object.values(files),
});

/** What an upload tool sends: blocks that the parent has at the same place are taken from there. */
export async function filesToPush(tree: Tree, parent: Tree = NO_TREE) {
  const { container, contents } = tree;
  const operations = contents.map((content, i) => {
    const file = parent.container.files.findIndex(({ path }) => path === container.files[i]!.path);
    return Array.from({ length: Math.ceil(content.length / BLOCK_BYTES) }, (_, block): Operation => {
      const data = content.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
      const old = parent.contents[file]?.subarray(block * BLOCK_BYTES, (block + 1) * BLOCK_BYTES);
      return old?.equals(data) ? { file, block, count: 1 } : { data };
    });
  });
  return {
    patch: await encodePatch(parent.container, container, operations),
    signature: await joined(writeSignature(container, (file) => chunked(contents[file]!))),
  };
}

/** The upload tool sends this much data in one message. */
const MESSAGE_BYTES = 4 * 2 ** 20;

/** The files of the first push of one file, in messages as large as those of the upload tool. */
export async function fileToPush(path: string, content: Buffer) {
  const { container } = createTree({ [path]: content });
  const pieces = Array.from({ length: Math.ceil(content.length / MESSAGE_BYTES) }, (_, i) => ({
    data: content.subarray(i * MESSAGE_BYTES, (i + 1) * MESSAGE_BYTES),
  }));
  return {
    patch: await encodePatch(EMPTY_CONTAINER, container, [pieces]),
    signature: await joined(writeSignature(container, () => chunked(content, MESSAGE_BYTES))),
  };
}

export const parentFrom = ({ container, contents }: Tree): Parent => ({
  entries: () => entriesIn(container),
  sizes: container.files.map(({ size }) => size),
  read: (file, start, end) => chunked(contents[file]!.subarray(start, end)),
});

/** The build that a patch creates from its parent. */
export async function rebuild(
  patch: Buffer,
  signature: Buffer,
  parent: Tree,
  maxBytes = 100_000_000,
): Promise<Tree> {
  const read = await readSignature(chunked(signature), maxBytes);
  const contents: Buffer[] = [];
  for await (const { content } of applyPatch(chunked(patch), parentFrom(parent), read))
    contents.push(await joined(content));
  return { container: read.container, contents };
}

export type Operation = { data: Buffer } | { file: number; block: number; count: number };

/** A patch as the upload tool writes it; `operations` by file. */
export const encodePatch = (parent: Container, container: Container, operations: Operation[][]) =>
  encodeMessages([
    encodeContainer(parent),
    encodeContainer(container),
    ...operations.flatMap((all, file) => [
      encodeField(16, file),
      ...all.map(encodeOperation),
      encodeField(1, 2049),
    ]),
  ]);

export const encodeMessages = (messages: Buffer[], magic = PATCH_MAGIC): Promise<Buffer> =>
  joined(encodeFile(magic, chunked(Buffer.concat(messages.map((message) => delimited(message))))));

export const encodeOperation = (operation: Operation): Buffer =>
  'data' in operation
    ? Buffer.concat([encodeField(1, 1), encodeField(5, operation.data)])
    : Buffer.concat([
        encodeField(2, operation.file),
        encodeField(3, operation.block),
        encodeField(4, operation.count),
      ]);
