import { createGunzip } from 'node:zlib';
import type { Readable } from 'node:stream';
import { OperatorError } from '../../errors/operator-error';

/**
 * A backup is gzip of: the header as a line of JSON; each table as a line of JSON, its rows as `COPY` writes them, and
 * the line `\.`; the trailer as a line of JSON. Without its trailer a backup is incomplete.
 */
export interface Header {
  gamewharf_backup: typeof FORMAT;
  created_at: string;
  /** The migrations that had run, in their order. */
  migrations: string[];
  /** Files of the data folder that the rows depend on. */
  secrets: Record<string, string>;
  /** Identifies the pepper of the key hashes. */
  pepper: string | undefined;
}

export interface Table {
  table: string;
  columns: string[];
}

export interface Trailer {
  rows: Record<string, number>;
  sequences: Record<string, string>;
}

export const FORMAT = 1;
export const END_OF_TABLE = '\\.\n';

const NEWLINE = 10;
const MARKER = Buffer.from(`\n${END_OF_TABLE}`);
const MAX_BACKUP_LINE_BYTES = 1024 * 1024;

const incomplete = () => new OperatorError('The backup is damaged or incomplete.');

/** Reads a backup from its start to its end. */
export class BackupReader {
  private readonly chunks: AsyncIterator<Buffer>;
  private buffer: Buffer = Buffer.alloc(0);

  constructor(source: Readable) {
    const gunzip = createGunzip();
    source.once('error', (error) => gunzip.destroy(error));
    this.chunks = source.pipe(gunzip)[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  }

  async header(): Promise<Header> {
    const header = (await this.line()) as Header;
    if (header.gamewharf_backup !== FORMAT)
      throw new OperatorError("The file isn't a backup that this version can read.");
    return header;
  }

  /** Returns the next table or the trailer. The rows of a table must be read before the next call. */
  async next(): Promise<Table | Trailer> {
    return (await this.line()) as Table | Trailer;
  }

  /** The rows of the table as `COPY FROM` reads them. */
  async *rows(): AsyncGenerator<Buffer> {
    // The marker begins with the end of a line, so a line end is added before the first row.
    let pending: Buffer = Buffer.concat([Buffer.from('\n'), this.buffer]);
    let skip = 1;
    for (;;) {
      const end = pending.indexOf(MARKER);
      const ready = end === -1 ? Math.max(skip, pending.length - MARKER.length + 1) : end + 1;
      if (ready > skip) yield pending.subarray(skip, ready);
      if (end !== -1) {
        this.buffer = pending.subarray(end + MARKER.length);
        return;
      }
      const chunk = await this.more();
      // Keeps the last byte that was yielded, because the marker may begin there.
      const kept = pending.subarray(ready - 1);
      pending = Buffer.concat([kept, chunk]);
      skip = 1;
    }
  }

  private async line(): Promise<unknown> {
    let end: number;
    while ((end = this.buffer.indexOf(NEWLINE)) === -1) {
      if (this.buffer.length > MAX_BACKUP_LINE_BYTES) throw incomplete();
      this.buffer = Buffer.concat([this.buffer, await this.more()]);
    }
    const text = this.buffer.toString('utf8', 0, end);
    this.buffer = this.buffer.subarray(end + 1);
    try {
      return JSON.parse(text);
    } catch {
      throw incomplete();
    }
  }

  private async more(): Promise<Buffer> {
    try {
      const { value, done } = await this.chunks.next();
      if (!done) return value;
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code?.startsWith('Z_')) throw incomplete();
      throw error;
    }
    throw incomplete();
  }
}
