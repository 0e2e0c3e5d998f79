/**
 * Pushes two builds of one channel to a service, as the upload tool does: a first one, and one of which every twentieth
 * block differs. Reports the time, the memory that the process needs in addition, the temporary files, and the longest
 * delay of the event loop, with and without the time in which the process waited for a CPU. Needs Linux.
 */
import { createCipheriv } from 'node:crypto';
import {
  closeSync,
  createWriteStream,
  openSync,
  readFileSync,
  readSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, readdir, rm, stat } from 'node:fs/promises';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { setTimeout as sleep } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { openEmbeddedPostgres } from '../../src/dev/embedded/embedded-postgres';
import { connectTo, importRecords } from '../../src/operator/import/import-records';
import { migrate } from '../../src/platform/database/migrate';
import { BLOCK_BYTES, EMPTY_CONTAINER, encodeContainer } from '../../src/wharf/pwr/container';
import type { Container } from '../../src/wharf/pwr/entries';
import { encodeFile, PATCH_MAGIC } from '../../src/wharf/pwr/message-reader';
import { delimited, encodeField } from '../../src/wharf/pwr/protobuf';
import { writeSignature } from '../../src/wharf/pwr/signature';
import { CpuWait } from '../../test/support/floods/metrics';
import { encodeOperation, type Operation } from '../../test/support/pushed-builds';
import { type Content, UploadTool } from '../../test/support/upload-tool';
import { table } from './report';
import { MeasuredServer } from './servers';

const { values } = parseArgs({
  options: {
    megabytes: { type: 'string', default: '2048' },
    files: { type: 'string', default: '100' },
    folder: { type: 'string', default: tmpdir() },
  },
});
const MEGABYTE = 2 ** 20;
const files = Number(values.files);
const fileBytes = Math.floor((Number(values.megabytes) * MEGABYTE) / files);
const blocks = Math.max(1, Math.ceil(fileBytes / BLOCK_BYTES));

const KEY = 'key-of-the-benchmark';
const TARGET = 'maker/moon';
const CHANGED = 20;
const DATA_BLOCKS = 64;
const SAMPLE_MS = 100;
const IDLE_MS = 3000;
const POLL_MS = 500;

const container: Container = {
  files: Array.from({ length: files }, (_, i) => ({
    path: `data/${Math.floor(i / 1000)}/asset ${i}.bin`,
    mode: 0o644,
    size: fileBytes,
  })),
  folders: [],
  links: [],
};

const KEY_OF_BLOCKS = Buffer.alloc(16);

/** Half of a block is random, and half of it is zeros, so that it can be compressed like a game. */
function createBlock(file: number, block: number, push: number): Buffer {
  const bytes = Buffer.alloc(Math.min(BLOCK_BYTES, fileBytes - block * BLOCK_BYTES));
  const start = Buffer.alloc(16);
  start.writeUInt32LE(file);
  start.writeUInt32LE(block, 4);
  start.writeUInt32LE(isChanged(block) ? push : 1, 8);
  const half = bytes.length >> 1;
  createCipheriv('aes-128-ctr', KEY_OF_BLOCKS, start).update(bytes.subarray(half)).copy(bytes);
  return bytes;
}

const isChanged = (block: number) => block % CHANGED === CHANGED >> 1;

async function* generateContent(file: number, push: number): AsyncGenerator<Buffer> {
  for (let block = 0; block < blocks; block++) yield await Promise.resolve(createBlock(file, block, push));
}

/** The first push has no parent; the second takes unchanged blocks from it. */
function* generateOperations(file: number, push: number): Generator<Operation> {
  for (let block = 0; block < blocks;) {
    let end = block + 1;
    if (push === 1) {
      end = Math.min(blocks, block + DATA_BLOCKS);
      const data = Array.from({ length: end - block }, (_, i) => createBlock(file, block + i, push));
      yield { data: Buffer.concat(data) };
    } else if (isChanged(block)) yield { data: createBlock(file, block, push) };
    else {
      while (end < blocks && !isChanged(end)) end++;
      yield { file, block, count: end - block };
    }
    block = end;
  }
}

async function* generatePatch(push: number): AsyncGenerator<Buffer> {
  yield delimited(encodeContainer(push === 1 ? EMPTY_CONTAINER : container));
  yield delimited(encodeContainer(container));
  for (const file of container.files.keys()) {
    yield delimited(encodeField(16, file));
    for (const operation of generateOperations(file, push)) yield delimited(encodeOperation(operation));
    yield await Promise.resolve(delimited(encodeField(1, 2049)));
  }
}

async function writeFiles(folder: string, push: number): Promise<{ patch: Content; signature: Content }> {
  const write = async (name: string, bytes: AsyncIterable<Buffer>) => {
    const path = join(folder, `${name}.${push}`);
    await pipeline(Readable.from(bytes), createWriteStream(path));
    return fromFile(path);
  };
  return {
    patch: await write('patch', encodeFile(PATCH_MAGIC, generatePatch(push))),
    signature: await write(
      'signature',
      writeSignature(container, (file) => generateContent(file, push)),
    ),
  };
}

const fromFile = (path: string): Content => ({
  length: statSync(path).size,
  subarray(start, end) {
    const [file, bytes] = [openSync(path, 'r'), Buffer.alloc(end - start)];
    readSync(file, bytes, 0, bytes.length, start);
    closeSync(file);
    return bytes;
  },
});

