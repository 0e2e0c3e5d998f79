import { join } from 'node:path';
import { runThread } from '../../src/wharf/build-file-thread';
import { BuildFileError } from '../../src/wharf/pwr/build-file-error';

const { signal } = new AbortController();

test('a thread that needs more memory than its limit is a problem of the build', async () => {
  const script = join(__dirname, '../support/threads/memory.mjs');
  const running = runThread({ script, data: undefined, maxHeapMegabytes: 16 }, signal);
  const error: unknown = await running.catch((error: unknown) => error);
  expect(error).toBeInstanceOf(BuildFileError);
  expect((error as Error).message).toContain('too many files');
});
