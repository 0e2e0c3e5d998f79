import { posix } from 'node:path';
import { constants, crc32, inflateRawSync } from 'node:zlib';
import { Entry as ZipEntry, fromRandomAccessReaderPromise, type ZipFile } from 'yauzl';
import { BuildFileError } from '../pwr/build-file-error';
import { MAX_CONTAINER_BYTES } from '../pwr/container';
import type { Container } from '../pwr/entries';
import { checkPaths, MAX_ENTRIES } from '../pwr/paths';
import { ArchiveReader } from './archive-reader';

/** Systems that store the permissions of Unix in their zip archives. */
const UNIX_SYSTEMS = [3, 19];
/** Systems with the attributes of DOS: FAT, NTFS and VFAT. */
const DOS_SYSTEMS = [0, 11, 14];
const [DOS_READ_ONLY, DOS_FOLDER] = [0x01, 0x10];
const [TYPE, LINK, FOLDER, FILE] = [0o170000, 0o120000, 0o040000, 0o100000];
/** Launchers make every entry readable, and files writable. */
const ALWAYS = 0o644;
/** The mode of a folder that only paths name. */
const IMPLIED_FOLDER = 0o755;
const MAX_TARGET_BYTES = 1024;
/** The compression method of files that aren't compressed. */
const STORED = 0;
/** A file up to this size is decompressed in one piece, which is faster than a stream. */
const INFLATE_AT_ONCE_BYTES = 64 * 1024;

/** The entries and files of a zip archive of any origin, as launchers read them. Close it at the end. */
export interface ZipArchive {
  container: Container;
  /** The content of a file, by its number in the container. Rejects if it differs from its checksum. */
  read(file: number): AsyncGenerator<Buffer>;
  /** Frees the memory of the container. Files can still be read. */
  clearContainer(): void;
  close(): void;
}

/**
 * Opens a zip archive and checks all its entries. `maxBytes`: the limit for all files together. Errors are
 * about the archive or its disk.
 */
export async function openZip(path: string, maxBytes: number): Promise<ZipArchive> {
  const zip = await openCheckedZip(path, maxBytes);
  try {
    checkPaths(zip.container);
    return zip;
  } catch (error) {
    zip.close();
    throw error;
  }
}

/**
 * Opens an archive that has a signature. Its paths were checked when it was signed, and another check would
 * need as much memory as they do.
 */
export async function openCheckedZip(path: string, maxBytes: number): Promise<ZipArchive> {
  const reader = new ArchiveReader(path);
  const options = { autoClose: false, decodeStrings: false };
  const zip = await fromRandomAccessReaderPromise(reader, reader.size, options).catch((error: unknown) => {
    reader.close(() => undefined);
    return damaged(error);
  });
  try {
    const { container, stored } = await readEntries(zip, reader, maxBytes);
    return {
      container,
      read: (file) =>
        readContent(zip, reader, stored.get(file), container.files[file]?.path ?? `File ${file}`),
      clearContainer: () => {
        for (const list of Object.values(container)) list.length = 0;
      },
      close: () => zip.close(),
    };
  } catch (error) {
    zip.close();
    throw error;
  }
}

async function readEntries(zip: ZipFile, reader: ArchiveReader, maxBytes: number) {
  if (zip.entryCount > MAX_ENTRIES)
    throw new BuildFileError(`The zip archive has more than ${MAX_ENTRIES} entries.`);
  const container: Container = { files: [], folders: [], links: [] };
  const stored = new StoredFiles(zip.entryCount);
  const folders = new Map<string, number>();
  let [bytes, pathBytes] = [0, 0];
  for await (const entry of listEntries(zip)) {
    const path = readPath(entry);
    const { type, mode } = readMode(entry);
    // The root of the archive isn't an entry of the build.
    if (path === '.' && type === FOLDER) continue;
    if ((pathBytes += path.length) > MAX_CONTAINER_BYTES)
      throw new BuildFileError('The paths of the zip archive are too long.');
    const parent = posix.dirname(path);
    if (parent !== '.' && !folders.has(parent)) folders.set(parent, IMPLIED_FOLDER);
    if (type === FOLDER) folders.set(path, mode);
    else if (type === LINK)
      container.links.push({ path, mode, target: await readTarget(zip, reader, entry, path) });
    else if (type === FILE) {
      requireReadable(entry, path);
      const size = entry.uncompressedSize;
      if ((bytes += size) > maxBytes)
        throw new BuildFileError(`The files of the zip archive have more than ${maxBytes} bytes.`);
      container.files.push({ path, mode, size });
      stored.add(entry);
    } else throw new BuildFileError(`${path} is neither a file nor a folder nor a link.`);
  }
  container.folders = [...folders].map(([path, mode]) => ({ path, mode }));
  return { container, stored };
}

async function* listEntries(zip: ZipFile): AsyncGenerator<ZipEntry> {
  const entries = zip.eachEntry();
  const next = () => entries.next().catch(damaged);
  for (let entry = await next(); !entry.done; entry = await next()) yield entry.value;
}

