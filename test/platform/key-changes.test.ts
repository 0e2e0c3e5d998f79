import { KeyChanges } from '../../src/auth/keys/key-changes';
import { MAX_AGE } from '../../src/platform/cache/change-poller';
import { Clock } from '../../src/platform/config/clock';
import type { Database } from '../../src/platform/database/database';
import { MetricsRegistry } from '../../src/platform/observability/metrics-registry';

// It queries the database only after the app has started.
const noted = (...notes: [id: number, at: number][]) => {
  const changes = new KeyChanges(undefined as unknown as Database, new Clock(), new MetricsRegistry());
  for (const [id, at] of notes) changes.note([id], at);
  return changes;
};

test.each([
  ['before the change', 999, true],
  ['at the same instant', 1000, true],
  ['after it', 1001, false],
])('a value read %s', (_when, learned, changed) => {
  expect(noted([7, 1000]).changedSince(7, learned)).toBe(changed);
});

test('ignores changes to another key', () => {
  expect(noted([7, 1000]).changedSince(8, 0)).toBe(false);
});

test('remembers the last change of a key', () => {
  expect(noted([7, 1000], [7, 2000]).changedSince(7, 1500)).toBe(true);
});

test('remembers a change as long as an older value may be used', () => {
  const first = 1000;
  expect(noted([1, first], [2, first + MAX_AGE - 1]).changedSince(1, first)).toBe(true);
  expect(noted([1, first], [2, first + MAX_AGE]).changedSince(1, first)).toBe(false);
});

test('keeps a key that changes again when its first change expires', () => {
  const changes = noted([1, 0], [2, 1], [1, 2], [3, MAX_AGE + 1]);
  expect([1, 2, 3].map((id) => changes.changedSince(id, 0))).toEqual([true, false, true]);
});
