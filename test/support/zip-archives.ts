import { crc32, deflateRawSync } from 'node:zlib';

const UNIX = 3;
const DEFLATE = 8;

export interface ZipEntry {
  name: string | Buffer;
  content?: Buffer;
  /** The Unix mode with the file type, such as 0o100644 or 0o120777. */
  mode?: number;
  /** The compression method; 0 is stored. */
  method?: number;
  system?: number;
  /** Replaces the attributes that `mode` implies. */
  attributes?: number;
  flags?: number;
  /** Replaces the right checksum. */
  crc?: number;
  size?: number;
  /** The offset in the central directory, whose readers ignore the local header. */
  offset?: number;
}

export interface ZipOptions {
  /** Whether all sizes and offsets have 64 bits, even where 32 would be enough. */
  wide?: boolean;
  /** Replaces the number of entries. */
  count?: number;
  comment?: string;
}

const BIG = 0xffffffff;

function numbers(...parts: [bytes: 2 | 4 | 8, value: number][]): Buffer {
  return Buffer.concat(
    parts.map(([bytes, value]) => {
      const buffer = Buffer.alloc(8);
      buffer.writeBigUInt64LE(BigInt(value));
      return buffer.subarray(0, bytes);
    }),
  );
}

/** A zip archive with exactly these entries, which may be wrong. */
export function createZip(
  entries: ZipEntry[],
  { wide = false, count, comment = '' }: ZipOptions = {},
): Buffer {
  const files: Buffer[] = [];
  const directory: Buffer[] = [];
  let at = 0;
  for (const entry of entries) {
    const {
      content = Buffer.alloc(0),
      method = DEFLATE,
      mode = 0o100644,
      system = UNIX,
      attributes = mode * 0x10000,
      flags = 0x800,
    } = entry;
    const name = Buffer.from(entry.name);
    const stored = method === DEFLATE ? deflateRawSync(content) : content;
    const [crc, size] = [entry.crc ?? crc32(content), entry.size ?? content.length];
    const sum = numbers([4, crc], [4, wide ? BIG : stored.length], [4, wide ? BIG : size]);
    const start = numbers([2, 45], [2, flags], [2, method], [2, 0], [2, 0x21]);
    const sizes = wide ? numbers([2, 1], [2, 16], [8, size], [8, stored.length]) : Buffer.alloc(0);
    files.push(
      numbers([4, 0x04034b50]),
      start,
      sum,
      numbers([2, name.length], [2, sizes.length]),
      name,
      sizes,
      stored,
    );
    const offset = entry.offset ?? at;
    const extra = wide
      ? numbers([2, 1], [2, 24], [8, size], [8, stored.length], [8, offset])
      : Buffer.alloc(0);
    directory.push(
      numbers([4, 0x02014b50], [2, system * 0x100 + 45]),
      start,
      sum,
      numbers(
        [2, name.length],
        [2, extra.length],
        [2, 0],
        [2, 0],
        [2, 0],
        [4, attributes],
        [4, wide ? BIG : offset],
      ),
      name,
      extra,
    );
    at += 30 + name.length + sizes.length + stored.length;
  }
  const all = Buffer.concat(directory);
  const total = count ?? entries.length;
  const isWide = wide || total > 0xffff;
  const wideEnd = isWide
    ? numbers(
        [4, 0x06064b50],
        [8, 44],
        [2, UNIX * 0x100 + 45],
        [2, 45],
        [4, 0],
        [4, 0],
        [8, total],
        [8, total],
        [8, all.length],
        [8, at],
        [4, 0x07064b50],
        [4, 0],
        [8, at + all.length],
        [4, 1],
      )
    : Buffer.alloc(0);
  const end = numbers(
    [4, 0x06054b50],
    [2, 0],
    [2, 0],
    [2, isWide ? 0xffff : total],
    [2, isWide ? 0xffff : total],
    [4, isWide ? BIG : all.length],
    [4, isWide ? BIG : at],
    [2, Buffer.byteLength(comment)],
  );
  return Buffer.concat([...files, all, wideEnd, end, Buffer.from(comment)]);
}
