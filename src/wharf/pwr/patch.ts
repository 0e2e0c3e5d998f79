import { BuildFileError } from './build-file-error';
import {
  BLOCK_BYTES,
  blockCount,
  entriesIn,
  hasEntries,
  type ListedEntry,
  MAX_CONTAINER_BYTES,
} from './container';
import type { Container, FileEntry } from './entries';
import { type Bytes, type MessageReader, openMessages, PATCH_MAGIC, trailing } from './message-reader';
import { Message } from './protobuf';
import { splitBlocks, type Signature } from './signature';

/** The upload tool sends at most 4 MiB and a block of new bytes at once. */
const MAX_OPERATION_BYTES = 4 * 1024 * 1024 + 2 * BLOCK_BYTES;
const MAX_SYNC_HEADER_BYTES = 64;
/** The limit for one file. The upload tool writes one for an empty file, and one after an unchanged file. */
const MAX_EMPTY_OPERATIONS = 2;

const BLOCK_RANGE = 0;
const DATA = 1;
const END = 2049;
const BSDIFF = 1;

/** The build that a patch changes. */
export interface Parent {
  entries(): Iterable<ListedEntry>;
  /** The sizes of the build's files. */
  sizes: ArrayLike<number>;
  /** Reads a part of a file, by its number among the files. */
  read(file: number, start: number, end: number): Bytes;
}

/** A file of the new build. Its content must be read before the next file. Each block has the hash of the signature. */
export interface NewFile {
  entry: FileEntry;
  content: AsyncGenerator<Buffer>;
}

/**
 * Applies a patch. Yields the files of the signature in their order; folders and links are those of its container.
 */
export async function* applyPatch(
  file: Bytes,
  parent: Parent,
  signature: Signature,
): AsyncGenerator<NewFile> {
  const messages = await openMessages(file, PATCH_MAGIC, 'patch');
  try {
    await requireEntries(messages, parent.entries(), 'The patch is for another parent build.');
    await requireEntries(
      messages,
      entriesIn(signature.container),
      'The patch and the signature are of different builds.',
    );
    for (const [number, entry] of signature.container.files.entries()) {
      const content = checkedContent(messages, parent, signature, number);
      yield { entry, content };
      if (!(await content.next()).done) throw new Error(`${entry.path} wasn't read to its end.`);
    }
    if (await messages.next(MAX_OPERATION_BYTES)) throw trailing();
  } finally {
    await messages.close();
  }
}

async function requireEntries(
  messages: MessageReader,
  expected: Iterable<ListedEntry>,
  otherwise: string,
): Promise<void> {
  if (!hasEntries(await messages.required(MAX_CONTAINER_BYTES), expected))
    throw new BuildFileError(otherwise);
}

async function* checkedContent(
  messages: MessageReader,
  parent: Parent,
  signature: Signature,
  file: number,
): AsyncGenerator<Buffer> {
  const { path } = signature.container.files[file]!;
  let block = 0;
  for await (const bytes of splitBlocks(newContent(messages, parent, signature.container, file))) {
    if (!signature.matches(file, block, bytes))
      throw new BuildFileError(`Block ${block} of ${path} doesn’t match the signature.`);
    block++;
    yield bytes;
  }
}

async function* newContent(
  messages: MessageReader,
  parent: Parent,
  { files }: Container,
  file: number,
): AsyncGenerator<Buffer> {
  const { path, size } = files[file]!;
  const header = new Message(await messages.required(MAX_SYNC_HEADER_BYTES), [1, 16]);
  if (header.number(1) === BSDIFF)
    throw new BuildFileError(
      `${path} is patched with bsdiff. Supported are patches of the upload tool's push.`,
    );
  if (header.number(1) !== 0) throw new BuildFileError(`${path} is patched in an unknown way.`);
  if (header.number(16) !== file) throw new BuildFileError('The patch has files in another order.');
  let written = 0;
  let empty = 0;
  const count = (bytes: number) => {
    written += bytes;
    if (written > size) throw new BuildFileError(`${path} gets more than its ${size} bytes.`);
    if (bytes === 0 && ++empty > MAX_EMPTY_OPERATIONS)
      throw new BuildFileError(`${path} has too many operations without bytes.`);
  };
  for (;;) {
    const operation = new Message(await messages.required(MAX_OPERATION_BYTES), [1, 2, 3, 4, 5]);
    const type = operation.number(1);
    const unused = type === BLOCK_RANGE ? [5] : type === DATA ? [2, 3, 4] : [2, 3, 4, 5];
    if (unused.some((field) => operation.has(field)))
      throw new BuildFileError(`${path} is patched with a mixture of operations.`);
    if (type === END) break;
    if (type === DATA) {
      const data = operation.bytes(5);
      count(data.length);
      yield data;
    } else if (type === BLOCK_RANGE) {
      const range = parentRange(operation, parent.sizes);
      count(range.end - range.start);
      yield* exactly(parent, range);
    } else throw new BuildFileError(`${path} is patched with an unknown operation.`);
  }
  if (written !== size) throw new BuildFileError(`${path} gets only ${written} of its ${size} bytes.`);
}

interface Range {
  file: number;
  start: number;
  end: number;
}

function parentRange(operation: Message, sizes: ArrayLike<number>): Range {
  const [file, first, count] = [operation.number(2), operation.number(3), operation.number(4)];
  const size = sizes[file];
  if (size === undefined || count === 0 || first + count > blockCount(size))
    throw new BuildFileError('The patch refers to blocks that its parent doesn’t have.');
  return { file, start: first * BLOCK_BYTES, end: Math.min(size, (first + count) * BLOCK_BYTES) };
}

async function* exactly(parent: Parent, { file, start, end }: Range): AsyncGenerator<Buffer> {
  if (start === end) return;
  let bytes = 0;
  for await (const chunk of parent.read(file, start, end)) {
    bytes += chunk.length;
    yield chunk;
  }
  if (bytes !== end - start)
    throw new Error(`The parent's file ${file} doesn't have the bytes ${start} to ${end}.`);
}
