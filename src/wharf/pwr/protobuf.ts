import { BuildFileError } from './build-file-error';

/*
 * The part of protocol buffers that patches and signatures use: varints and length-delimited fields, no negative
 * numbers.
 */

const VARINT = 0;
const BYTES = 2;
/** The bytes of a number up to 2^53 - 1. */
const MAX_VARINT_BYTES = 8;
const UTF_8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const NOTHING = Buffer.alloc(0);

/** A number and its length; undefined if the bytes end within it. */
export function readVarint(bytes: Buffer, at: number): { value: number; length: number } | undefined {
  let value = 0;
  for (let length = 1; length <= MAX_VARINT_BYTES; length++) {
    const byte = bytes[at + length - 1];
    if (byte === undefined) return undefined;
    value += (byte & 0x7f) * 2 ** (7 * (length - 1));
    if (byte < 0x80) {
      if (value > Number.MAX_SAFE_INTEGER) break;
      return { value, length };
    }
  }
  throw new BuildFileError('A number is negative or too large.');
}

/**
 * The fields of a message with their numbers, in order. Rejects fields that aren't among the `known` ones.
 */
export function* readFields(bytes: Buffer, known: readonly number[]): Generator<[number, number | Buffer]> {
  const next = (at: number) => {
    const found = readVarint(bytes, at);
    if (!found) throw new BuildFileError('A message ends in the middle of a number.');
    return found;
  };
  for (let at = 0; at < bytes.length;) {
    const tag = next(at);
    at += tag.length;
    const [field, type] = [Math.floor(tag.value / 8), tag.value % 8];
    if (!known.includes(field) || (type !== VARINT && type !== BYTES))
      throw new BuildFileError(`A message has an unknown field ${field}.`);
    const number = next(at);
    at += number.length;
    let value: number | Buffer = number.value;
    if (type === BYTES) {
      if (number.value > bytes.length - at) throw new BuildFileError('A field is longer than its message.');
      value = bytes.subarray(at, (at += number.value));
    }
    yield [field, value];
  }
}

/** A message without repeated fields. */
export class Message {
  private readonly fields = new Map<number, number | Buffer>();

  constructor(bytes: Buffer, known: readonly number[]) {
    for (const [field, value] of readFields(bytes, known)) {
      if (this.fields.has(field)) throw new BuildFileError(`Field ${field} occurs twice.`);
      this.fields.set(field, value);
    }
  }

  /** The value of a number field; 0 if it is absent. */
  number(field: number): number {
    const value = this.fields.get(field) ?? 0;
    if (typeof value !== 'number') throw new BuildFileError(`Field ${field} isn't a number.`);
    return value;
  }

  /** The value of a bytes field; empty if it is absent. */
  bytes(field: number): Buffer {
    const value = this.fields.get(field) ?? NOTHING;
    if (typeof value === 'number') throw new BuildFileError(`Field ${field} isn't a list of bytes.`);
    return value;
  }

  text(field: number): string {
    try {
      return UTF_8.decode(this.bytes(field));
    } catch {
      throw new BuildFileError('A path isn’t valid UTF-8.');
    }
  }

  has(field: number): boolean {
    return this.fields.has(field);
  }
}

export function encodeVarint(value: number): Buffer {
  const bytes: number[] = [];
  let rest = value;
  for (; rest >= 0x80; rest = Math.floor(rest / 0x80)) bytes.push((rest % 0x80) + 0x80);
  return Buffer.from([...bytes, rest]);
}

/** A field of a message. One with its default value is absent. */
export function encodeField(field: number, value: number | string | Buffer): Buffer {
  if (typeof value === 'number')
    return value === 0
      ? Buffer.alloc(0)
      : Buffer.concat([encodeVarint(field * 8 + VARINT), encodeVarint(value)]);
  return value.length === 0 ? Buffer.alloc(0) : encodeMessageField(field, Buffer.from(value));
}

/** A field with a message, which is present even if it is empty. */
export const encodeMessageField = (field: number, bytes: Buffer): Buffer =>
  Buffer.concat([encodeVarint(field * 8 + BYTES), encodeVarint(bytes.length), bytes]);

/** A message as it is in a file: preceded by its length. */
export const delimited = (...fields: Buffer[]): Buffer => {
  const bytes = Buffer.concat(fields);
  return Buffer.concat([encodeVarint(bytes.length), bytes]);
};
