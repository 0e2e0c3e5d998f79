import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// V8 shrinks its new space when almost nothing is allocated for five seconds between two collections.
const INTERVAL = 5500;

/**
 * Loading the modules takes a fifth of the process's memory. V8 frees it at a full garbage collection, which an idle
 * process would not run.
 */
export async function giveBackStartUpMemory(isBusy: () => boolean): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  for (let i = 0; i < 2; i++) {
    await sleep(INTERVAL, undefined, { ref: false });
    if (isBusy()) return;
    collect();
  }
}
