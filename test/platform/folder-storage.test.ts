import { once } from 'node:events';
import fs from 'node:fs';
import promises from 'node:fs/promises';
import { Readable } from 'node:stream';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { Clock } from '../../src/platform/config/clock';
import { OperatorError } from '../../src/platform/errors/operator-error';
import { FolderStorage } from '../../src/uploads/storage/folder-storage';
import { temporaryFolder } from '../support/temporary';

afterEach(() => jest.restoreAllMocks());

test('reports a full disk as a problem of the operator', async () => {
  const folder = await temporaryFolder('folder-storage-');
  const storage = new FolderStorage(
    { FILES_DIR: folder, FILES_URL_SECONDS: 60, API_KEY_PEPPER: 'x'.repeat(32) },
    new Clock(),
    { url: 'http://localhost' },
  );
  jest.spyOn(fs, 'write').mockImplementation(((...[, , , , , done]: unknown[]) => {
    const full = new Error('ENOSPC: no space left on device, write');
    (done as (error: Error) => void)(Object.assign(full, { code: 'ENOSPC' }));
  }) as never);
  const content = Readable.from([Buffer.from('x')]);
  await expect(storage.put('a.zip', 1, content, new AbortController().signal)).rejects.toEqual(
    new OperatorError(`The files in ${folder} can't be written: ENOSPC: no space left on device, write.`),
  );
  expect(await promises.readdir(folder)).toEqual([]);
  await promises.rm(folder, { recursive: true });
});

test('a file that is opened after its content has failed is removed', async () => {
  const folder = await temporaryFolder('folder-storage-');
  const settings = { FILES_DIR: folder, FILES_URL_SECONDS: 60, API_KEY_PEPPER: 'x'.repeat(32) };
  const storage = new FolderStorage(settings, new Clock(), { url: 'http://localhost' });
  const { open } = fs;
  const opening = new Promise<() => void>((resolve) => {
    jest
      .spyOn(fs, 'open')
      .mockImplementationOnce(((...given: Parameters<typeof open>) =>
        resolve(() => open(...given))) as never);
  });
  const remove = jest.spyOn(promises, 'rm');
  const content = new Readable({ read: () => content.destroy(new Error('the disk failed')) });
  const failed = once(content, 'error');
  try {
    const stored = expect(storage.put('a.zip', 1, content, new AbortController().signal)).rejects.toThrow(
      'the disk failed',
    );
    const openNow = await opening;
    await failed;
    await nextTurn();
    // A removal before the file is opened would leave it behind.
    expect(remove).not.toHaveBeenCalled();
    openNow();
    await stored;
    expect(await promises.readdir(folder)).toEqual([]);
  } finally {
    await promises.rm(folder, { recursive: true, force: true });
  }
});
