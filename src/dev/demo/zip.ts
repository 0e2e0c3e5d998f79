import { crc32, deflateRawSync } from 'node:zlib';

const VERSION = 20;
/** Bit 11: names are UTF-8. */
const FLAGS = 0x0800;
const DEFLATED = 8;
/** 1980-01-01 00:00, the earliest time that the format has. */
const TIME = 0;
const DATE = 0x21;

/** A zip archive with one file. The same input makes the same bytes. */
export function zipOf(name: string, text: string): Buffer {
  const content = Buffer.from(text);
  const deflated = deflateRawSync(content);
  const path = Buffer.from(name);
  // What the header of the file and the directory have in common.
  const entry = Buffer.concat([
    uint16(VERSION, FLAGS, DEFLATED, TIME, DATE),
    uint32(crc32(content), deflated.length, content.length),
    uint16(path.length, 0),
  ]);
  const file = Buffer.concat([Buffer.from('PK\x03\x04'), entry, path, deflated]);
  const directory = Buffer.concat([
    Buffer.from('PK\x01\x02'),
    uint16(VERSION),
    entry,
    uint16(0, 0, 0),
    uint32(0, 0),
    path,
  ]);
  const end = Buffer.concat([
    Buffer.from('PK\x05\x06'),
    uint16(0, 0, 1, 1),
    uint32(directory.length, file.length),
    uint16(0),
  ]);
  return Buffer.concat([file, directory, end]);
}

function uint16(...values: number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 2);
  values.forEach((value, index) => buffer.writeUInt16LE(value, index * 2));
  return buffer;
}

function uint32(...values: number[]): Buffer {
  const buffer = Buffer.alloc(values.length * 4);
  values.forEach((value, index) => buffer.writeUInt32LE(value, index * 4));
  return buffer;
}
