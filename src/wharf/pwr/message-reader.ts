import { constants, createBrotliCompress, createBrotliDecompress } from 'node:zlib';
import { pipeline, Readable } from 'node:stream';
import { BuildFileError } from './build-file-error';
import { delimited, encodeField, encodeMessageField, Message, readVarint } from './protobuf';

export type Bytes = AsyncIterable<Buffer>;

export const PATCH_MAGIC = 0x0fef5f00;
export const SIGNATURE_MAGIC = 0x0fef5f01;

const NONE = 0;
const BROTLI = 1;
const OTHER_COMPRESSIONS = ['', '', 'gzip', 'zstd'];
const QUALITY = 1;
const MAX_PATCH_HEADER_BYTES = 64;

/** Reads messages, each preceded by its length. Buffers at most one message and one chunk. */
export class MessageReader {
  private chunks: Buffer[] = [];
  private buffered = 0;
  private readonly source: AsyncIterator<Buffer>;

  constructor(source: Bytes) {
    this.source = source[Symbol.asyncIterator]();
  }

  /** The next message; undefined at the end of the stream. */
  async next(maxBytes: number): Promise<Buffer | undefined> {
    let length: ReturnType<typeof readVarint>;
    while (!(length = readVarint(this.head(), 0))) {
      if (await this.fill()) continue;
      if (this.buffered > 0) throw endsEarly();
      return undefined;
    }
    if (length.value > maxBytes)
      throw new BuildFileError(`A message has ${length.value} bytes, more than ${maxBytes}.`);
    return (await this.take(length.length + length.value)).subarray(length.length);
  }

  async required(maxBytes: number): Promise<Buffer> {
    const message = await this.next(maxBytes);
    if (!message) throw endsEarly();
    return message;
  }

  async take(bytes: number): Promise<Buffer> {
    while (this.buffered < bytes) if (!(await this.fill())) throw endsEarly();
    const all = this.head();
    this.chunks = bytes < all.length ? [all.subarray(bytes)] : [];
    this.buffered -= bytes;
    return all.subarray(0, bytes);
  }

  /** The bytes after the messages read so far. */
  async *rest(): AsyncGenerator<Buffer> {
    try {
      yield* this.chunks;
      for (let next = await this.source.next(); !next.done; next = await this.source.next()) yield next.value;
    } finally {
      await this.close();
    }
  }

  async close(): Promise<void> {
    await this.source.return?.();
  }

  private head(): Buffer {
    if (this.chunks.length > 1) this.chunks = [Buffer.concat(this.chunks)];
    return this.chunks[0] ?? Buffer.alloc(0);
  }

  private async fill(): Promise<boolean> {
    const { done, value } = await this.source.next();
    if (done) return false;
    this.chunks.push(value);
    this.buffered += value.length;
    return true;
  }
}

const endsEarly = () => new BuildFileError('The file ends early.');

/** Reads the magic number and the header of a file; the messages follow. */
export async function openMessages(file: Bytes, magic: number, what: string): Promise<MessageReader> {
  const raw = new MessageReader(file);
  if ((await raw.take(4)).readUInt32LE() !== magic) throw new BuildFileError(`The file isn't a ${what}.`);
  const settings = new Message(await raw.required(MAX_PATCH_HEADER_BYTES), [1]).bytes(1);
  const compression = new Message(settings, [1, 2]).number(1);
  if (compression === NONE) return new MessageReader(raw.rest());
  if (compression === BROTLI) return new MessageReader(decompress(raw.rest()));
  const name = OTHER_COMPRESSIONS[compression] ?? `number ${compression}`;
  throw new BuildFileError(
    `The ${what} is compressed with ${name}. Supported are Brotli and no compression.`,
  );
}

async function* decompress(compressed: AsyncGenerator<Buffer>): AsyncGenerator<Buffer> {
  const brotli = createBrotliDecompress();
  let received = 0;
  let failure: unknown;
  const counted = async function* () {
    const next = () =>
      compressed.next().catch((error: unknown) => {
        failure = error;
        throw error;
      });
    for (let chunk = await next(); !chunk.done; chunk = await next()) {
      received += chunk.value.length;
      yield chunk.value;
    }
  };
  // Ends the iteration below with an error of the source, too.
  pipeline(Readable.from(counted()), brotli, () => undefined);
  try {
    for await (const chunk of brotli) yield chunk as Buffer;
  } catch (cause) {
    throw failure ?? new BuildFileError('The file can’t be decompressed.', { cause });
  } finally {
    brotli.destroy();
    await compressed.return(undefined);
  }
  if (brotli.bytesWritten < received) throw trailing();
}

export const trailing = () => new BuildFileError('The file has bytes after its end.');

/** A file with messages. */
export async function* encodeFile(magic: number, messages: Bytes): AsyncGenerator<Buffer> {
  const start = Buffer.alloc(4);
  start.writeUInt32LE(magic);
  const settings = Buffer.concat([encodeField(1, BROTLI), encodeField(2, QUALITY)]);
  yield Buffer.concat([start, delimited(encodeMessageField(1, settings))]);
  const brotli = createBrotliCompress({ params: { [constants.BROTLI_PARAM_QUALITY]: QUALITY } });
  pipeline(Readable.from(messages), brotli, () => undefined);
  for await (const chunk of brotli) yield chunk as Buffer;
}
