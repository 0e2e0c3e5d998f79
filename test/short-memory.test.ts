import { lasting, ShortMemory } from '../src/caching/short-memory';

test('forgets what is too old, counted from when it was asked', () => {
  const memory = new ShortMemory<string>(lasting(500), 10);
  memory.set('a', 'one', 1000);
  expect(memory.get('a', 1499)).toBe('one');
  expect(memory.get('a', 1500)).toBeUndefined();
  memory.set('a', 'two', 1500);
  expect(memory.get('a', 1999)).toBe('two');
});

test('holds no more than it may, and drops the oldest', () => {
  const memory = new ShortMemory<number>(lasting(500), 3);
  for (let i = 0; i < 5; i++) memory.set(`n${i}`, i, 1000 + i);
  memory.set('n2', 22, 1010);
  memory.set('n5', 5, 1011);
  expect(['n0', 'n1', 'n2', 'n3', 'n4', 'n5'].map((name) => memory.get(name, 1012))).toEqual([
    undefined,
    undefined,
    22,
    undefined,
    4,
    5,
  ]);
});

test('lets go of what is stale with each new one that comes, a few at once', () => {
  const memory = new ShortMemory<number>(lasting(500), 1000);
  for (let i = 0; i < 100; i++) memory.set(`n${i}`, i, 1000);
  memory.set('new', 1, 1500);
  expect(memory.size).toBeLessThan(100);
  expect(memory.size).toBeGreaterThan(80);
  for (let i = 0; i < 15; i++) memory.set(`new${i}`, i, 1501);
  expect(memory.size).toBe(16);
});

test('holds no more than it may by weight, also where a weight changes', () => {
  const memory = new ShortMemory<string>(lasting(500), 10, (name, value) => name.length + value.length);
  const known = () => ['a', 'b', 'c', 'd'].filter((name) => memory.get(name, 1004) !== undefined).join('');
  memory.set('a', '12', 1000);
  memory.set('b', '12', 1001);
  memory.set('c', '12', 1002);
  expect(known()).toBe('abc');
  memory.set('c', '123', 1003);
  expect(known()).toBe('abc');
  memory.set('d', '123', 1004);
  expect(known()).toBe('cd');
  memory.forget();
  memory.set('a', '123456789', performance.now() + 1);
  expect(memory.size).toBe(1);
});

test('forgets all, also what was asked for before and is answered later', () => {
  const memory = new ShortMemory<string>(lasting(500), 10);
  const before = performance.now();
  memory.set('known', 'one', before);
  memory.forget();
  const now = performance.now();
  expect(memory.get('known', now)).toBeUndefined();
  memory.set('late', 'two', before);
  expect(memory.get('late', now)).toBeUndefined();
  memory.set('new', 'three', now + 1);
  expect(memory.get('new', now + 1)).toBe('three');
});
