import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { parentPort, workerData } from 'node:worker_threads';
import { Clock } from '../platform/config/clock';
import { createStorage } from '../uploads/storage/create-storage';
import type { FileStorage } from '../uploads/storage/file-storage';
import { type Part, readParts } from '../uploads/sessions/read-parts';
import { BuildFileError } from '../wharf/pwr/build-file-error';
import { readEntries } from '../wharf/pwr/container';
import type { Container } from '../wharf/pwr/entries';
import type { Bytes } from '../wharf/pwr/message-reader';
import { applyPatch, type Parent } from '../wharf/pwr/patch';
import { readEntriesMessage, readSignature, type Signature } from '../wharf/pwr/signature';
import { openCheckedZip, type ZipArchive } from '../wharf/zip/zip-archive';
import { writeZip } from '../wharf/zip/zip-writer';
import type { BuildOutcome, BuildWork, ProcessedBuild } from './build-thread';

async function build(work: BuildWork): Promise<ProcessedBuild> {
  const { storage: settings, keys, max_bytes } = work;
  const storage = createStorage({ ...settings, API_KEY_PEPPER: undefined }, new Clock(), { url: '' });
  const signature = await readSignature(readParts(storage, work.signature), max_bytes);
  const parent = await ParentFiles.open(work, storage);
  const path = join(work.folder, 'archive.zip');
  const archive = await writeArchive(work, storage, parent, signature, path).finally(() => parent?.close());
  const put = (key: string, size: number, content: Readable) =>
    storage.put(key, size, content, new AbortController().signal);
  const copy = async (key: string, parts: Part[]) => {
    const size = parts.reduce((sum, part) => sum + part.size, 0);
    await put(key, size, Readable.from(readParts(storage, parts)));
    return { size };
  };
  await put(keys.archive, archive.size, createReadStream(path));
  return {
    archive,
    signature: await copy(keys.signature, work.signature),
    patch: await copy(keys.patch, work.patch),
  };
}

async function writeArchive(
  { patch, created_at }: BuildWork,
  storage: FileStorage,
  parent: ParentFiles | undefined,
  signature: Signature,
  path: string,
) {
  const files = applyPatch(readParts(storage, patch), parent ?? NO_PARENT, signature);
  const md5 = createHash('md5');
  let size = 0;
  const measured = async function* () {
    for await (const chunk of writeZip(signature.container, files, new Date(created_at))) {
      md5.update(chunk);
      size += chunk.length;
      yield chunk;
    }
  };
  await pipeline(measured, createWriteStream(path));
  return { size, md5_hash: md5.digest('hex') };
}

const NO_PARENT: Parent = {
  entries: () => [],
  sizes: [],
  read: () => {
    throw new BuildFileError('The patch refers to files of a parent that it doesn’t have.');
  },
};

/** The files of the parent's archive. A file that is read from a position within it is extracted first. */
class ParentFiles implements Parent {
  private readonly extracted = new Map<number, Promise<string>>();

  private constructor(
    private readonly folder: string,
    /** The message with its entries, which needs less memory than a container. */
    private readonly message: Buffer,
    private readonly zip: ZipArchive,
    readonly sizes: Float64Array,
    /** The number of each file in the archive. */
    private readonly numbers: Int32Array,
  ) {}

  static async open(work: BuildWork, storage: FileStorage): Promise<ParentFiles | undefined> {
    if (!work.parent) return undefined;
    const { archive, signature } = work.parent;
    const path = join(work.folder, 'parent.zip');
    await pipeline(storage.read(archive.file_key, 0, archive.size), createWriteStream(path));
    const message = await readEntriesMessage(storage.read(signature.file_key, 0, signature.size));
    const zip = await openCheckedZip(path, work.max_bytes);
    const { sizes, numbers } = findFiles(message, zip.container);
    zip.clearContainer();
    return new ParentFiles(work.folder, message, zip, sizes, numbers);
  }

  entries() {
    return readEntries(this.message);
  }

  async *read(file: number, start: number, end: number): AsyncGenerator<Buffer> {
    const number = this.numbers[file]!;
    if (number < 0) throw new Error(`The archive of the parent has no file ${file}.`);
    if (start === 0 && end === this.sizes[file] && !this.extracted.has(file)) {
      yield* this.zip.read(number);
      return;
    }
    const extracted = this.extracted.get(file) ?? this.extract(number);
    this.extracted.set(file, extracted);
    yield* createReadStream(await extracted, { start, end: end - 1 }) as Bytes;
  }

  close(): void {
    this.zip.close();
  }

  private async extract(number: number): Promise<string> {
    const path = join(this.folder, `parent-${number}`);
    await pipeline(this.zip.read(number), createWriteStream(path));
    return path;
  }
}

/** The size of each file, and its number in the archive. */
function findFiles(message: Buffer, archive: Container) {
  const numbersByPath = new Map(archive.files.map(({ path }, number) => [path, number]));
  const [sizes, numbers]: [number[], number[]] = [[], []];
  for (const [, entry] of readEntries(message)) {
    if (!('size' in entry)) continue;
    sizes.push(entry.size);
    numbers.push(numbersByPath.get(entry.path) ?? -1);
  }
  return { sizes: Float64Array.from(sizes), numbers: Int32Array.from(numbers) };
}

void build(workerData as BuildWork)
  .then((built): BuildOutcome => ({ built }))
  .catch((error: unknown): BuildOutcome => {
    if (error instanceof BuildFileError) return { problem: error.message };
    throw error;
  })
  .then((outcome) => parentPort!.postMessage(outcome));
