import { createHash } from 'node:crypto';
import { createWriteStream } from 'node:fs';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { ZipFile } from 'yazl';
import type { Bytes } from '../pwr/message-reader';

const [LINK, FOLDER, FILE] = [0o120000, 0o040000, 0o100000];
/** Less than 4 GiB, because some files become a little larger when they are compressed. */
const ZIP64_BYTES = 0xf0000000;

/** Writes a zip archive to a new file. Entries are written in the order in which they are added. */
export class ZipWriter {
  private readonly zip = new ZipFile();
  private readonly md5 = createHash('md5');
  private readonly written: Promise<void>;
  private size = 0;

  constructor(
    path: string,
    /** Time of change of all entries. */
    private readonly mtime: Date,
  ) {
    const { zip } = this;
    this.written = pipeline(this.measured(zip.outputStream as Readable), createWriteStream(path));
    // Awaited when the archive is finished.
    this.written.catch(() => undefined);
    zip.on('error', (error: Error) => (zip.outputStream as Readable).destroy(error));
  }

  addFolder(path: string, mode: number): void {
    this.zip.addEmptyDirectory(path, { mtime: this.mtime, mode: FOLDER | mode });
  }

  addLink(path: string, mode: number, target: string): void {
    this.zip.addBuffer(Buffer.from(target), path, { mtime: this.mtime, mode: LINK | mode, compress: false });
  }

  /** Resolves when all of the content is read. */
  async addFile(path: string, mode: number, size: number, content: Bytes): Promise<void> {
    const stream = Readable.from(content, { objectMode: false, highWaterMark: 64 * 1024 });
    const options = { mtime: this.mtime, mode: FILE | mode, size, forceZip64Format: size >= ZIP64_BYTES };
    const read = new Promise<void>((resolve, reject) => stream.once('end', resolve).once('error', reject));
    this.zip.addReadStreamLazy(path, options, (ready) => ready(undefined, stream));
    // If the disk is full, nothing reads the content.
    await Promise.race([read, this.written]);
  }

  async finish(): Promise<{ size: number; md5_hash: string }> {
    this.zip.end();
    await this.written;
    return { size: this.size, md5_hash: this.md5.digest('hex') };
  }

  /** Closes an unfinished archive. */
  destroy(): void {
    (this.zip.outputStream as Readable).destroy();
  }

  private async *measured(chunks: Bytes): AsyncGenerator<Buffer> {
    for await (const chunk of chunks) {
      this.md5.update(chunk);
      this.size += chunk.length;
      yield chunk;
    }
  }
}
