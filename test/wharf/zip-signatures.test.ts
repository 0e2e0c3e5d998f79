import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { createReadStream, mkdirSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { BuildFileError } from '../../src/wharf/pwr/build-file-error';
import { BLOCK_BYTES } from '../../src/wharf/pwr/container';
import { MAX_ENTRIES } from '../../src/wharf/pwr/paths';
import { readSignature, type Signature } from '../../src/wharf/pwr/signature';
import { openZip } from '../../src/wharf/zip/zip-archive';
import { signZip } from '../../src/wharf/zip/zip-signature';
import { joined } from '../support/pushed-builds';
import { runIf } from '../support/run-if';
import { temporaryFolder } from '../support/temporary';
import { type ZipEntry, type ZipOptions, createZip } from '../support/zip-archives';

const MAX_BYTES = 10_000_000;
const { signal } = new AbortController();

let folder: string;
let number = 0;
beforeAll(async () => {
  folder = await temporaryFolder('zip-');
});
afterAll(() => rmSync(folder, { recursive: true }));

const newPath = () => join(folder, String(number++));

function stored(entries: ZipEntry[], options?: ZipOptions): string {
  const archive = newPath();
  writeFileSync(archive, createZip(entries, options));
  return archive;
}

async function signArchive(archive: string): Promise<Signature> {
  const signature = newPath();
  await signZip({ archive, signature, maxBytes: MAX_BYTES }, signal);
  return readSignature(createReadStream(signature), MAX_BYTES);
}

const findZipProblem = async (archive: string, maxBytes = MAX_BYTES): Promise<string> => {
  const zip = await openZip(archive, maxBytes).catch((error: unknown) => error);
  if (zip instanceof BuildFileError) return zip.message;
  if (zip instanceof Error) throw zip;
  const { container, read, close } = zip as Awaited<ReturnType<typeof openZip>>;
  try {
    for (const place of container.files.keys()) await joined(read(place));
    return 'none';
  } catch (error) {
    if (error instanceof BuildFileError) return error.message;
    throw error;
  } finally {
    close();
  }
};

const text = (content: string) => Buffer.from(content);

test('the signature of a zip archive lists its entries in the order of the archive, and a hash of each block', async () => {
  const large = randomBytes(2 * BLOCK_BYTES + 5);
  const signature = await signArchive(
    stored([
      { name: 'z.txt', content: text('last in the alphabet') },
      { name: 'data/deep/large.bin', content: large, method: 0 },
      { name: 'bin/', mode: 0o040700 },
      { name: 'bin/run', content: text('#!/bin/sh'), mode: 0o100755 },
      { name: 'run', content: text('bin/run'), mode: 0o120777 },
      { name: 'empty' },
    ]),
  );
  expect(signature.container).toEqual({
    files: [
      { path: 'z.txt', mode: 0o644, size: 20 },
      { path: 'data/deep/large.bin', mode: 0o644, size: large.length },
      { path: 'bin/run', mode: 0o755, size: 9 },
      { path: 'empty', mode: 0o644, size: 0 },
    ],
    folders: [
      { path: 'data/deep', mode: 0o755 },
      { path: 'bin', mode: 0o744 },
    ],
    links: [{ path: 'run', mode: 0o777, target: 'bin/run' }],
  });
  expect(signature.blocks).toBe(6);
  expect(signature.matches(1, 0, large.subarray(0, BLOCK_BYTES))).toBe(true);
  expect(signature.matches(1, 2, large.subarray(2 * BLOCK_BYTES))).toBe(true);
  expect(signature.matches(1, 1, large.subarray(0, BLOCK_BYTES))).toBe(false);
  expect(signature.matches(3, 0, Buffer.alloc(0))).toBe(true);
});

test('sizes of 64 bits and a comment are read', async () => {
  const entries = [
    { name: 'a', content: text('a') },
    { name: 'b', content: text('b'), method: 0 },
  ];
  const { container } = await signArchive(stored(entries, { wide: true, comment: 'made by a tool' }));
  expect(container.files.map(({ path }) => path)).toEqual(['a', 'b']);
});

test.each<[string, Partial<ZipEntry>, number]>([
  ['Unix', { mode: 0o100400 }, 0o644],
  ['Unix without a type', { mode: 0o755 }, 0o755],
  ['Unix with set user ID', { mode: 0o104755 }, 0o755],
  ['macOS', { system: 19, mode: 0o100711 }, 0o755],
  ['Windows', { system: 11, attributes: 0x20 }, 0o666],
  ['DOS, read-only', { system: 0, attributes: 0x01 }, 0o644],
  ['another system', { system: 7, attributes: 0 }, 0o644],
])('permissions of %s', async (_, entry, mode) => {
  const { container } = await signArchive(stored([{ name: 'a', ...entry }]));
  expect(container.files).toEqual([{ path: 'a', mode, size: 0 }]);
});

test('a folder of DOS, and names with redundant parts', async () => {
  const { container } = await signArchive(
    stored([
      { name: './', mode: 0o040755 },
      { name: './in/', system: 0, attributes: 0x10 },
      { name: './in/./a', content: text('a') },
    ]),
  );
  expect(container).toEqual({
    files: [{ path: 'in/a', mode: 0o644, size: 1 }],
    folders: [{ path: 'in', mode: 0o777 }],
    links: [],
  });
});

describe('an archive has no signature', () => {
  test.each<[string, ZipEntry[], string, ZipOptions?]>([
    ['with a path out of it', [{ name: '../a' }], 'isn’t a relative path inside of the build'],
    ['with a path out of it, later', [{ name: 'a/../../b' }], 'isn’t a relative path inside of the build'],
    ['with an absolute path', [{ name: '/etc/passwd' }], 'isn’t a relative path inside of the build'],
    ['with a drive', [{ name: 'C:/a' }], 'isn’t a relative path inside of the build'],
    ['with backslashes', [{ name: 'in\\a' }], 'isn’t a relative path inside of the build'],
    ['with a NUL', [{ name: 'a\0' }], 'isn’t a relative path inside of the build'],
    ['without a name', [{ name: '' }], 'isn’t a relative path inside of the build'],
    ['with a name in another encoding', [{ name: Buffer.from([0x82, 0xa0]), flags: 0 }], 'isn’t valid UTF-8'],
    ['with a path twice', [{ name: 'a' }, { name: './a' }], 'is in the build twice'],
    ['with paths that differ by case', [{ name: 'A/b' }, { name: 'a/c' }], 'only by case or form'],
    [
      'with a file inside of a link',
      [{ name: 'l', mode: 0o120777, content: text('x') }, { name: 'l/a' }],
      'is in the build twice',
    ],
    [
      'with a link out of it',
      [{ name: 'l', mode: 0o120777, content: text('../..') }],
      'points outside of the build',
    ],
    ['with a long link', [{ name: 'l', mode: 0o120777, content: Buffer.alloc(2000, 'a') }], 'is too long'],
    ['with a device', [{ name: 'tty', mode: 0o020666 }], 'neither a file nor a folder nor a link'],
    ['that is encrypted', [{ name: 'a', flags: 0x801 }], 'a is encrypted'],
    ['with strong encryption', [{ name: 'a', flags: 0x841 }], 'encryption'],
    ['with another compression', [{ name: 'a', method: 14 }], 'compressed with method 14'],
    ['with a wrong checksum', [{ name: 'a', content: text('a'), crc: 1 }], 'differs from its checksum'],
    [
      'with more bytes than its entry says',
      [{ name: 'a', content: Buffer.alloc(5000), size: 100 }],
      'a is damaged',
    ],
    ['with fewer bytes than its entry says', [{ name: 'a', content: text('a'), size: 100 }], 'a is damaged'],
    ['with an entry beyond its end', [{ name: 'a', content: text('a'), offset: 1e6 }], 'a is damaged'],
    ['with more than 200,000 entries', [], 'more than 200000 entries', { count: MAX_ENTRIES + 1 }],
    ['with fewer entries than it says', [{ name: 'a' }], 'can’t be read', { count: 3 }],
  ])('%s', async (...[, entries, problem, options]) => {
    expect(await findZipProblem(stored(entries, options))).toContain(problem);
  });

  test('a file that isn’t a zip archive is reported', async () => {
    const path = newPath();
    writeFileSync(path, 'text');
    expect(await findZipProblem(path)).toContain('The zip archive can’t be read');
    writeFileSync(path, '');
    expect(await findZipProblem(path)).toContain('The zip archive can’t be read');
  });

  test('an archive that is cut anywhere is reported', async () => {
    const whole = createZip([
      { name: 'a', content: randomBytes(200) },
      { name: 'b/c', content: text('c') },
    ]);
    const path = newPath();
    for (let bytes = 0; bytes < whole.length; bytes += 7) {
      writeFileSync(path, whole.subarray(0, bytes));
      expect(await findZipProblem(path)).not.toBe('none');
    }
  });

  test('more bytes than allowed aren’t read', async () => {
    const bomb = Buffer.alloc(MAX_BYTES / 2, 0);
    const archive = stored([
      { name: 'a', content: bomb },
      { name: 'b', content: bomb },
      { name: 'c', content: text('c') },
    ]);
    expect((await stat(archive)).size).toBeLessThan(MAX_BYTES / 100);
    expect(await findZipProblem(archive)).toContain('more than 10000000 bytes');
  });

  test('the thread reports the problem', async () => {
    await expect(signArchive(stored([{ name: '../a' }]))).rejects.toThrow(BuildFileError);
  });
});

test('a flipped bit is an error, or the archive has the same files', async () => {
  const content = randomBytes(300);
  const whole = createZip([
    { name: 'a', content },
    { name: 'b/c', content: text('c') },
  ]);
  const path = newPath();
  for (let bit = 0; bit < whole.length * 8; bit += 5) {
    const bytes = Buffer.from(whole);
    bytes[bit >> 3]! ^= 1 << (bit & 7);
    writeFileSync(path, bytes);
    if ((await findZipProblem(path)) !== 'none') continue;
    const zip = await openZip(path, MAX_BYTES);
    for (const [place, { size }] of zip.container.files.entries())
      expect([content, text('c')].find((one) => one.length === size)).toEqual(await joined(zip.read(place)));
    zip.close();
  }
});

test('an archive that is missing is an error of the disk', async () => {
  await expect(signArchive(newPath())).rejects.toThrow('ENOENT');
});

test('signing ends when it is canceled', async () => {
  const content = Buffer.alloc(MAX_BYTES - 1);
  const request = { archive: stored([{ name: 'a', content }]), signature: newPath(), maxBytes: MAX_BYTES };
  const canceled = new AbortController();
  const signing = signZip(request, canceled.signal);
  canceled.abort(new Error('stopped'));
  await expect(signing).rejects.toThrow('stopped');
});

const has = (command: string, ...args: string[]) => {
  try {
    execFileSync(command, args, { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  }
};

describe('archives of other programs', () => {
  const content = randomBytes(BLOCK_BYTES + 1);
  const build = () => {
    const path = newPath();
    mkdirSync(join(path, 'in'), { recursive: true });
    writeFileSync(join(path, 'in/größe.bin'), content);
    writeFileSync(join(path, 'run'), '#!/bin/sh', { mode: 0o755 });
    symlinkSync('in/größe.bin', join(path, 'link'));
    return path;
  };

  runIf(has('zip', '-v'), 'zip is missing').test('zip', async () => {
    const archive = `${newPath()}.zip`;
    execFileSync('zip', ['-q', '-r', '-y', archive, '.'], { cwd: build() });
    const { container, matches } = await bound(archive);
    expect(container.files.map(({ path, mode }) => [path, mode]).sort()).toEqual([
      ['in/größe.bin', 0o644],
      ['run', 0o755],
    ]);
    expect(container.links).toEqual([{ path: 'link', mode: 0o777, target: 'in/größe.bin' }]);
    expect(matches('in/größe.bin', content.subarray(0, BLOCK_BYTES))).toBe(true);
  });

  // Streamed to a pipe, so that sizes follow the files, in the format with 64 bits.
  runIf(has('zip', '-v'), 'zip is missing').test('zip, as a stream', async () => {
    const archive = newPath();
    const bytes = execFileSync('zip', ['-q', '-r', '-', 'run', 'in'], { cwd: build() });
    writeFileSync(archive, bytes);
    const { container, matches } = await bound(archive);
    expect(container.files).toHaveLength(2);
    expect(matches('in/größe.bin', content.subarray(0, BLOCK_BYTES))).toBe(true);
  });

  runIf(has('python3', '-c', ''), 'Python is missing').test('zipfile of Python', async () => {
    const archive = newPath();
    execFileSync('python3', ['-m', 'zipfile', '-c', archive, 'run', 'in'], { cwd: build() });
    const { container, matches } = await bound(archive);
    expect(container.files.map(({ path }) => path)).toEqual(['run', 'in/größe.bin']);
    expect(matches('in/größe.bin', content.subarray(0, BLOCK_BYTES))).toBe(true);
  });

  async function bound(archive: string) {
    const signature = await signArchive(archive);
    const { container } = signature;
    const matches = (path: string, bytes: Buffer) =>
      signature.matches(
        container.files.findIndex((file) => file.path === path),
        0,
        bytes,
      );
    return { container, matches };
  }
});
