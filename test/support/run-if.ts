interface Runners {
  readonly describe: jest.Describe;
  readonly test: jest.It;
}

/** `describe` and `test` that skip unless the condition holds. The closing line of a run lists the reason. */
export const runIf = (condition: boolean, reason: string): Runners => ({
  // Evaluated late, because tools use the programs that this folder detects without running under jest.
  get describe() {
    return condition ? describe : withReason(describe.skip, reason);
  },
  get test() {
    return condition ? test : withReason(test.skip, reason);
  },
});

type Skip = typeof describe.skip | typeof test.skip;

function withReason(skip: Skip, reason: string) {
  const labeled =
    (run: (...args: never[]) => void) =>
    (name: string, ...rest: unknown[]) =>
      run(...([`${name} [skipped: ${reason}]`, ...rest] as never[]));
  const each = (...table: unknown[]) => labeled((skip.each as (...args: unknown[]) => () => void)(...table));
  return Object.assign(labeled(skip), { each }) as unknown as jest.Describe & jest.It;
}

export const withoutPooler = runIf(!process.env.TEST_POOLER_URL, 'bypasses the connection pooler');
