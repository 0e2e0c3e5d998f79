import { randomBytes } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { readdir } from 'node:fs/promises';
import { request } from 'node:http';
import { join } from 'node:path';
import { fileToPush, RECORDINGS } from '../support/pushed-builds';
import { runIf } from '../support/run-if';
import { baseUrl } from '../support/app';
import { useFiles } from '../support/files';
import { actors, make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';
import { UploadTool } from '../support/upload-tool';

const { environment } = useFiles();

const RECORDING = `${RECORDINGS}/push-large.jsonl`;
const withRecordings = runIf(existsSync(RECORDING), 'recordings of the upload tool are missing');

interface Recorded {
  method: string;
  url: string;
  status: number;
  range?: string;
  headers?: { range?: string };
}

/** The recorded push had this many random bytes. */
const SIZE = 40_000_000;
const KEPT = 256 * 1024;

/** The upload tool behind a proxy that responds with 503 in the middle of the second part, when the service has its first block. */
class CutUploadTool extends UploadTool {
  readonly parts: { range: string; status: number; stored: string | null }[] = [];
  private isCut = false;

  override async put(location: string, range: string, body?: Buffer) {
    const isSecond = range.startsWith(`bytes ${16 * 2 ** 20}-`) && !this.isCut;
    if (isSecond) await this.sendPiece(location, range, body!);
    const response = isSecond
      ? { status: 503, headers: new Headers(), bytes: Buffer.alloc(0) }
      : await super.put(location, range, body);
    this.parts.push({ range, status: response.status, stored: response.headers.get('range') });
    return response;
  }

  private async sendPiece(location: string, range: string, body: Buffer): Promise<void> {
    this.isCut = true;
    const headers = { 'content-range': range, 'content-length': body.length };
    const outgoing = request(location, { method: 'PUT', headers });
    outgoing.on('error', () => undefined);
    await new Promise<void>((resolve) => outgoing.write(body.subarray(0, KEPT + 100), () => resolve()));
    const open = () => sql('SELECT FROM upload_parts WHERE size IS NULL');
    await until(async () => (await open()).length > 0);
    outgoing.destroy();
    await until(async () => (await open()).length === 0);
  }
}

withRecordings.test('a push of 40 MB, one part of which fails, sends the recorded requests', async () => {
  const recorded = readFileSync(RECORDING, 'utf8')
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as Recorded);
  const files = await fileToPush('big.bin', randomBytes(SIZE));
  const { owner } = await actors();
  const game = await make.game({ owner });
  const tool = new CutUploadTool(baseUrl(), owner.key!);
  const build = await tool.push(`${owner.username}/${game.slug}`, 'big', files, { user_version: '1' });
  // The sizes of compressed files differ.
  const shape = (range: string, bytes: number) =>
    range.replaceAll(String(bytes - 1), 'END').replaceAll(String(bytes), 'ALL');
  const [signatureSize, patchSize] = [18_944, 40_000_402];
  const recordedParts = recorded
    .filter(({ method }) => method === 'PUT')
    .map(({ range = '', status, headers = {} }) => [
      shape(shape(range, signatureSize), patchSize),
      status,
      headers.range ?? null,
    ]);
  const sentParts = tool.parts.map(({ range, status, stored }) => [
    shape(shape(range, files.signature.length), files.patch.length),
    status,
    stored,
  ]);
  // Both files are sent at the same time.
  expect(sentParts.toSorted()).toEqual(recordedParts.toSorted());
  expect(
    tool.requests
      .filter((line) => line.startsWith('POST'))
      .map((line) => line.split(' ').at(-1))
      .toSorted(),
  ).toEqual(
    recorded
      .filter(({ method }) => method === 'POST')
      .map(({ status }) => String(status))
      .toSorted(),
  );
  expect(await tool.processed(build.id)).toMatchObject({ state: 'completed', error: null });
  const stored = await tool.files(build.id);
  const patch = await tool.download(build.id, stored.find(({ type }) => type === 'patch')!.id);
  expect(patch.equals(files.patch)).toBe(true);
  await until(async () => (await readdir(join(environment.FILES_DIR, 'parts'))).length === 0);
});
