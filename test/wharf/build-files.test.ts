import { randomBytes } from 'node:crypto';
import { brotliCompressSync, gzipSync } from 'node:zlib';
import { BuildFileError } from '../../src/wharf/pwr/build-file-error';
import { BLOCK_BYTES, encodeContainer } from '../../src/wharf/pwr/container';
import type { Container } from '../../src/wharf/pwr/entries';
import { PATCH_MAGIC, SIGNATURE_MAGIC } from '../../src/wharf/pwr/message-reader';
import { MAX_ENTRIES } from '../../src/wharf/pwr/paths';
import { delimited, encodeField, encodeMessageField, encodeVarint } from '../../src/wharf/pwr/protobuf';
import { readSignature, writeSignature } from '../../src/wharf/pwr/signature';
import {
  chunked,
  encodeMessages,
  encodeOperation,
  encodePatch,
  joined,
  NO_TREE,
  type Operation,
  rebuild,
  type Tree,
} from '../support/pushed-builds';

const file = (path: string, size = 0, mode = 0o644) => ({ path, mode, size });
const folder = (path: string) => ({ path, mode: 0o755 });
const link = (path: string, target: string) => ({ path, mode: 0o777, target });

const containing = (entries: Partial<Container>): Container => ({
  files: [],
  folders: [],
  links: [],
  ...entries,
});

const tree = (contents: Record<string, Buffer>, entries: Partial<Container> = {}): Tree => ({
  container: containing({
    files: Object.entries(contents).map(([path, bytes]) => file(path, bytes.length)),
    ...entries,
  }),
  contents: Object.values(contents),
});

const encodeSignature = ({ container, contents }: Tree) =>
  joined(writeSignature(container, (place) => chunked(contents[place]!)));

/** Rebuilds a build whose patch has these operations. */
const patched = async (parent: Tree, build: Tree, ...operations: Operation[][]) =>
  rebuild(
    await encodePatch(parent.container, build.container, operations),
    await encodeSignature(build),
    parent,
  );

/** The error for a build with these entries and empty files. */
const rejectedEntries = async (entries: Partial<Container>) => {
  const container = containing(entries);
  const build = { container, contents: container.files.map(() => Buffer.alloc(0)) };
  return patched(NO_TREE, build, ...container.files.map(() => [])).then(
    () => 'accepted',
    ({ message }: Error) => message,
  );
};

const OLD = tree({ a: randomBytes(3 * BLOCK_BYTES + 10), empty: Buffer.alloc(0), b: randomBytes(50) });
const [a, , b] = OLD.contents as [Buffer, Buffer, Buffer];

