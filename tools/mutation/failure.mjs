/** The mutant that a test has failed for: no other test needs to. */
let killed;
/** The file of that test, which is likely to notice the next change, too. */
export let lastToFail;

const active = () => process.env.__STRYKER_ACTIVE_MUTANT__;

export const isKilled = () => active() !== undefined && active() === killed;

export function kill(path) {
  killed = active();
  lastToFail = path;
}
