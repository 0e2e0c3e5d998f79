import { BuildFileError } from './build-file-error';
import type { Container, Entry, FileEntry, LinkEntry } from './entries';
import { checkPaths, MAX_ENTRIES } from './paths';
import { encodeField, encodeMessageField, Message, readFields } from './protobuf';

export const BLOCK_BYTES = 64 * 1024;
/** The limit of the message with all entries. */
export const MAX_CONTAINER_BYTES = 32 * 1024 * 1024;

export const EMPTY_CONTAINER: Container = { files: [], folders: [], links: [] };

/** An empty file has one block without bytes. */
export const blockCount = (size: number) => Math.max(1, Math.ceil(size / BLOCK_BYTES));

const PERMISSIONS = 0o777;
/** Bits of Go's file modes. */
const [FOLDER, LINK] = [2 ** 31, 2 ** 27];
/** Set user ID, set group ID and sticky, which no entry of a build gets. */
const SPECIAL_BITS = [2 ** 23, 2 ** 22, 2 ** 20];

function permissions(message: Message, type: number): number {
  const mode = message.number(2);
  if (mode > 0xffffffff) throw new BuildFileError('A mode has more than 32 bits.');
  const known = (SPECIAL_BITS.reduce((bits, bit) => bits | bit, PERMISSIONS) | type) >>> 0;
  const isType = (mode & (FOLDER | LINK)) >>> 0 === type;
  if ((mode & ~known) !== 0 || !isType)
    throw new BuildFileError(`${message.text(1)} has the mode ${mode.toString(8)} of another type of entry.`);
  return mode & PERMISSIONS;
}

type List = keyof Container;
const LISTS: Record<number, List> = { 1: 'files', 2: 'folders', 3: 'links' };

/** An entry, and the list of the container that has it. */
export type ListedEntry = [List, Entry | FileEntry | LinkEntry];

/** Reads the entries of a build and checks everything about them. `maxBytes`: of all files. */
export function readContainer(bytes: Buffer, maxBytes: number): Container {
  const container: Container = { files: [], folders: [], links: [] };
  let total = 0;
  for (const [list, entry] of readEntries(bytes)) {
    if ('size' in entry && (total += entry.size) > maxBytes)
      throw new BuildFileError(`The files have more than ${maxBytes} bytes.`);
    (container[list] as Entry[]).push(entry);
  }
  checkPaths(container);
  return container;
}

/** The entries in the order of a message. */
export function* entriesIn(container: Container): Generator<ListedEntry> {
  for (const list of Object.values(LISTS)) for (const entry of container[list]) yield [list, entry];
}

/** Whether the message has the entries of a build that is already checked. Needs no memory for them. */
export function hasEntries(bytes: Buffer, expected: Iterable<ListedEntry>): boolean {
  const others = expected[Symbol.iterator]();
  for (const [list, entry] of readEntries(bytes)) {
    const other = others.next();
    if (other.done || other.value[0] !== list || !isSame(entry, other.value[1])) return false;
  }
  return others.next().done === true;
}

const isSame = <T extends object>(one: T, other: T) =>
  Object.keys(one).every((name) => one[name as keyof T] === other[name as keyof T]);

/** Reads and checks the entries of a message one by one, but not their paths. */
export function* readEntries(bytes: Buffer): Generator<ListedEntry> {
  let [total, entries] = [0, 0];
  let announced: number | undefined;
  for (const [field, value] of readFields(bytes, [1, 2, 3, 16])) {
    if (field === 16) {
      if (typeof value !== 'number' || announced !== undefined)
        throw new BuildFileError('The size of the build isn’t one number.');
      announced = value;
      continue;
    }
    if (typeof value === 'number') throw new BuildFileError(`Field ${field} isn't a list of messages.`);
    // Entries are counted before they need memory.
    if (++entries > MAX_ENTRIES) throw new BuildFileError(`The build has more than ${MAX_ENTRIES} entries.`);
    const list = LISTS[field]!;
    if (list === 'files') {
      const file = readFile(value, total);
      total += file.size;
      yield [list, file];
    } else yield [list, list === 'folders' ? readFolder(value) : readLink(value)];
  }
  if ((announced ?? 0) !== total) throw new BuildFileError('The size of the build isn’t that of its files.');
}

function readFile(bytes: Buffer, offset: number): FileEntry {
  const file = new Message(bytes, [1, 2, 3, 4]);
  const [path, size] = [file.text(1), file.number(3)];
  // The first file, and files after only empty ones, have no offset.
  if (file.number(4) !== offset)
    throw new BuildFileError(`${path} doesn’t begin where the file before it ends.`);
  return { path, mode: permissions(file, 0), size };
}

function readFolder(bytes: Buffer): Entry {
  const folder = new Message(bytes, [1, 2]);
  return { path: folder.text(1), mode: permissions(folder, FOLDER) };
}

function readLink(bytes: Buffer): LinkEntry {
  const link = new Message(bytes, [1, 2, 3]);
  return { path: link.text(1), mode: permissions(link, LINK), target: link.text(3) };
}

export function encodeContainer({ files, folders, links }: Container): Buffer {
  let total = 0;
  const entries = [
    ...files.map(({ path, mode, size }) => {
      const fields = [
        encodeField(1, path),
        encodeField(2, mode),
        encodeField(3, size),
        encodeField(4, total),
      ];
      total += size;
      return encodeMessageField(1, Buffer.concat(fields));
    }),
    ...folders.map(({ path, mode }) =>
      encodeMessageField(2, Buffer.concat([encodeField(1, path), encodeField(2, FOLDER + mode)])),
    ),
    ...links.map(({ path, mode, target }) =>
      encodeMessageField(
        3,
        Buffer.concat([encodeField(1, path), encodeField(2, LINK + mode), encodeField(3, target)]),
      ),
    ),
  ];
  return Buffer.concat([...entries, encodeField(16, total)]);
}
