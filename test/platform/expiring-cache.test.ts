import { ExpiringCache, maxAge, SingleFlight } from '../../src/platform/cache/expiring-cache';

test('expires a value counted from when it was requested', () => {
  const cache = new ExpiringCache<string>(maxAge(500), 10);
  cache.set('a', 'one', 1000);
  expect(cache.get('a', 1499)).toBe('one');
  expect(cache.get('a', 1500)).toBeUndefined();
  expect([cache.peek('a'), cache.peek('b')]).toEqual(['one', undefined]);
  cache.set('a', 'two', 1500);
  expect(cache.get('a', 1999)).toBe('two');
});

test('holds at most its maximum size, and at least the newest half', () => {
  const cache = new ExpiringCache<number>(maxAge(500), 4);
  for (let i = 0; i < 5; i++) cache.set(`n${i}`, i, 1000 + i);
  const known = () => ['n0', 'n1', 'n2', 'n3', 'n4', 'n5'].map((name) => cache.get(name, 1012));
  expect(known()).toEqual([undefined, undefined, 2, 3, 4, undefined]);
  cache.set('n2', 22, 1010);
  cache.set('n5', 5, 1011);
  expect(known()).toEqual([undefined, undefined, 22, undefined, 4, 5]);
});

test('drops expired entries', () => {
  const cache = new ExpiringCache<number>(maxAge(500), 1000);
  for (let i = 0; i < 100; i++) cache.set(`n${i}`, i, 1000);
  cache.set('new', 1, 1500);
  cache.set('newer', 1, 2000);
  expect(cache.size).toBe(2);
});

test('can measure its size per entry, including updated entries', () => {
  const cache = new ExpiringCache<string>(maxAge(500), 12, (name, value) => name.length + value.length);
  const known = () => ['a', 'b', 'c', 'd'].filter((name) => cache.get(name, 1004) !== undefined).join('');
  cache.set('a', '12', 1000);
  cache.set('b', '12', 1001);
  cache.set('b', '1', 1002);
  expect(known()).toBe('ab');
  cache.set('c', '12', 1003);
  expect(known()).toBe('abc');
  cache.set('d', '1234', 1004);
  expect(known()).toBe('cd');
  cache.clear(1005);
  cache.set('a', '12345', 1006);
  expect(cache.size).toBe(1);
});

test('does not store a value larger than half of the cache, but stores later ones', () => {
  const cache = new ExpiringCache<string>(maxAge(500), 8, (_, value) => value.length);
  cache.set('large', '12345', 1000);
  expect(cache.size).toBe(0);
  for (const key of ['a', 'b', 'c']) cache.set(key, '12', 1001);
  expect(['a', 'b', 'c'].map((key) => cache.get(key, 1002))).toEqual(['12', '12', '12']);
});

test('rejects values requested before it was cleared', () => {
  const cache = new ExpiringCache<string>(maxAge(500), 10);
  cache.set('known', 'one', 1000);
  cache.clear(1001);
  expect(cache.get('known', 1002)).toBeUndefined();
  for (const readAt of [1000, 1001]) {
    cache.set('late', 'two', readAt);
    expect(cache.get('late', 1002)).toBeUndefined();
  }
  cache.set('new', 'three', 1002);
  expect(cache.get('new', 1002)).toBe('three');
});

test('single flight: runs once per key at a time, in parallel for other keys, and unshared after it is forgotten', async () => {
  const flight = new SingleFlight<number>();
  let started = 0;
  const run = (key: string) =>
    flight.run(key, async () => {
      const number = ++started;
      await Promise.resolve();
      return number;
    });
  expect(await Promise.all([run('a'), run('a'), run('b')])).toEqual([1, 1, 2]);
  const running = run('a');
  flight.forget();
  expect(await Promise.all([running, run('a')])).toEqual([3, 4]);
  expect(await run('a')).toBe(5);
});
