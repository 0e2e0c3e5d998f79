import { isUtf8 } from 'node:buffer';

export interface Line {
  number: number;
  text: string;
  /** The problem of an unreadable line, whose `text` is empty. */
  problem?: string;
}

export const NEWLINE = 10;
const BYTE_ORDER_MARK = '\ufeff';

/** The lines of a byte stream, a batch per chunk. Buffers at most one chunk and one line of `maxBytes`. */
export async function* readLines(
  source: AsyncIterable<Buffer> | Iterable<Buffer>,
  maxBytes: number,
): AsyncGenerator<Line[]> {
  const tooLong = `is longer than ${maxBytes / 1024 / 1024} MiB`;
  let number = 0;
  let begun: Buffer[] = [];
  let begunBytes = 0;

  const take = (bytes: Buffer): Line[] => {
    const lines: Line[] = [];
    // Decodes a whole batch: a call per line takes longer than parsing it.
    const texts = bytes.length <= maxBytes && isUtf8(bytes) ? bytes.toString('utf8').split('\n') : undefined;
    if (texts) {
      for (const text of texts) lines.push({ number: ++number, text });
    } else {
      for (let start = 0; start <= bytes.length;) {
        const newline = bytes.indexOf(NEWLINE, start);
        const line = bytes.subarray(start, newline < 0 ? bytes.length : newline);
        const problem = line.length > maxBytes ? tooLong : isUtf8(line) ? undefined : 'is not valid UTF-8';
        lines.push({ number: ++number, text: problem ? '' : line.toString('utf8'), problem });
        start += line.length + 1;
      }
    }
    const first = lines[0];
    if (first?.number === 1 && first.text.startsWith(BYTE_ORDER_MARK)) first.text = first.text.slice(1);
    return lines;
  };

  for await (const chunk of source) {
    const newline = chunk.lastIndexOf(NEWLINE);
    if (newline < 0) {
      begunBytes += chunk.length;
      // Bytes after the limit are counted, but not stored.
      if (begunBytes - chunk.length <= maxBytes) begun.push(chunk);
      continue;
    }
    const lines = take(Buffer.concat([...begun, chunk.subarray(0, newline)]));
    const rest = chunk.subarray(newline + 1);
    begun = rest.length ? [rest] : [];
    begunBytes = rest.length;
    yield lines;
  }
  if (begunBytes) yield take(Buffer.concat(begun));
}
