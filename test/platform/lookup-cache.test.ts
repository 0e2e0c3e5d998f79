import { LookupCache } from '../../src/platform/database/lookup-cache';
import type { Clock } from '../../src/platform/config/clock';

const TTL_MS = 700;
let now: number;
let cache: LookupCache<{ name: string }>;
beforeEach(() => {
  now = 0;
  cache = new LookupCache({ monotonic: () => now } as Clock, { max: 10, ttl_ms: TTL_MS });
});

/** A lookup that takes until it is ended. */
function slowLookup(name: string) {
  let end = () => {};
  const result = new Promise<{ value: { name: string } }>((resolve) => {
    end = () => resolve({ value: { name } });
  });
  return { look: () => result, end };
}

test('shares a slow lookup only until its result would expire', async () => {
  const [old, current] = [slowLookup('old'), slowLookup('current')];
  const first = cache.find('key', old.look);
  now = TTL_MS - 1;
  const joined = cache.find('key', current.look);
  now = TTL_MS;
  const second = cache.find('key', current.look);
  old.end();
  expect(await Promise.all([first, joined])).toEqual([{ name: 'old' }, { name: 'old' }]);
  const third = cache.find('key', () => Promise.reject(new Error('not shared')));
  current.end();
  expect(await Promise.all([second, third])).toEqual([{ name: 'current' }, { name: 'current' }]);
});
