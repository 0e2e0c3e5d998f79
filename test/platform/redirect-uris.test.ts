import {
  listFormTargets,
  isExclusive,
  isLoopbackUri,
  isSafe,
  isSameRedirect,
  OUT_OF_BAND,
  describeTarget,
  findProblem,
  redirectWith,
} from '../../src/auth/oauth/redirect-uris';

const LONGEST = `https://game.example/${'x'.repeat(1979)}`;

test.each([
  'https://game.example',
  'https://game.example/callback?a=1',
  'https://game.example/callback;a=1,2',
  'https://my_game.example:8443/',
  'https://[2001:db8::1]:8443/',
  'http://127.0.0.1',
  'http://127.0.0.1:80/',
  'http://127.0.0.1:65535/callback',
  'http://[::1]/callback',
  'http://localhost?a=1',
  'com.example.game:/callback',
  'Com.Example2.Ga-me+:/callback',
  'a.b:x',
  'com.example.game:/callback?next=data:x',
  OUT_OF_BAND,
  LONGEST,
])('%s can be registered and redirected to', (uri) => {
  expect(findProblem(uri)).toBeUndefined();
  expect(isSafe(uri)).toBe(true);
});

test.each([
  '',
  ' https://game.example',
  'https://game.example\n',
  'https://game.example/ü',
  'https://game.example/a b',
  'https://game.example/#x',
  'https://game.example\\@evil.example/',
  'https://game.example/"',
  'https://<game>.example/',
  'https://*.game.example/',
  `${LONGEST}x`,
  '/callback',
  'https://game.example;/',
  'https://game.example;script-src/',
  'https://game.example,evil.example/',
  "https://game.example'/",
  'https://game.example;:8443/',
  'https:game.example/',
  'https:///game.example/',
  'https:/https://game.example/',
  'HTTPS://game.example/',
  'https://user@game.example/',
  'https://:password@game.example/',
  'http://game.example/',
  'http://127.0.0.1.evil.example/',
  'http://127.0.0.1:80@evil.example/',
  'http://127.0.0.1:/',
  'http://127.0.0.1:x/',
  'http://evil.example/?http://127.0.0.1/',
  'HTTP://127.0.0.1/',
  'javascript:alert(1)',
  'JavaScript:alert(1)',
  'data:text/html,x',
  'vbscript:x',
  'file:///etc/hosts',
  'blob:https://game.example/x',
  'about:blank',
  'view-source:https://game.example/',
  'filesystem:https://game.example/x',
  'ws://game.example/',
  'wss://game.example/',
  'ftp://game.example/',
  'mailto:player@game.example',
  'tel:1',
  'intent:x',
  'urn:x',
])('%j can neither be registered nor redirected to', (uri) => {
  expect(findProblem(uri)).toContain(
    'must begin with https://, with http://127.0.0.1, http://[::1] or http://localhost, or with your own scheme',
  );
  expect(isSafe(uri)).toBe(false);
});

test.each([
  'game:/callback',
  '.game:/callback',
  'com.:/callback',
  '1.example:/callback',
  '-a.example:/callback',
  'com_example.game:/callback',
  'game:com.example.game:/callback',
])('%s can no longer be registered', (uri) => expect(findProblem(uri)).toContain('must begin with https://'));

test('an imported app may have a scheme without a dot', () => expect(isSafe('game:/callback')).toBe(true));

test.each([
  ['https://game.example/', true, false],
  ['http://127.0.0.1:1/', true, true],
  ['http://127.0.0.1:123456/', false, false],
  ['http://127.0.0.12/', false, false],
  ['http://localhost', true, true],
  ['http://localhost/', true, true],
  ['http://localhost.evil.example/', false, false],
  ['https://127.0.0.1/', true, false],
  ['com.example.game:/https://', false, false],
  ['x:http://127.0.0.1/', false, false],
])('%s is claimed: %p, loopback: %p', (uri, claimed, loopback) => {
  expect(isExclusive(uri)).toBe(claimed);
  expect(isLoopbackUri(uri)).toBe(loopback);
});

test.each([
  ['https://game.example/callback', 'https://game.example/callback', true],
  ['https://game.example/callback', 'https://game.example/Callback', false],
  ['https://game.example/callback', 'https://game.example:443/callback', false],
  ['https://game.example:1/http://localhost:1/', 'https://game.example:1/http://localhost/', false],
  ['com.example.game:/callback', 'com.example.game:/callback', true],
  ['com.example.game:/callback', 'com.example.game:/other', false],
  ['http://127.0.0.1/callback', 'http://127.0.0.1:61023/callback', true],
  ['http://127.0.0.1:1/callback', 'http://127.0.0.1:61023/callback', true],
  ['http://127.0.0.1:61023/callback', 'http://127.0.0.1/callback', true],
  ['http://127.0.0.1/callback', 'http://127.0.0.1:123456/callback', false],
  ['http://127.0.0.1/callback', 'http://127.0.0.1:61023/other', false],
  ['http://127.0.0.1/?http://127.0.0.1:1/', 'http://127.0.0.1/?http://127.0.0.1:2/', false],
  ['http://127.0.0.1/callback', 'http://localhost/callback', false],
  ['http://[::1]/callback', 'http://[::1]:1/callback', true],
  ['http://localhost/callback', 'http://localhost:65535/callback', true],
])('%s registered, %s requested: %p', (registered, asked, same) =>
  expect(isSameRedirect(registered, asked)).toBe(same),
);

test.each([
  ['https://game.example/', 'query', 'https://game.example/?code=a+b%26c'],
  ['https://game.example/?', 'query', 'https://game.example/?code=a+b%26c'],
  ['https://game.example/?lang=en', 'query', 'https://game.example/?lang=en&code=a+b%26c'],
  ['https://game.example/?lang=en&', 'query', 'https://game.example/?lang=en&code=a+b%26c'],
  ['https://game.example/?lang=en', 'fragment', 'https://game.example/?lang=en#code=a+b%26c'],
] as const)('adds a code to %s in its %s', (uri, part, expected) =>
  expect(redirectWith(uri, part, { code: 'a b&c', state: undefined })).toBe(expected),
);

test.each([
  ['https://game.example/callback', ['https://game.example'], 'game.example'],
  ['https://game.example:8443/callback', ['https://game.example:8443'], 'game.example:8443'],
  ['http://127.0.0.1:1/callback', ['http://127.0.0.1:1'], 'the program on this computer'],
  ['http://[::1]:1/callback', ['http:'], 'the program on this computer'],
  ['com.example.game:/callback', ['com.example.game:'], 'the app that opens com.example.game: links'],
  [OUT_OF_BAND, [], 'this page'],
])('%s is %s in a policy, and %s for users', (uri, sources, place) => {
  expect(listFormTargets(uri)).toEqual(sources);
  expect(describeTarget(uri)).toBe(place);
});
