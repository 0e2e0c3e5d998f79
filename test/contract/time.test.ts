import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

/** Tests of processes, load and faults need real time; the support files implement waiting for events. */
const MAY_WAIT = /^(system|load|deploy|support)\//;

const FORBIDDEN: [string, RegExp][] = [
  ['a retry', /\bretryTimes\b/],
  ['a sleep', /(?<![\w.])(setTimeout|sleep)\(|\bsetTimeout\b.*timers\/promises/],
  ['a comparison with real time', /\b(performance\.now|Date\.now|hrtime|cpuUsage)\b/],
];

const files = readdirSync('test', { recursive: true, encoding: 'utf8' })
  .filter((file) => file.endsWith('.ts') && !MAY_WAIT.test(file) && file !== 'contract/time.test.ts')
  .toSorted();

const findViolations = (text: string) =>
  text
    .split('\n')
    .flatMap((line, index) =>
      FORBIDDEN.filter(([, pattern]) => pattern.test(line)).map(([name]) => `${index + 1}: ${name}`),
    );

test('no test waits for time to pass, compares times or is retried: tests stop and advance theClock()', () => {
  const found = files.map(
    (file) => [file, findViolations(readFileSync(join('test', file), 'utf8'))] as const,
  );
  expect(found.filter(([, violations]) => violations.length > 0)).toEqual([]);
});

test.each([
  'jest.retryTimes(2);',
  'await new Promise((resolve) => setTimeout(resolve, 300));',
  'await sleep(500);',
  "import { setTimeout as sleep } from 'node:timers/promises';",
  'expect(performance.now() - began).toBeLessThan(450);',
])('control: %s', (line) => {
  expect(findViolations(line)).toHaveLength(1);
});

// Commands and the embedded database run outside of the app, which has the clock.
const WITHOUT_CLOCK = /^(commands|dev)\//;

/** Files that measure durations, and limit nothing that a test waits for. */
const MEASURES_DURATIONS = ['operator/import/import.service.ts', 'push/build-jobs.service.ts'];

test('the service takes the time of limits, deadlines and expiry from the clock', () => {
  const found = readdirSync('src', { recursive: true, encoding: 'utf8' }).filter(
    (file) =>
      file.endsWith('.ts') &&
      !WITHOUT_CLOCK.test(file) &&
      /\b(performance|Date)\.now\(/.test(readFileSync(join('src', file), 'utf8')),
  );
  expect(found.toSorted()).toEqual([...MEASURES_DURATIONS, 'platform/config/clock.ts'].toSorted());
});
