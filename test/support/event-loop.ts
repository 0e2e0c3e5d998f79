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

/**
 * CPU time of this thread in milliseconds, which other programs don't affect; on systems other than Linux, elapsed
 * time.
 */
function now(): number {
  if (schedule === undefined) return performance.now();
  const length = readSync(schedule, text, 0, text.length, 0);
  return Number(text.toString('latin1', 0, length).split(' ')[0]) / 1e6;
}

/** The longest tick of the event loop, in milliseconds, during `work`. */
export async function longestBlock(work: () => Promise<unknown>): Promise<number> {
  let longest = 0;
  let last = now();
  let done = false;
  const measure = () => {
    const at = now();
    longest = Math.max(longest, at - last);
    last = at;
  };
  const tick = () => {
    measure();
    if (!done) setImmediate(tick);
  };
  setImmediate(tick);
  // Timers run in their own ticks.
  const timer = setInterval(measure, 1);
  try {
    await work();
    // The measurement includes work that was scheduled for the following ticks.
    await new Promise((resolve) => setTimeout(resolve, 5));
  } finally {
    done = true;
    clearInterval(timer);
  }
  return longest;
}

/** The minimum over several attempts: the first may compile, and any may collect garbage. */
export async function shortestBlock(work: () => Promise<unknown>, tries = 3, enough = 0): Promise<number> {
  let best = Infinity;
  for (let i = 0; i < tries && best > enough; i++) best = Math.min(best, await longestBlock(work));
  return best;
}

// The first control takes 5 ms on a machine on which the service must not block for more than 20. The second
// one allocates more, which takes several times as long on some virtual machines.
const JSON_TEXT = JSON.stringify(Array.from({ length: 20_000 }, (_, id) => ({ id, name: `name ${id}` })));
const HALF = JSON_TEXT.slice(JSON_TEXT.length / 2);
export const CONTROLS = [
  () => void JSON.parse(JSON_TEXT),
  () => void HALF.replace(/[<&"]/g, (character) => `&#${character.charCodeAt(0)};`),
];
export const TIMES = 6;

/** The longest time, in milliseconds, for which the service may block, on this machine now. */
export async function limitNow(tries: number): Promise<number> {
  const times = [];
  for (const control of CONTROLS) times.push(await shortestBlock(() => Promise.resolve(control()), tries));
  return TIMES * Math.max(...times);
}
