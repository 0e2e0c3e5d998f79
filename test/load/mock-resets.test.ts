import { spawnSync } from 'node:child_process';
import { resolve } from 'node:path';
import { type MockStore, startMock } from '../../client/mock';
import { PURCHASES, SEED } from '../../tools/bench/mock-seed';

// RESETS=1000 takes minutes on a busy machine.
const RESETS = Number(process.env.RESETS ?? 100);
const FILES = 4;

let store: MockStore;

beforeAll(async () => {
  const compiled = spawnSync(process.execPath, ['tools/scripts/compile.mjs'], {
    cwd: resolve(__dirname, '..', '..'),
  });
  expect(compiled.status).toBe(0);
}, 120_000);
afterEach(() => store.stop());

test('many resets in a row fail no request of four parallel test files', async () => {
  store = await startMock({ seed: SEED });
  const statuses = new Set<number>();
  const testsOfFiles = Array.from({ length: FILES }, () => 0);
  let over = false;
  const testFile = async (file: number) => {
    const game_id = file + 1;
    const email = `file-${file}@example.com`;
    const url = `${store.url}/games/${game_id}/download_keys?email=${encodeURIComponent(email)}`;
    for (; !over; testsOfFiles[file]!++) {
      await store.sell({ game_id, email, currency: 'USD', amount: 499 });
      const response = await fetch(url, { headers: { authorization: `Bearer ${store.apiKey}` } });
      await response.arrayBuffer();
      statuses.add(response.status);
    }
  };
  const files = Promise.all(testsOfFiles.map((_, file) => testFile(file)));
  for (let n = 0; n < RESETS || Math.min(...testsOfFiles) < 3; n++)
    await Promise.race([store.reset(), files]);
  over = true;
  await files;
  // 404: a reset between the sale and the lookup deleted the key.
  expect([...statuses].filter((one) => ![200, 404].includes(one))).toEqual([]);
  await store.reset();
  const { purchase } = await store.sell({
    game_id: 1,
    email: 'player@example.com',
    currency: 'USD',
    amount: 499,
  });
  expect(purchase).toMatchObject({ id: PURCHASES + 1 });
}, 300_000);
