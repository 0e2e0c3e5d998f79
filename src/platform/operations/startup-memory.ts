import { setTimeout as sleep } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

// V8 shrinks its new space when almost nothing was allocated for five seconds between two collections.
const INTERVAL = 5500;

/**
 * Runs two full garbage collections while the process is idle, which V8 would not do by itself. They release memory
 * used to load the modules: docs/contributing/decisions/fast-requests.md.
 */
export async function releaseStartupMemory(isBusy: () => boolean): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  setFlagsFromString('--no-expose-gc');
  for (let i = 0; i < 2; i++) {
    await sleep(INTERVAL, undefined, { ref: false });
    if (isBusy()) return;
    collect();
  }
}
