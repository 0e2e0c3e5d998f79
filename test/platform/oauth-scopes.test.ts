import { ROOT_SCOPES } from '../../src/auth/access/scopes';
import {
  listOfScopes,
  describeScope,
  permittedScopes,
  problemOfScopes,
} from '../../src/auth/oauth/oauth-scopes';

const ALL: string[] = [...ROOT_SCOPES];
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
  ['itch', ['collection', 'game:view:ownership', 'game:view:uploads', 'profile']],
  ['wharf', ['game:edit:builds', 'game:view:uploads', 'profile:games']],
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
  [
    ['game:view', 'profile'],
    ['collection', 'game:view', 'game:view:uploads', 'profile', 'profile:me'],
    ['game:view', 'profile'],
  ],
  [['game'], ['profile'], []],
  [[], ALL, []],
  [ALL, [], []],
])('of the granted %j, an app with %j gets %j', (granted, registered, expected) =>
  expect(permittedScopes(granted, registered)).toEqual(expected),
);

test('describes a scope, and prints one of an older release as it is', () => {
  expect(describeScope('profile:me')).toBe('See who you are');
  expect(describeScope('profile:you')).toBe('profile:you');
});
