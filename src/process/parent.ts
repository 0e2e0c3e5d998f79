import { readFileSync } from 'node:fs';

/** Who started this process. Read before other modules load: by the end of that the parent may be gone, and another in its place. */
export const PARENT = process.ppid;

/** Where npm starts this process: it ended so soon that this process belongs to whoever takes orphans. */
export const IS_ORPHAN = !mayBeNpm(PARENT);

/** Whether it is npm, another program that runs scripts, or its shell. */
function mayBeNpm(pid: number): boolean {
  try {
    return /node|npm|yarn|bun|start/.test(readFileSync(`/proc/${pid}/cmdline`, 'utf8'));
  } catch {
    // No Linux, or the parent ended just now, which will show.
    return pid !== 1;
  }
}