describe('a patch', () => {
  test('combines blocks of the parent with new bytes', async () => {
    const fresh = randomBytes(100_000);
    const build = tree(
      {
        moved: a,
        'in/between': Buffer.concat([
          a.subarray(BLOCK_BYTES, 2 * BLOCK_BYTES),
          fresh,
          a.subarray(3 * BLOCK_BYTES),
        ]),
        nothing: Buffer.alloc(0),
      },
      { folders: [folder('in'), folder('logs')], links: [link('in/link', '../moved')] },
    );
    const operations = [
      [{ file: 0, block: 0, count: 4 }, { data: Buffer.alloc(0) }],
      [{ file: 0, block: 1, count: 1 }, { data: fresh }, { file: 0, block: 3, count: 1 }],
      [{ file: 1, block: 0, count: 1 }],
    ];
    expect(await patched(OLD, build, ...operations)).toEqual(build);
  });

  test.each<[string, Operation[], string]>([
    [
      'of a file that the parent lacks',
      [{ file: 3, block: 0, count: 1 }],
      'blocks that its parent doesn’t have',
    ],
    ['that begin after the file', [{ file: 0, block: 4, count: 1 }], 'blocks that its parent doesn’t have'],
    ['that end after the file', [{ file: 0, block: 0, count: 5 }], 'blocks that its parent doesn’t have'],
    ['that are none', [{ file: 0, block: 0, count: 0 }], 'blocks that its parent doesn’t have'],
    ['that are too many for the new file', [{ file: 0, block: 0, count: 2 }], 'gets more than its 50 bytes'],
    ['of other content', [{ data: a.subarray(0, 50) }], 'Block 0 of new doesn’t match the signature'],
    ['that are too few for the new file', [{ data: b.subarray(0, 49) }], 'gets only 49 of its 50 bytes'],
    [
      'without bytes, without end',
      Array.from({ length: 3 }, () => ({ file: 1, block: 0, count: 1 })),
      'too many operations without bytes',
    ],
  ])('with blocks %s is rejected', async (_, operations, problem) => {
    await expect(patched(OLD, tree({ new: b }), operations)).rejects.toThrow(problem);
  });

  test('is rejected if it has a different parent, or a different build than the signature', async () => {
    const build = tree({ b });
    const copied = [[{ file: 2, block: 0, count: 1 }]];
    const patch = await encodePatch(OLD.container, build.container, copied);
    const other = tree({ a, empty: Buffer.alloc(0), c: b });
    await expect(rebuild(patch, await encodeSignature(build), other)).rejects.toThrow('another parent build');
    for (const changed of [tree({ c: b }), tree({ b }, { folders: [folder('x')] })])
      await expect(rebuild(patch, await encodeSignature(changed), OLD)).rejects.toThrow(
        'of different builds',
      );
    const executable = { ...build, container: containing({ files: [file('b', 50, 0o755)] }) };
    await expect(rebuild(patch, await encodeSignature(executable), OLD)).rejects.toThrow(
      'of different builds',
    );
  });

  test.each([
    ['binary differences', [encodeField(1, 1)], 'patched with bsdiff'],
    ['an unknown kind of differences', [encodeField(1, 2)], 'patched in an unknown way'],
    ['another order', [encodeField(16, 1)], 'files in another order'],
    ['an unknown operation', [Buffer.alloc(0), encodeField(1, 7)], 'an unknown operation'],
    [
      'a mixture of operations',
      [Buffer.alloc(0), Buffer.concat([encodeOperation({ data: b }), encodeField(2, 1)])],
      'a mixture of operations',
    ],
    ['an unknown field', [encodeField(9, 1)], 'unknown field 9'],
    ['a repeated field', [Buffer.concat([encodeField(1, 1), encodeField(1, 1)])], 'Field 1 occurs twice'],
    ['a negative number', [Buffer.from([8, ...Array<number>(9).fill(255), 1])], 'negative or too large'],
    ['a field that is longer than its message', [Buffer.from([0x2a, 5, 1])], 'unknown field 5'],
    ['no operations', [], 'ends early'],
    [
      'operations after its end',
      [Buffer.alloc(0), encodeOperation({ data: b }), encodeField(1, 2049), Buffer.alloc(0)],
      'bytes after its end',
    ],
  ])('with %s is rejected', async (_, messages, problem) => {
    const build = tree({ b });
    const containers = [OLD, build].map(({ container }) => encodeContainer(container));
    const patch = await encodeMessages([...containers, ...messages]);
    await expect(rebuild(patch, await encodeSignature(build), OLD)).rejects.toThrow(problem);
  });
});

const raw = (compression: number, content: Buffer) => {
  const start = Buffer.alloc(4);
  start.writeUInt32LE(SIGNATURE_MAGIC);
  return Buffer.concat([start, delimited(encodeMessageField(1, encodeField(1, compression))), content]);
};
const messages = delimited(encodeContainer(containing({})));

