import { commonScopes, listOfScopes, meaningOf, problemOfScopes } from '../../src/auth/oauth/oauth-scopes';

const ALL = ['collection', 'game', 'profile'];
const NONE = 'scope is missing';
const UNKNOWN = 'a requested scope does not exist';
const UNREGISTERED = 'a requested scope is not registered for the app';

test.each<[string | undefined, string[]]>([
  ['profile:me', ['profile:me']],
  ['profile collection:view  profile', ['collection:view', 'profile']],
  ['game nonsense', ['game', 'nonsense']],
  [undefined, []],
  ['', []],
  ['  ', []],
])('parses %p as %j', (list, expected) => expect(listOfScopes(list)).toEqual(expected));

test.each<[string | undefined, string[]]>([
  ['game nonsense toString', ['game']],
  ['game', ['game']],
  ['nonsense', ['nonsense']],
  ['', []],
])('parses %p leniently as %j', (list, expected) =>
  expect(listOfScopes(list, { lenient: true })).toEqual(expected),
);

test.each<[string, string[], string | undefined]>([
  ['profile:me', ['profile:me'], undefined],
  ['profile:me', ['profile'], undefined],
  ['collection:view profile', ALL, undefined],
  ['', ALL, NONE],
  ['nonsense', ALL, UNKNOWN],
  ['game nonsense', ALL, UNKNOWN],
  ['profile:you', ALL, UNKNOWN],
  ['toString', ALL, UNKNOWN],
  ['profile,game', ALL, UNKNOWN],
  ['profile', ['profile:me'], UNREGISTERED],
  ['game profile', ['profile'], UNREGISTERED],
  ['profile', [], UNREGISTERED],
])('validates %p for %p: %p', (list, registered, expected) =>
  expect(problemOfScopes(listOfScopes(list), registered)).toBe(expected),
);

test.each([
  [['profile:me'], ['profile:me'], ['profile:me']],
  [['profile'], ['profile:me'], ['profile:me']],
  [['profile:me'], ['profile'], ['profile:me']],
  [
    ['profile', 'game'],
    ['profile:me', 'profile:games', 'collection'],
    ['profile:games', 'profile:me'],
  ],
  [['profile', 'profile:me'], ['profile'], ['profile', 'profile:me']],
  [['game'], ['profile'], []],
  [[], ALL, []],
])('intersects %j and %j as %j', (some, others, expected) => {
  expect(commonScopes(some, others)).toEqual(expected);
  expect(commonScopes(others, some)).toEqual(expected);
});

test('describes a scope, and prints one of an older release as it is', () => {
  expect(meaningOf('profile:me')).toBe('See who you are');
  expect(meaningOf('profile:you')).toBe('profile:you');
});
