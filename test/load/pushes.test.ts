import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { join } from 'node:path';
import { Worker } from 'node:worker_threads';
import { limitNow, longestBlock } from '../support/event-loop';
import { fileToPush } from '../support/pushed-builds';
import { type Actor } from '../support/actor';
import { baseUrl } from '../support/app';
import { useFiles } from '../support/files';
import { make } from '../support/make';
import { sql } from '../support/sql';
import { until } from '../support/time';

useFiles();

const MEGABYTE = 2 ** 20;

let owner: Actor;
let game: { id: number };
beforeAll(async () => {
  owner = await make.user();
  game = await make.game({ owner });
});

const readState = async (id: number) =>
  (await sql<{ state: string }>('SELECT state FROM builds WHERE id = $1', [id]))[0]!.state;

/** The upload tool, on a thread that has its copy of the files. */
async function toolFor(channel: string, files: { patch: Buffer; signature: Buffer }): Promise<Worker> {
  const order = { url: baseUrl(), key: owner.key, target: String(game.id), channel, ...files };
  const tool = new Worker(join(__dirname, '../support/threads/upload-tool.mjs'), { workerData: order });
  await once(tool, 'message');
  return tool;
}

async function push(tool: Worker): Promise<void> {
  tool.postMessage('push');
  const [{ id }] = (await once(tool, 'message')) as [{ id: number }];
  await until(async () => (await readState(id)) === 'completed');
  await until(async () => (await sql('SELECT FROM upload_sessions')).length === 0);
}

test('the event loop is not blocked by a large push', async () => {
  const small = await fileToPush('game.bin', randomBytes(MEGABYTE));
  const large = await fileToPush('game.bin', randomBytes(48 * MEGABYTE));
  // V8 compiles the code.
  await push(await toolFor('small', small));
  const tool = await toolFor('large', large);
  const limit = await limitNow(20);
  expect(await longestBlock(() => push(tool))).toBeLessThan(limit);
});
