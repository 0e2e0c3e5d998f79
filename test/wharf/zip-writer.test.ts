import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { openPromise } from 'yauzl';
import { BLOCK_BYTES, EMPTY_CONTAINER } from '../../src/wharf/pwr/container';
import type { Container } from '../../src/wharf/pwr/entries';
import type { NewFile } from '../../src/wharf/pwr/patch';
import { openZip } from '../../src/wharf/zip/zip-archive';
import { writeZip } from '../../src/wharf/zip/zip-writer';
import { chunked, joined } from '../support/pushed-builds';
import { runIf } from '../support/run-if';
import { temporaryFolder } from '../support/temporary';

const MTIME = new Date('2026-11-28T12:34:57Z');
/** Smaller than a piece, as large as one, and streamed. */
const CONTENTS = [
  Buffer.alloc(0),
  Buffer.from('text'),
  randomBytes(BLOCK_BYTES),
  randomBytes(3 * BLOCK_BYTES),
];
const BUILD: Container = {
  files: CONTENTS.map(({ length: size }, i) => ({ path: `größe/${i}`, mode: i === 1 ? 0o755 : 0o644, size })),
  folders: [
    { path: 'größe', mode: 0o755 },
    { path: 'empty', mode: 0o700 | 0o44 },
  ],
  links: [{ path: 'link', mode: 0o777, target: 'größe/1' }],
};

let folder: string;
let archive: string;
beforeAll(async () => {
  folder = await temporaryFolder('zip-writer-');
  archive = join(folder, 'archive.zip');
});
afterAll(() => rmSync(folder, { recursive: true }));

async function* listFiles({ files }: Container): AsyncGenerator<NewFile> {
  for (const [i, entry] of files.entries())
    yield await Promise.resolve({ entry, content: chunked(CONTENTS[i]!) });
}

const write = async (build: Container, mtime = MTIME) =>
  writeFileSync(archive, await joined(writeZip(build, listFiles(build), mtime)));

test('a zip archive has the entries of the build', async () => {
  await write(BUILD);
  const zip = await openZip(archive, 1e9);
  const sorted = ({ files, folders, links }: Container) => ({
    files,
    folders: folders.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
    links,
  });
  expect(sorted(zip.container)).toEqual(sorted(BUILD));
  for (const [i, content] of CONTENTS.entries())
    expect((await joined(zip.read(i))).equals(content)).toBe(true);
  zip.close();
});

test('more entries than 16 bits can count are listed', async () => {
  const folders = Array.from({ length: 0x10000 }, (_, i) => ({ path: `${i}`, mode: 0o755 }));
  await write({ ...EMPTY_CONTAINER, folders });
  const zip = await openZip(archive, 1e9);
  const paths = zip.container.folders.map(({ path }) => path).join();
  expect(paths === folders.map(({ path }) => path).join()).toBe(true);
  zip.close();
});

test('an error of the content is that of the archive', async () => {
  const failing = async function* () {
    yield await Promise.resolve(CONTENTS[3]!);
    throw new Error('differs from the signature');
  };
  for (const entry of [BUILD.files[1]!, BUILD.files[3]!]) {
    const files = (async function* () {
      yield await Promise.resolve({ entry, content: failing() });
    })();
    await expect(joined(writeZip(BUILD, files, MTIME))).rejects.toThrow('differs from the signature');
  }
});

test.each([
  ['0001-01-01T00:00:00Z', '1980-01-01T00:00:00.000Z'],
  ['1979-12-31T23:59:59Z', '1980-01-01T00:00:00.000Z'],
  ['2038-01-19T03:14:07Z', '2038-01-19T03:14:07.000Z'],
  ['2038-01-19T03:14:08Z', '2038-01-19T03:14:08.000Z'],
  ['9999-12-31T23:59:59Z', '2107-12-31T23:59:58.000Z'],
])('a build of %s gets the nearest time of the format, %s', async (mtime, written) => {
  await write(BUILD, new Date(mtime));
  const zip = await openPromise(archive);
  const times = new Set<string>();
  for await (const entry of zip.eachEntry())
    times.add(entry.getLastModDate({ timezone: 'UTC' }).toISOString());
  expect([...times]).toEqual([written]);
});

const hasPython = () => {
  try {
    return execFileSync('python3', ['--version']).length > 0;
  } catch {
    return false;
  }
};

runIf(hasPython(), 'Python is missing').test('Python reads the archive', async () => {
  await write(BUILD);
  const script = `
import sys, zipfile
with zipfile.ZipFile(sys.argv[1]) as z:
    assert z.testzip() is None
    for i in z.infolist(): print(i.filename, oct(i.external_attr >> 16), i.file_size, i.date_time)`;
  const time = '(2026, 11, 28, 12, 34, 56)';
  const listed = execFileSync('python3', ['-c', script, archive], { encoding: 'utf8' }).trim().split('\n');
  expect(listed).toEqual([
    `größe/ 0o40755 0 ${time}`,
    `empty/ 0o40744 0 ${time}`,
    `größe/0 0o100644 0 ${time}`,
    `größe/1 0o100755 4 ${time}`,
    `größe/2 0o100644 ${BLOCK_BYTES} ${time}`,
    `größe/3 0o100644 ${3 * BLOCK_BYTES} ${time}`,
    `link 0o120777 9 ${time}`,
  ]);
});