describe('a file', () => {
  const opened = (signature: Buffer, maxBytes?: number) =>
    rebuild(Buffer.alloc(0), signature, NO_TREE, maxBytes).catch(({ message }: Error) => message);

  test('can be without compression', async () => {
    const [patch, signature] = [PATCH_MAGIC, SIGNATURE_MAGIC].map((magic) => {
      const bytes = raw(0, magic === PATCH_MAGIC ? Buffer.concat([messages, messages]) : messages);
      bytes.writeUInt32LE(magic);
      return bytes;
    }) as [Buffer, Buffer];
    expect(await rebuild(patch, signature, NO_TREE)).toEqual(NO_TREE);
  });

  test.each([
    ['without a magic number', Buffer.from('something else'), "isn't a signature"],
    ['that is empty', Buffer.alloc(0), 'ends early'],
    ['compressed with gzip', raw(2, gzipSync(messages)), 'compressed with gzip. Supported are Brotli'],
    ['compressed with zstd', raw(3, messages), 'compressed with zstd'],
    ['compressed in an unknown way', raw(4, messages), 'compressed with number 4'],
    ["that isn't Brotli", raw(1, Buffer.from('not at all')), 'decompressed'],
    ['with bytes after its end', raw(0, Buffer.concat([messages, Buffer.from([1])])), 'ends early'],
    ['with messages after its end', raw(0, Buffer.concat([messages, delimited()])), 'bytes after its end'],
    [
      'with a message of 4 GB',
      raw(0, encodeVarint(4_000_000_000)),
      'A message has 4000000000 bytes, more than 33554432',
    ],
    [
      'that is small, but decompressed would be large',
      raw(1, brotliCompressSync(Buffer.concat([encodeVarint(33_554_433), Buffer.alloc(33_554_433)]))),
      'A message has 33554433 bytes',
    ],
    [
      'with a hash of another length',
      raw(
        0,
        Buffer.concat([
          delimited(encodeContainer(containing({ files: [file('a')] }))),
          delimited(encodeField(2, 'short')),
        ]),
      ),
      'a hash of another length',
    ],
  ])('%s is rejected', async (_, bytes, problem) => {
    expect(await opened(bytes)).toContain(problem);
  });

  test('that can’t be read any further fails with the error of its storage, and is closed', async () => {
    let isClosed = false;
    const failing = async function* () {
      try {
        yield (await encodeSignature(OLD)).subarray(0, 20);
        throw new Error('the disk failed');
      } finally {
        isClosed = true;
      }
    };
    await expect(readSignature(failing(), 1_000_000)).rejects.toThrow('the disk failed');
    expect(isClosed).toBe(true);
  });

  test('is closed if it is rejected in the middle', async () => {
    let isClosed = false;
    const other = async function* () {
      try {
        for (;;) yield await Promise.resolve(raw(1, brotliCompressSync(delimited(Buffer.from('other')))));
      } finally {
        isClosed = true;
      }
    };
    await expect(readSignature(other(), 1_000_000)).rejects.toThrow(BuildFileError);
    expect(isClosed).toBe(true);
  });

  test('is rejected before its files are read if it has more bytes than allowed', async () => {
    const container = encodeContainer(containing({ files: [file('a', 600), file('b', 600)] }));
    expect(await opened(raw(0, delimited(container)), 1000)).toContain('more than 1000 bytes');
  });

  test.each([
    [
      'size',
      Buffer.concat([
        encodeMessageField(1, Buffer.concat([encodeField(1, 'a'), encodeField(2, 0o644), encodeField(3, 5)])),
        encodeField(16, 6),
      ]),
      'isn’t that of its files',
    ],
    [
      'offset',
      encodeMessageField(1, Buffer.concat([encodeField(1, 'a'), encodeField(2, 0o644), encodeField(4, 5)])),
      'doesn’t begin where',
    ],
    [
      'mode of a folder',
      encodeMessageField(1, Buffer.concat([encodeField(1, 'a'), encodeField(2, 2 ** 31)])),
      'of another type of entry',
    ],
    [
      'mode of a device',
      encodeMessageField(1, Buffer.concat([encodeField(1, 'a'), encodeField(2, 2 ** 26)])),
      'of another type of entry',
    ],
    [
      'mode of a file',
      encodeMessageField(3, Buffer.concat([encodeField(1, 'a'), encodeField(2, 0o777), encodeField(3, 'b')])),
      'of another type of entry',
    ],
    ["path that isn't UTF-8", encodeMessageField(1, encodeField(1, Buffer.from([0xff]))), 'valid UTF-8'],
  ])('with another %s is rejected', async (_, container, problem) => {
    expect(await opened(raw(0, delimited(container)))).toContain(problem);
  });
});

