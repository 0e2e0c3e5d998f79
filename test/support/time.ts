import { setTimeout } from 'node:timers/promises';

/** Waits for time itself to pass, where that is what is tested. */
export const moment = (milliseconds: number) => setTimeout(milliseconds);

/** Waits for something that happens by itself. */
export async function until(condition: () => Promise<boolean> | boolean, within = 15_000): Promise<void> {
  const deadline = performance.now() + within;
  while (!(await condition())) {
    if (performance.now() > deadline) throw new Error('it did not come to pass');
    await moment(20);
  }
}
