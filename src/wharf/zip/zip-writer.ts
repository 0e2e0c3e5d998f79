import { pipeline, Readable } from 'node:stream';
import { constants, crc32, createDeflateRaw, deflateRawSync } from 'node:zlib';
import type { Container } from '../pwr/entries';
import type { Bytes } from '../pwr/message-reader';
import type { NewFile } from '../pwr/patch';

/*
 * Replaces the library yazl, which checks all earlier entries for each entry and is too slow for many files.
 */

const [LINK, FOLDER, FILE] = [0o120000, 0o040000, 0o100000];
const [STORED, DEFLATED] = [0, 8];
const NAME_IS_UTF8 = 1 << 11;
const SIZES_FOLLOW = 1 << 3;
/** The versions of the format with compression, and with sizes of 64 bits. */
const [VERSION, ZIP64_VERSION] = [20, 45];
const MADE_ON_UNIX = 3 * 0x100 + ZIP64_VERSION;
const [ZIP64_EXTRA, TIME_EXTRA] = [0x0001, 0x5455];
/** Placeholders for a number that doesn't fit and is in another field. */
const [ELSEWHERE, COUNT_ELSEWHERE] = [0xffffffff, 0xffff];
/** Less than 4 GiB, because some files become a little larger when they are compressed. */
const ZIP64_FILE_BYTES = 0xf0000000;
/** The earliest and latest times that the DOS format can store. */
const [FIRST_TIME, LAST_TIME] = [Date.UTC(1980, 0, 1), Date.UTC(2107, 11, 31, 23, 59, 58)];
const MAX_UNIX_SECONDS = 0x7fffffff;
/** A file up to this size is compressed in one piece, which is faster than a stream. */
const DEFLATE_AT_ONCE_BYTES = 64 * 1024;
const OUTPUT_CHUNK_BYTES = 64 * 1024;

interface Source {
  path: string;
  /** Permissions and the type of the entry. */
  mode: number;
  size: number;
  content: Bytes | Buffer;
}

interface WrittenEntry {
  name: Buffer;
  mode: number;
  offset: number;
  flags: number;
  method: number;
  isZip64: boolean;
  crc: number;
  storedBytes: number;
  bytes: number;
}

/** Writes a zip archive. `files`: those of the container, in its order. Compresses on this thread. */
export const writeZip = (
  container: Container,
  files: AsyncIterable<NewFile>,
  mtime: Date,
): AsyncGenerator<Buffer> => inChunks(zipPieces(container, files, inTimeRange(mtime)));

async function* zipPieces(container: Container, files: AsyncIterable<NewFile>, mtime: Date) {
  const directory: Buffer[] = [];
  let [at, count, pending] = [0, 0, [] as Buffer[]];
  for await (const source of sourcesOf(container, files)) {
    const entry = newEntry(source, at);
    for await (const piece of entryPieces(entry, source, mtime)) {
      at += piece.length;
      yield piece;
    }
    count++;
    // The records are joined, because each buffer needs as much memory as its content.
    if (pending.push(directoryRecord(entry, mtime)) === 1000) {
      directory.push(Buffer.concat(pending));
      pending = [];
    }
  }
  directory.push(...pending);
  yield* directory;
  const bytes = directory.reduce((sum, { length }) => sum + length, 0);
  yield directoryEnd(count, bytes, at);
}

async function* sourcesOf(
  { folders, links }: Container,
  files: AsyncIterable<NewFile>,
): AsyncGenerator<Source> {
  for (const { path, mode } of folders)
    yield { path: `${path}/`, mode: FOLDER | mode, size: 0, content: Buffer.alloc(0) };
  for await (const { entry, content } of files) yield { ...entry, mode: FILE | entry.mode, content };
  for (const { path, mode, target } of links)
    yield { path, mode: LINK | mode, size: 0, content: Buffer.from(target) };
}

const newEntry = ({ path, mode, size, content }: Source, offset: number): WrittenEntry => ({
  name: Buffer.from(path),
  mode,
  offset,
  flags: NAME_IS_UTF8 | (size > DEFLATE_AT_ONCE_BYTES ? SIZES_FOLLOW : 0),
  method: Buffer.isBuffer(content) ? STORED : DEFLATED,
  isZip64: size >= ZIP64_FILE_BYTES || offset >= ELSEWHERE,
  crc: 0,
  storedBytes: 0,
  bytes: 0,
});

async function* entryPieces(
  entry: WrittenEntry,
  { size, content }: Source,
  mtime: Date,
): AsyncGenerator<Buffer> {
  if (size > DEFLATE_AT_ONCE_BYTES) {
    yield localHeader(entry, mtime);
    yield* compressed(entry, content as Bytes);
    yield dataDescriptor(entry, size >= ZIP64_FILE_BYTES);
    return;
  }
  const bytes = Buffer.isBuffer(content) ? content : await joined(content);
  // Otherwise, each small file would occupy 16 KiB until the next garbage collection.
  const chunkSize = bytes.length + constants.Z_MIN_CHUNK;
  const stored = entry.method === DEFLATED ? deflateRawSync(bytes, { chunkSize }) : bytes;
  Object.assign(entry, { crc: crc32(bytes), storedBytes: stored.length, bytes: bytes.length });
  yield localHeader(entry, mtime);
  yield stored;
}

