import { sanitizeHtml } from '../../src/collections/html';
import { InvalidValue } from '../../src/platform/input/input-values';
import { readIdList } from '../../src/platform/input/readers';

/**
 * CPU time in milliseconds, the shortest of three runs: other programs, the compiler and the garbage collector only add
 * to it.
 */
function measureCpuMs(work: () => void): number {
  const costs = [1, 2, 3].map(() => {
    const before = process.cpuUsage();
    work();
    return process.cpuUsage(before).user / 1000;
  });
  return Math.min(...costs);
}

const BOMBS: [string, (size: number) => string][] = [
  ['nested tags', (size) => '<b>'.repeat(size / 3)],
  ['nested lists', (size) => '<ul><li>'.repeat(size / 8)],
  ['nested unknown tags', (size) => '<svg>'.repeat(size / 5)],
  ['angle brackets', (size) => '<'.repeat(size)],
  ['ampersands', (size) => '&'.repeat(size)],
  ['unclosed comments', (size) => '<!--'.repeat(size / 4)],
  ['attributes', (size) => `<a ${'x='.repeat(size / 2)}`],
  ['links', (size) => '<a href="https://x.example/">x</a>'.repeat(size / 34)],
  ['closing tags without opening ones', (size) => '</b>'.repeat(size / 4)],
];

test.each(BOMBS)('sanitizes HTML in linear time: %s', (_, html) => {
  const [short, long] = [html(50_000), html(500_000)];
  const control = measureCpuMs(() => void sanitizeHtml(short));
  // Ten times the text. Quadratic time would be a hundred times as long; a few milliseconds are the minimum.
  expect(measureCpuMs(() => void sanitizeHtml(long))).toBeLessThan(40 * Math.max(control, 5));
});

test.each(['[', '[1', '[1,', '[1,2,', ' '])('rejects %j with many spaces in linear time', (start) => {
  const rejected = (blanks: number) =>
    measureCpuMs(() => expect(readIdList(`${start}${' '.repeat(blanks)}x`)).toBeInstanceOf(InvalidValue));
  expect(rejected(40_000)).toBeLessThan(40 * Math.max(rejected(4000), 5));
});
