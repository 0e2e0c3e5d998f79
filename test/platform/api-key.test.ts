import {
  hashApiKey,
  keyHint,
  mayBeApiKey,
  newApiKey,
  newOperatorToken,
  listPeppers,
} from '../../src/auth/keys/api-key';
import { hasFormOfJwt } from '../../src/auth/access/credential';
import type { Settings } from '../../src/platform/config/settings';

test('creates unique keys in the documented format', () => {
  const keys = Array.from({ length: 1000 }, newApiKey);
  for (const key of keys) {
    expect(key).toMatch(/^gw_[0-9A-Za-z]{38}$/);
    expect(mayBeApiKey(key)).toBe(true);
    expect(hasFormOfJwt(key)).toBe(false);
  }
  expect(new Set(keys).size).toBe(1000);
  const letters = new Set(keys.flatMap((key) => [...key.slice(3, 35)]));
  expect(letters.size).toBe(62);
});

test('creates unique operator tokens, which are not keys', () => {
  expect(newOperatorToken()).toMatch(/^gwo_[0-9A-Za-z]{38}$/);
  expect(newOperatorToken()).not.toBe(newOperatorToken());
});

test('detects one wrong letter anywhere', () => {
  const key = newApiKey();
  for (let i = 3; i < key.length; i++) {
    const wrong = key.slice(0, i) + (key[i] === 'a' ? 'b' : 'a') + key.slice(i + 1);
    expect(mayBeApiKey(wrong)).toBe(false);
  }
});

// Computed by another implementation of CRC-32 and base 62: a different checksum would reject every existing key.
test.each([
  'gw_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA001VaSD',
  'gw_AAAAAAAAAAAAAAAAAAAAAAAAAAAAA14400ZK9X',
  'gw_AAAAAAAAAAAAAAAAAAAAAAAAAAAAA28710zWrQ',
])('accepts the checksum of %s', (key) => {
  expect(mayBeApiKey(key)).toBe(true);
  expect(mayBeApiKey(key.slice(0, -1))).toBe(true);
  expect(mayBeApiKey(`${key.slice(0, -1)}_`)).toBe(true);
  expect(mayBeApiKey(key.replace('A', 'B'))).toBe(false);
});

test('accepts keys in other formats, which may be imported', () => {
  const ours = newApiKey();
  for (const key of [
    'my-test-key',
    'gw_',
    ours.slice(1),
    `${ours}x`,
    `x${ours}`,
    ours.slice(0, -1),
    ours.replace('_', '-'),
  ])
    expect(mayBeApiKey(key)).toBe(true);
  expect(mayBeApiKey('x'.repeat(1024))).toBe(true);
  expect(mayBeApiKey('x'.repeat(1025))).toBe(false);
});

test.each([
  ['a.b.c', true],
  ['a.b.', true],
  ['A-_9.A-_9.A-_9', true],
  ['a.b', false],
  ['a..c', false],
  ['.b.c', false],
  ['a.b.c.d', false],
  ['a.b.c=', false],
  ['a b.c.d', false],
  ['a.b.c\n', false],
])('%p has the format of a JWT: %p', (text, expected) => expect(hasFormOfJwt(text)).toBe(expected));

test.each([
  ['gw_ABCDEFGHIJKLMNOP', 'gw_ABC'],
  [newApiKey().replace(/^gw_...../, 'gw_12345'), 'gw_12345'],
  ['my-test-key', 'my-'],
  ['ab', ''],
  ['😀😀😀', '😀'],
])('shows %s with the hint %s', (key, hint) => expect(keyHint(key)).toBe(hint));

// Computed by another implementation of HMAC: a stored key must be found after every upgrade.
test('hashes a key as stored', () => {
  expect(hashApiKey('gw_key', 'a pepper').toString('hex')).toBe(
    'c61da714dd949e501c70a51e74d3f7adb7f693ab4a5e1bfd33cd14835d970aad',
  );
});

test('orders the current pepper first, and defaults to an empty one', () => {
  const peppers = (current: string | undefined, ...previous: string[]) =>
    listPeppers({ API_KEY_PEPPER: current, API_KEY_PEPPER_PREVIOUS: previous } as Settings);
  expect(peppers('new', 'old', 'oldest')).toEqual(['new', 'old', 'oldest']);
  expect(peppers(undefined)).toEqual(['']);
});