describe('paths', () => {
  test.each([
    '..',
    '../a',
    'a/../../b',
    '/a',
    'a//b',
    './a',
    'a/',
    '',
    'C:/a',
    'c:a',
    '..\\a',
    '\\a',
    'a\0',
    'a'.repeat(1025),
  ])('%j is rejected', async (path) => {
    const problem = 'isn’t a relative path inside of the build';
    expect(await rejectedEntries({ files: [file(path)] })).toContain(problem);
    expect(await rejectedEntries({ folders: [folder(path)] })).toContain(problem);
    expect(await rejectedEntries({ links: [link(path, 'a')] })).toContain(problem);
  });

  test.each<[string, Partial<Container>, string]>([
    ['twice', { files: [file('a'), file('a')] }, 'is in the build twice'],
    ['as a file and a folder', { files: [file('a')], folders: [folder('a')] }, 'is in the build twice'],
    ['as a link and a folder', { folders: [folder('a')], links: [link('a', 'b')] }, 'is in the build twice'],
    ['twice as a folder', { folders: [folder('a'), folder('a')] }, 'is in the build twice'],
    ['twice, by case', { files: [file('Game'), file('game')] }, 'only by case or form'],
    ['in a folder that differs by case', { files: [file('Data/a'), file('data/b')] }, 'only by case or form'],
    ['twice, by Unicode form', { files: [file('\u00e9'), file('e\u0301')] }, 'only by case or form'],
    ['inside of a file', { files: [file('a'), file('a/b')] }, 'is inside of a, which is a file'],
    ['inside of a file that follows', { files: [file('a/b'), file('a')] }, 'is in the build twice'],
    [
      'inside of a link',
      { folders: [folder('lib')], links: [link('a', 'lib'), link('a/b', 'c')] },
      'is inside of a, which is a link',
    ],
  ])('%s: is rejected', async (_, entries, problem) => {
    expect(await rejectedEntries(entries)).toContain(problem);
  });

  test('a link where files are is rejected', async () => {
    expect(await rejectedEntries({ files: [file('a/b')], links: [link('a', 'c')] })).toContain('twice');
  });

  test.each<[string, ...[path: string, target: string][]]>([
    ['up', ['a', '..']],
    ['up from a folder', ['in/a', '../../b']],
    ['to the root', ['a', '/etc/passwd']],
    ['to a drive', ['a', 'C:/Windows']],
    ['with a backslash', ['a', '..\\b']],
    ['nowhere', ['a', '']],
    ['up after a missing folder', ['a', 'missing/../../b']],
    ['up through another link', ['in/deep/a', '../b'], ['in/b', 'up/../..'], ['in/up', '.']],
    ['up through a link to a folder', ['here', 'in/deep/up/x'], ['in/deep/up', '../../..']],
  ])('a link %s is rejected', async (_, ...links) => {
    const entries = {
      folders: [folder('in'), folder('in/deep')],
      links: links.map(([path, to]) => link(path, to)),
    };
    expect(await rejectedEntries(entries)).toContain('points outside of the build');
  });

  test('links that follow each other without end are rejected', async () => {
    expect(await rejectedEntries({ links: [link('a', 'b'), link('b', 'a')] })).toContain('too many links');
  });

  test('links inside of the build are accepted, also if their target is missing', async () => {
    const links = [
      link('in/a', '../in/./b'),
      link('in/b', '../c'),
      link('c', 'missing/d'),
      link('up', 'in/..'),
    ];
    expect(await rejectedEntries({ folders: [folder('in')], links })).toBe('accepted');
  });

  test('more than 200,000 entries are rejected, with folders that only paths name', async () => {
    const files = Array.from({ length: MAX_ENTRIES / 2 + 1 }, (_, i) => file(`${i}/a`));
    const container = encodeContainer(containing({ files }));
    await expect(rebuild(Buffer.alloc(0), raw(0, delimited(container)), NO_TREE)).rejects.toThrow(
      'more than 200000 entries',
    );
  });
});