async function* compressed(entry: WrittenEntry, content: Bytes): AsyncGenerator<Buffer> {
  const deflate = createDeflateRaw();
  const measured = async function* () {
    for await (const chunk of content) {
      entry.crc = crc32(chunk, entry.crc);
      entry.bytes += chunk.length;
      yield chunk;
    }
  };
  // Ends the iteration below with an error of the content, too.
  pipeline(Readable.from(measured()), deflate, () => undefined);
  for await (const chunk of deflate as Bytes) {
    entry.storedBytes += chunk.length;
    yield chunk;
  }
}

async function joined(content: Bytes): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks);
}

type Field = [bytes: 2 | 4 | 8, value: number];

function pack(...fields: Field[]): Buffer {
  const packed = Buffer.alloc(fields.reduce((sum, [bytes]) => sum + bytes, 0));
  let at = 0;
  for (const [bytes, value] of fields) {
    if (bytes === 8) packed.writeBigUInt64LE(BigInt(value), at);
    else packed.writeUIntLE(value, at, bytes);
    at += bytes;
  }
  return packed;
}

/** The fields that both headers of an entry have. */
const sharedFields = ({ flags, method, isZip64 }: WrittenEntry, mtime: Date): Field[] => [
  [2, isZip64 ? ZIP64_VERSION : VERSION],
  [2, flags],
  [2, method],
  ...dosTime(mtime),
];

/** Sizes of a streamed file aren't known yet. */
const localHeader = (entry: WrittenEntry, mtime: Date): Buffer => {
  const { name, crc, storedBytes, bytes } = entry;
  const fields = pack(
    [4, 0x04034b50],
    ...sharedFields(entry, mtime),
    [4, crc],
    [4, storedBytes],
    [4, bytes],
    [2, name.length],
    [2, 0],
  );
  return Buffer.concat([fields, name]);
};

function dataDescriptor({ crc, storedBytes, bytes }: WrittenEntry, isZip64: boolean): Buffer {
  const width = isZip64 ? 8 : 4;
  return pack([4, 0x08074b50], [4, crc], [width, storedBytes], [width, bytes]);
}

function directoryRecord(entry: WrittenEntry, mtime: Date): Buffer {
  const { name, mode, offset, crc, storedBytes, bytes, isZip64 } = entry;
  const numbers = isZip64
    ? pack([2, ZIP64_EXTRA], [2, 24], [8, bytes], [8, storedBytes], [8, offset])
    : Buffer.alloc(0);
  const extra = Buffer.concat([unixTime(mtime), numbers]);
  const inField = (value: number) => (isZip64 ? ELSEWHERE : value);
  const fields = pack(
    [4, 0x02014b50],
    [2, MADE_ON_UNIX],
    ...sharedFields(entry, mtime),
    [4, crc],
    [4, inField(storedBytes)],
    [4, inField(bytes)],
    [2, name.length],
    [2, extra.length],
    [2, 0],
    [2, 0],
    [2, 0],
    [4, mode * 0x10000],
    [4, inField(offset)],
  );
  return Buffer.concat([fields, name, extra]);
}

function directoryEnd(count: number, bytes: number, offset: number): Buffer {
  const isZip64 = count >= COUNT_ELSEWHERE || offset + bytes >= ELSEWHERE;
  const numbers: Field[] = [
    [8, count],
    [8, count],
    [8, bytes],
    [8, offset],
  ];
  const zip64 = isZip64
    ? pack(
        [4, 0x06064b50],
        [8, 44],
        [2, MADE_ON_UNIX],
        [2, ZIP64_VERSION],
        [4, 0],
        [4, 0],
        ...numbers,
        [4, 0x07064b50],
        [4, 0],
        [8, offset + bytes],
        [4, 1],
      )
    : Buffer.alloc(0);
  const end = pack(
    [4, 0x06054b50],
    [2, 0],
    [2, 0],
    [2, isZip64 ? COUNT_ELSEWHERE : count],
    [2, isZip64 ? COUNT_ELSEWHERE : count],
    [4, isZip64 ? ELSEWHERE : bytes],
    [4, isZip64 ? ELSEWHERE : offset],
    [2, 0],
  );
  return Buffer.concat([zip64, end]);
}

const inTimeRange = (mtime: Date) => new Date(Math.min(Math.max(mtime.getTime(), FIRST_TIME), LAST_TIME));

/** DOS times have steps of two seconds. */
function dosTime(mtime: Date): Field[] {
  const time = (mtime.getUTCHours() << 11) | (mtime.getUTCMinutes() << 5) | (mtime.getUTCSeconds() >> 1);
  const date = ((mtime.getUTCFullYear() - 1980) << 9) | ((mtime.getUTCMonth() + 1) << 5) | mtime.getUTCDate();
  return [
    [2, time],
    [2, date],
  ];
}

/** Seconds since 1970, because the DOS time has no time zone. */
function unixTime(mtime: Date): Buffer {
  const seconds = Math.floor(mtime.getTime() / 1000);
  if (seconds > MAX_UNIX_SECONDS) return Buffer.alloc(0);
  return Buffer.concat([pack([2, TIME_EXTRA], [2, 5]), Buffer.of(1), pack([4, seconds])]);
}

async function* inChunks(pieces: Bytes): AsyncGenerator<Buffer> {
  let chunk = Buffer.allocUnsafe(OUTPUT_CHUNK_BYTES);
  let filled = 0;
  for await (const piece of pieces)
    for (let at = 0; at < piece.length;) {
      const copied = piece.copy(chunk, filled, at);
      at += copied;
      filled += copied;
      if (filled < OUTPUT_CHUNK_BYTES) continue;
      yield chunk;
      chunk = Buffer.allocUnsafe(OUTPUT_CHUNK_BYTES);
      filled = 0;
    }
  yield chunk.subarray(0, filled);
}
