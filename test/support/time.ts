import { setTimeout } from 'node:timers/promises';

/** Waits for time to pass, in tests of time itself. */
export const sleep = (milliseconds: number) => setTimeout(milliseconds);

/** Waits for an asynchronous event. The limit ends a test that would hang. */
export async function until(condition: () => Promise<boolean> | boolean, within = 120_000): Promise<void> {
  const deadline = performance.now() + within;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('the condition did not become true in time');
    await sleep(20);
  }
}
