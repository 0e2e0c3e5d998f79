/** Random numbers that depend only on the names. */
export function seedRandom(seed: number, what: string, id: number) {
  let state = 2_166_136_261 ^ seed;
  for (let i = 0; i < what.length; i++) state = Math.imul(state ^ what.charCodeAt(i), 16_777_619);
  // An odd factor gives each ID another start value, so that no two keys are equal; then mulberry32.
  state = Math.imul(state ^ id, 0x9e3779b1);
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  const LETTERS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789';
  return {
    next,
    below,
    chance: (share: number) => next() < share,
    of: <T>(values: readonly T[]) => values[below(values.length)]!,
    text: (length: number) => Array.from({ length }, () => LETTERS[below(LETTERS.length)]).join(''),
  };
}

export type Random = ReturnType<typeof seedRandom>;

/** A number from 1 to `count`, except one. */
export function chooseOther(random: Random, count: number, excluded: number): number {
  const chosen = 1 + random.below(count);
  return chosen === excluded ? 1 + (chosen % count) : chosen;
}
