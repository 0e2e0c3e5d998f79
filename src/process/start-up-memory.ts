import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// V8 makes its space for young objects smaller where it sees hardly any made for five seconds, from one collection to the next.
const QUIET = 5500;

/**
 * Loading some fifteen hundred modules takes a fifth of the process's memory, which nothing needs afterwards. V8 would give
 * it back at a collection of everything, and where nobody asks for anything there is none.
 */
export async function giveBackStartUpMemory(isBusy: () => boolean): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  for (let i = 0; i < 2; i++) {
    await sleep(QUIET, undefined, { ref: false });
    if (isBusy()) return;
    collect();
  }
}
