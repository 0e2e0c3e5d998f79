import { setTimeout } from 'node:timers/promises';

/** Waits for time to pass, in tests of time itself. */
export const sleep = (milliseconds: number) => setTimeout(milliseconds);

/** Something that takes longer hangs, even on a slow machine. */
export const HANGING = 120_000;

/** Waits for an asynchronous event. */
export async function until(condition: () => Promise<boolean> | boolean, within = HANGING): Promise<void> {
  const deadline = performance.now() + within;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('the condition did not become true in time');
    await sleep(20);
  }
}
