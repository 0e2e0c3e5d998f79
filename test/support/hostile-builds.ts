import { brotliCompressSync, constants } from 'node:zlib';
import { EMPTY_CONTAINER, encodeContainer } from '../../src/wharf/pwr/container';
import type { Container } from '../../src/wharf/pwr/entries';
import { PATCH_MAGIC, SIGNATURE_MAGIC } from '../../src/wharf/pwr/message-reader';
import { delimited, encodeField, encodeMessageField, encodeVarint } from '../../src/wharf/pwr/protobuf';
import { encodeOperation, type Operation } from './pushed-builds';

const MEGABYTE = 2 ** 20;

const rawFile = (magic: number, content: Buffer): Buffer => {
  const start = Buffer.alloc(4);
  start.writeUInt32LE(magic);
  const settings = Buffer.concat([encodeField(1, 1), encodeField(2, 1)]);
  const compressed = brotliCompressSync(content, { params: { [constants.BROTLI_PARAM_QUALITY]: 1 } });
  return Buffer.concat([start, delimited(encodeMessageField(1, settings)), compressed]);
};

/** A signature with these messages, and without hashes. */
export const rawSignature = (...messages: Buffer[]) => rawFile(SIGNATURE_MAGIC, Buffer.concat(messages));
export const rawPatch = (...messages: Buffer[]) => rawFile(PATCH_MAGIC, Buffer.concat(messages));

const containing = (entries: Partial<Container>): Container => ({ ...EMPTY_CONTAINER, ...entries });
const file = (path: string, size = 0) => ({ path, mode: 0o644, size });
const link = (path: string, target: string) => ({ path, mode: 0o777, target });
const GAME = delimited(encodeContainer(containing({ files: [file('game', 1000)] })));
const HASH = delimited(encodeField(1, 1), encodeField(2, Buffer.alloc(16, 1)));

/** The files of a push with these entries, whose hashes are wrong. */
function withEntries(entries: Partial<Container>) {
  const container = delimited(encodeContainer(containing(entries)));
  const hashes = Buffer.concat((entries.files ?? []).map(() => HASH));
  return {
    signature: rawSignature(container, hashes),
    patch: rawPatch(delimited(encodeContainer(EMPTY_CONTAINER)), container),
  };
}

/** A push of one file of 1,000 bytes with these operations. */
function withOperations(...operations: (Operation | Buffer)[]) {
  const encoded = operations.map((one) => delimited(Buffer.isBuffer(one) ? one : encodeOperation(one)));
  return {
    signature: rawSignature(GAME, HASH),
    patch: rawPatch(delimited(encodeContainer(EMPTY_CONTAINER)), GAME, delimited(), ...encoded),
  };
}

const valid = () => withOperations({ data: Buffer.alloc(1000) }, encodeField(1, 2049));

/** Links that lead through hundreds of folders, and a hundred thousand links to the first of them. */
function longLinks() {
  const detour = 'a/../'.repeat(200);
  const chain = Array.from({ length: 39 }, (_, i) => link(`chain ${i}`, `${detour}chain ${i + 1}`));
  const starts = Array.from({ length: 100_000 }, (_, i) => link(`start ${i}`, 'chain 0'));
  return withEntries({ links: [...chain, link('chain 39', 'end'), ...starts] });
}

const HEAD_OF_4_GB = encodeVarint(4_000_000_000);

/** Pushes that must fail, and the text of the error. */
export const HOSTILE_BUILDS: [
  name: string,
  files: () => { patch: Buffer; signature: Buffer },
  error: string,
][] = [
  [
    'a path outside of the build',
    () => withEntries({ files: [file('../game')] }),
    '"../game" isn’t a relative path',
  ],
  [
    'an absolute path',
    () => withEntries({ files: [file('/etc/passwd')] }),
    '"/etc/passwd" isn’t a relative path',
  ],
  ['a path with a NUL', () => withEntries({ files: [file('a\0b')] }), 'isn’t a relative path'],
  [
    'a link out of the build',
    () => withEntries({ links: [link('a', '../../etc')] }),
    'The link a points outside',
  ],
  [
    'a link out of the build through another one',
    () => withEntries({ links: [link('b/a', 'up/../x'), link('b/up', '..')] }),
    'points outside',
  ],
  ['a path twice', () => withEntries({ files: [file('a'), file('a')] }), 'a is in the build twice'],
  ['paths that differ by case', () => withEntries({ files: [file('a'), file('A')] }), 'only by case or form'],
  [
    '10 million entries',
    () => ({
      ...valid(),
      signature: rawSignature(encodeVarint(20_000_000), Buffer.alloc(20_000_000, '\n\0')),
    }),
    'The build has more than 200000 entries.',
  ],
  [
    '200,001 entries',
    () => withEntries({ files: Array.from({ length: 200_001 }, (_, i) => file(`file ${i}`)) }),
    'The build has more than 200000 entries.',
  ],
  [
    'links that lead through many folders',
    longLinks,
    'The links of the build lead through too many folders.',
  ],
  [
    'blocks of a parent that it has not',
    () => withOperations({ file: 7, block: 5, count: 1 }),
    'blocks that its parent doesn’t have',
  ],
  [
    'more bytes than its file',
    () => withOperations({ data: Buffer.alloc(1001) }),
    'game gets more than its 1000 bytes',
  ],
  ['other bytes than its hashes', valid, 'Block 0 of game doesn’t match the signature.'],
  [
    'a patch that is 256 MB when it is decompressed',
    () => withOperations(...Array.from({ length: 64 }, () => ({ data: Buffer.alloc(4 * MEGABYTE) }))),
    'game gets more than its 1000 bytes',
  ],
  [
    'a signature with many bytes after its end',
    () => ({ ...valid(), signature: rawSignature(GAME, HASH, Buffer.alloc(256 * MEGABYTE)) }),
    'The file has bytes after its end.',
  ],
  [
    'files that are too large together',
    () => withEntries({ files: [file('a', 30_000_000), file('b', 30_000_000)] }),
    'The files have more than 40000000 bytes.',
  ],
  [
    'a signature with a message of 4 GB',
    () => ({ ...valid(), signature: rawSignature(HEAD_OF_4_GB) }),
    'A message has 4000000000 bytes',
  ],
  [
    'a patch with a message of 4 GB',
    () => ({ ...valid(), patch: rawPatch(HEAD_OF_4_GB) }),
    'A message has 4000000000 bytes',
  ],
];