async function bytesIn(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true }).catch(() => []);
  const sizes = names.map((name) => stat(join(folder, name)).catch(() => undefined));
  return (await Promise.all(sizes)).reduce((sum, one) => sum + (one?.isFile() ? one.size : 0), 0);
}

/** Watches a process and its temporary files. */
class Usage {
  private temporary = 0;
  private isRunning = true;
  private readonly cpu: CpuWait;
  private readonly sampled: Promise<void>;
  private readonly before: number;

  constructor(
    private readonly server: MeasuredServer,
    private readonly folder: string,
  ) {
    // This resets the peak of the resident memory.
    writeFileSync(`/proc/${server.pid}/clear_refs`, '5');
    this.before = this.memory('VmRSS');
    this.cpu = new CpuWait(server.pid);
    void server.delays();
    this.sampled = this.sample();
  }

  async stop() {
    this.isRunning = false;
    await this.sampled;
    const added = this.memory('VmHWM') - this.before;
    const { delay, blocked } = await this.server.delays();
    return {
      memory: `${(added / MEGABYTE).toFixed(0)} MB`,
      temporary: `${(this.temporary / MEGABYTE).toFixed(0)} MB`,
      blocked: `${blocked.toFixed(0)} ms`,
      delay: `${delay.toFixed(0)} ms`,
      waited: `${(this.cpu.share * 100).toFixed(0)} %`,
    };
  }

  private memory(name: string): number {
    const status = readFileSync(`/proc/${this.server.pid}/status`, 'utf8');
    return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(status)![1]) * 1024;
  }

  private async sample(): Promise<void> {
    while (this.isRunning) {
      await sleep(SAMPLE_MS);
      this.temporary = Math.max(this.temporary, await bytesIn(this.folder));
    }
  }
}

const seconds = (from: number) => `${((performance.now() - from) / 1000).toFixed(1)} s`;

async function measurePush(tool: UploadTool, folder: string, push: number, usage: () => Usage) {
  const made = await writeFiles(folder, push);
  let watched = usage();
  const started = performance.now();
  const { id } = await tool.push(TARGET, 'linux', made);
  const uploading = { phase: `upload ${push}`, time: seconds(started), ...(await watched.stop()) };
  watched = usage();
  const uploaded = performance.now();
  const build = await processed(tool, id);
  const processing = { phase: `processing ${push}`, time: seconds(uploaded), ...(await watched.stop()) };
  if (build.state !== 'completed') throw new Error(`The build is ${build.state}: ${build.error}`);
  const sizes = (await tool.files(id)).map(({ type, size }) => `${type} ${(size / MEGABYTE).toFixed(1)} MB`);
  console.error(`build ${push}: ${sizes.join(', ')}`);
  return [uploading, processing];
}

/** Polls the build until it is completed or has failed. */
async function processed(tool: UploadTool, id: number): Promise<{ state: string; error: string | null }> {
  for (;;) {
    const { build } = await tool.get<{ build: { state: string; error: string | null } }>(
      `/wharf/builds/${id}`,
    );
    if (build.state === 'completed' || build.state === 'failed') return build;
    await sleep(POLL_MS);
  }
}

async function fill(url: string, pepper: string): Promise<void> {
  const records = [
    { type: 'user', id: 1, username: 'maker' },
    { type: 'game', id: 1, user_id: 1, slug: 'moon', title: 'Moon' },
    { type: 'api_key', key: KEY, user_id: 1 },
  ];
  const text = records.map((record) => `${JSON.stringify(record)}\n`).join('');
  await importRecords(() => connectTo({ DATABASE_URL: url }), Readable.from([Buffer.from(text)]), {
    pepper: Buffer.from(pepper),
    progress: () => undefined,
  });
}

async function main(): Promise<void> {
  const folder = await mkdtemp(join(values.folder, 'bench-push-'));
  const pepper = 'the pepper of the benchmark, which is long enough';
  const database = await openEmbeddedPostgres({
    dataDir: join(folder, 'database'),
    mode: 'serve',
    log: () => undefined,
  });
  const builds = join(folder, 'builds');
  let server: MeasuredServer | undefined;
  try {
    await migrate({ DATABASE_URL: database.url }, () => undefined);
    await fill(database.url, pepper);
    const started = (server = await MeasuredServer.start(
      'ours',
      { folder, url: database.url, pepper },
      {
        FILES_S3_ENDPOINT: '',
        FILES_S3_BUCKET: '',
        FILES_S3_REGION: '',
        FILES_S3_ACCESS_KEY_ID: '',
        FILES_S3_SECRET_ACCESS_KEY: '',
        FILES_DIR: join(folder, 'files'),
        BUILD_DIR: builds,
      },
    ));
    const tool = new UploadTool(`http://127.0.0.1:${started.port}`, KEY);
    await sleep(IDLE_MS);
    const usage = () => new Usage(started, builds);
    const rows = [
      ...(await measurePush(tool, folder, 1, usage)),
      ...(await measurePush(tool, folder, 2, usage)),
    ];
    console.log(
      `${values.megabytes} MB in ${files} files; ${cpus().length} x ${cpus()[0]!.model.trim()}; Node ${process.version}`,
    );
    console.log(`
${table(
  ['phase', 'time', 'memory added', 'temporary files'],
  rows.map(({ phase, time, memory, temporary }) => [phase, time, memory, temporary]),
)}

Event loop:

${table(
  ['phase', 'longest block', 'with waits for a CPU', 'waited for a CPU'],
  rows.map(({ phase, blocked, delay, waited }) => [phase, blocked, delay, waited]),
)}`);
  } finally {
    await server?.stop();
    await database.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

void main();