/** Launchers ignore the old encodings of names, too. */
function readPath({ fileNameRaw }: ZipEntry): string {
  let name: string;
  try {
    name = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(fileNameRaw);
  } catch {
    throw new BuildFileError('A name in the zip archive isn’t valid UTF-8.');
  }
  return posix.normalize(name).replace(/(?<=.)\/$/, '');
}

function readMode({ versionMadeBy, externalFileAttributes, fileNameRaw }: ZipEntry) {
  const system = versionMadeBy >> 8;
  const isFolder = fileNameRaw.at(-1) === 0x2f;
  if (UNIX_SYSTEMS.includes(system)) {
    const mode = externalFileAttributes >>> 16;
    const type = isFolder ? FOLDER : mode & TYPE || FILE;
    return { type, mode: (mode & 0o777) | ALWAYS };
  }
  if (!DOS_SYSTEMS.includes(system)) return { type: isFolder ? FOLDER : FILE, mode: ALWAYS };
  const type = isFolder || externalFileAttributes & DOS_FOLDER ? FOLDER : FILE;
  const written = type === FOLDER ? 0o777 : 0o666;
  const mode = externalFileAttributes & DOS_READ_ONLY ? written & ~0o222 : written;
  return { type, mode: mode | ALWAYS };
}

function requireReadable(entry: ZipEntry, path: string): void {
  if (entry.isEncrypted()) throw new BuildFileError(`${path} is encrypted.`);
  if (!entry.canDecodeFileData())
    throw new BuildFileError(
      `${path} is compressed with method ${entry.compressionMethod}. Supported are deflate and no compression.`,
    );
}

async function readTarget(
  zip: ZipFile,
  reader: ArchiveReader,
  entry: ZipEntry,
  path: string,
): Promise<string> {
  requireReadable(entry, path);
  if (entry.uncompressedSize > MAX_TARGET_BYTES)
    throw new BuildFileError(`The target of the link ${path} is too long.`);
  const chunks: Buffer[] = [];
  for await (const chunk of readContent(zip, reader, entry, path)) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}

async function* readContent(
  zip: ZipFile,
  reader: ArchiveReader,
  entry: ZipEntry,
  path: string,
): AsyncGenerator<Buffer> {
  let sum = 0;
  const isSmall = Math.max(entry.uncompressedSize, entry.compressedSize) <= INFLATE_AT_ONCE_BYTES;
  try {
    for await (const chunk of isSmall
      ? [await readPiece(zip, reader, entry)]
      : await zip.openReadStreamPromise(entry)) {
      sum = crc32(chunk as Buffer, sum);
      yield chunk as Buffer;
    }
  } catch (error) {
    if (isOfDisk(error)) throw error;
    throw new BuildFileError(`${path} is damaged in the zip archive.`, { cause: error });
  }
  if (sum !== entry.crc32) throw new BuildFileError(`${path} differs from its checksum in the zip archive.`);
}

async function readPiece(zip: ZipFile, reader: ArchiveReader, entry: ZipEntry): Promise<Buffer> {
  const { uncompressedSize: size, compressedSize, compressionMethod } = entry;
  const { fileDataStart } = await zip.readLocalFileHeaderPromise(entry, { minimal: true });
  const stored = reader.bytesAt(fileDataStart, compressedSize);
  const bytes =
    compressionMethod === STORED
      ? stored
      : inflateRawSync(stored, {
          maxOutputLength: Math.max(1, size),
          // Otherwise, each small file would occupy 16 KiB until the next garbage collection.
          chunkSize: Math.max(constants.Z_MIN_CHUNK, size),
        });
  if (bytes.length !== size) throw new Error(`${bytes.length} bytes instead of ${size}`);
  return bytes;
}

/** The fields that are needed to read a file. */
const STORED_FIELDS = [
  'generalPurposeBitFlag',
  'compressionMethod',
  'compressedSize',
  'uncompressedSize',
  'crc32',
  'relativeOffsetOfLocalHeader',
] as const satisfies (keyof ZipEntry)[];

/** The files of an archive in compact form, because the library's entries need much more memory. */
class StoredFiles {
  private readonly numbers: Float64Array;
  private count = 0;

  constructor(maxFiles: number) {
    this.numbers = new Float64Array(maxFiles * STORED_FIELDS.length);
  }

  add(entry: ZipEntry): void {
    const numbers = STORED_FIELDS.map((name) => entry[name]);
    this.numbers.set(numbers, this.count++ * STORED_FIELDS.length);
  }

  get(file: number): ZipEntry {
    const entry = new ZipEntry();
    for (const [i, name] of STORED_FIELDS.entries())
      entry[name] = this.numbers[file * STORED_FIELDS.length + i]!;
    return entry;
  }
}

const isOfDisk = (error: unknown) => error instanceof Error && 'syscall' in error;

function damaged(cause: unknown): never {
  if (isOfDisk(cause)) throw cause;
  throw new BuildFileError(`The zip archive can’t be read: ${(cause as Error).message}`, { cause });
}
