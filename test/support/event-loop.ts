import { openSync, readSync } from 'node:fs';

const text = Buffer.alloc(64);
const schedule = openSchedule();

function openSchedule(): number | undefined {
  try {
    return openSync(`/proc/self/task/${process.pid}/schedstat`, 'r');
  } catch {
    return undefined;
  }
}

/** Milliseconds of processor time of this thread, which other programs do not disturb; elsewhere than on Linux, of the clock. */
function now(): number {
  if (schedule === undefined) return performance.now();
  const length = readSync(schedule, text, 0, text.length, 0);
  return Number(text.toString('latin1', 0, length).split(' ')[0]) / 1e6;
}

/** The most milliseconds that one turn of the event loop took while `work` was done. */
export async function longestBlock(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = now();
  let done = false;
  const look = () => {
    const at = now();
    longest = Math.max(longest, at - last);
    last = at;
  };
  const turn = () => {
    look();
    if (!done) setImmediate(turn);
  };
  setImmediate(turn);
  // Timers are a part of the turn of their own.
  const timer = setInterval(look, 1);
  try {
    await work();
    // What it left behind for the next turns counts too.
    await new Promise((resolve) => setTimeout(resolve, 5));
  } finally {
    done = true;
    clearInterval(timer);
  }
  return longest;
}

/** The same, the best of so many tries: the first may compile, and any may collect garbage. */
export async function shortestBlock(work: () => Promise<unknown>, tries = 3, enough = 0): Promise<number> {
  let best = Infinity;
  for (let i = 0; i < tries && best > enough; i++) best = Math.min(best, await longestBlock(work));
  return best;
}
