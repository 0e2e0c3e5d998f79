import { createHash } from 'node:crypto';
import { BuildFileError } from './build-file-error';
import { BLOCK_BYTES, blockCount, encodeContainer, MAX_CONTAINER_BYTES, readContainer } from './container';
import type { Container } from './entries';
import { type Bytes, encodeFile, openMessages, SIGNATURE_MAGIC, trailing } from './message-reader';
import { delimited, encodeField, Message } from './protobuf';

const STRONG_BYTES = 16;
const MAX_HASH_BYTES = 64;

interface BlockHash {
  weak: number;
  strong: Buffer;
}

/** The entries of a build, and a hash of each block of its files. */
export class Signature {
  private readonly weak: Uint32Array;
  private readonly strong: Buffer;
  /** The number of the first block of each file. */
  private readonly first: number[] = [];

  constructor(readonly container: Container) {
    let blocks = 0;
    for (const { size } of container.files) {
      this.first.push(blocks);
      blocks += blockCount(size);
    }
    this.weak = new Uint32Array(blocks);
    this.strong = Buffer.alloc(blocks * STRONG_BYTES);
  }

  get blocks(): number {
    return this.weak.length;
  }

  set(block: number, { weak, strong }: BlockHash): void {
    this.weak[block] = weak;
    strong.copy(this.strong, block * STRONG_BYTES);
  }

  /** Whether these are the bytes of a file's block. */
  matches(file: number, block: number, bytes: Buffer): boolean {
    const { weak, strong } = hashBlock(bytes);
    const place = this.first[file]! + block;
    return (
      weak === this.weak[place] &&
      strong.equals(this.strong.subarray(place * STRONG_BYTES, (place + 1) * STRONG_BYTES))
    );
  }
}

/** Reads a signature and checks its entries. `maxBytes`: of all files. */
export async function readSignature(file: Bytes, maxBytes: number): Promise<Signature> {
  const messages = await openMessages(file, SIGNATURE_MAGIC, 'signature');
  try {
    const signature = new Signature(readContainer(await messages.required(MAX_CONTAINER_BYTES), maxBytes));
    for (let block = 0; block < signature.blocks; block++) {
      const message = new Message(await messages.required(MAX_HASH_BYTES), [1, 2]);
      const [weak, strong] = [message.number(1), message.bytes(2)];
      if (weak > 0xffffffff || strong.length !== STRONG_BYTES)
        throw new BuildFileError('The signature has a hash of another length.');
      signature.set(block, { weak, strong });
    }
    if (await messages.next(MAX_HASH_BYTES)) throw trailing();
    return signature;
  } finally {
    await messages.close();
  }
}

/** Reads only the message with the entries of a build. */
export async function readEntriesMessage(signature: Bytes): Promise<Buffer> {
  const messages = await openMessages(signature, SIGNATURE_MAGIC, 'signature');
  try {
    return await messages.required(MAX_CONTAINER_BYTES);
  } finally {
    await messages.close();
  }
}

/** Writes the signature of a build. `open` reads a file by its number in the container. */
export const writeSignature = (container: Container, open: (file: number) => Bytes): AsyncGenerator<Buffer> =>
  encodeFile(SIGNATURE_MAGIC, signatureMessages(container, open));

async function* signatureMessages(
  container: Container,
  open: (file: number) => Bytes,
): AsyncGenerator<Buffer> {
  yield delimited(encodeContainer(container));
  for (const [file, { path, size }] of container.files.entries()) {
    let bytes = 0;
    for await (const block of splitBlocks(open(file))) {
      bytes += block.length;
      const { weak, strong } = hashBlock(block);
      yield delimited(encodeField(1, weak), encodeField(2, strong));
    }
    if (bytes !== size) throw new Error(`${path} has ${bytes} bytes instead of ${size}.`);
  }
}

/** The bytes in blocks of 64 KiB; an empty file has one without bytes. */
export async function* splitBlocks(content: Bytes): AsyncGenerator<Buffer> {
  let pieces: Buffer[] = [];
  let filled = 0;
  let isEmpty = true;
  for await (const chunk of content) {
    for (let at = 0; at < chunk.length;) {
      const piece = chunk.subarray(at, at + BLOCK_BYTES - filled);
      pieces.push(piece);
      at += piece.length;
      filled += piece.length;
      if (filled < BLOCK_BYTES) continue;
      yield joinedPieces(pieces);
      isEmpty = false;
      pieces = [];
      filled = 0;
    }
  }
  if (filled > 0 || isEmpty) yield joinedPieces(pieces);
}

const joinedPieces = (pieces: Buffer[]) => (pieces.length === 1 ? pieces[0]! : Buffer.concat(pieces));

function hashBlock(bytes: Buffer): BlockHash {
  // Two sums of 16 bits: of the bytes, and of these sums.
  let [sum, sums] = [0, 0];
  for (const byte of bytes) {
    sum = (sum + byte) & 0xffff;
    sums = (sums + sum) & 0xffff;
  }
  return { weak: (sums * 0x10000 + sum) >>> 0, strong: createHash('md5').update(bytes).digest() };
}
