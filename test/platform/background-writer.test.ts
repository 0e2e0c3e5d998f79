import { BackgroundWriter } from '../../src/platform/database/background-writer';

test('writes items in order and in batches, and drops items beyond its memory limit', async () => {
  const batches: number[][] = [];
  const writer = new BackgroundWriter<number>({
    intervalMs: 60_000,
    batchSize: 4000,
    write: (batch) => Promise.resolve(batches.push(batch)),
    failed: (error) => expect(error).toBeUndefined(),
  });
  for (let i = 0; i < 10_000; i++) expect(writer.add(i)).toBe(true);
  expect(writer.add(10_000)).toBe(false);
  expect(batches).toEqual([]);
  await writer.flush();
  expect(batches.map(({ length }) => length)).toEqual([4000, 4000, 2000]);
  expect(batches.flat().at(-1)).toBe(9999);
});

test('continues after a batch that could not be written', async () => {
  const failures: unknown[] = [];
  const writer = new BackgroundWriter<number>({
    intervalMs: 60_000,
    batchSize: 1,
    write: ([item]) => (item === 1 ? Promise.reject(new Error('out of order')) : Promise.resolve()),
    failed: ({ message }, batch) => failures.push([message, batch]),
  });
  for (const item of [1, 2]) writer.add(item);
  await writer.flush();
  expect(failures).toEqual([['out of order', [1]]]);
  writer.add(1);
  await writer.flush();
  expect(failures).toHaveLength(2);
});

test('keeps a batch that could not be written, and its order', async () => {
  const written: number[] = [];
  let isBroken = true;
  const writer = new BackgroundWriter<number>({
    intervalMs: 60_000,
    batchSize: 2,
    write: async (batch) => {
      if (isBroken) throw new Error('no database');
      await Promise.resolve(written.push(...batch));
    },
    failed: () => undefined,
    retries: true,
  });
  for (const item of [1, 2, 3]) writer.add(item);
  await writer.flush();
  writer.add(4);
  expect(written).toEqual([]);
  isBroken = false;
  await writer.flush();
  expect(written).toEqual([1, 2, 3, 4]);
});
