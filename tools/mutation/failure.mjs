/** The mutant that a test has failed for: no other test needs to. */
let killed;

const active = () => process.env.__STRYKER_ACTIVE_MUTANT__;

export const isKilled = () => active() !== undefined && active() === killed;

export function kill() {
  killed = active();
}
