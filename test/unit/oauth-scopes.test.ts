import { meaningOf, scopesOf } from '../../src/accounts/oauth/oauth-scopes';

const ALL = ['collection', 'game', 'profile'];
const NONE = { problem: 'No scope was asked for.' };
const UNKNOWN = { problem: 'A scope that was asked for does not exist.' };
const UNREGISTERED = { problem: 'A scope was asked for that the application has not registered.' };

test.each<[string | undefined, string[], ReturnType<typeof scopesOf>]>([
  ['profile:me', ['profile:me'], ['profile:me']],
  ['profile:me', ['profile'], ['profile:me']],
  ['profile collection:view  profile', ALL, ['collection:view', 'profile']],
  ['game game', ALL, ['game']],
  [undefined, ALL, NONE],
  ['', ALL, NONE],
  ['  ', ALL, NONE],
  ['nonsense', ALL, UNKNOWN],
  ['game nonsense', ALL, UNKNOWN],
  ['profile:you', ALL, UNKNOWN],
  ['toString', ALL, UNKNOWN],
  ['profile,game', ALL, UNKNOWN],
  ['profile', ['profile:me'], UNREGISTERED],
  ['game profile', ['profile'], UNREGISTERED],
  ['profile', [], UNREGISTERED],
])('%p of %p: %j', (asked, registered, expected) => expect(scopesOf(asked, registered)).toEqual(expected));

test('a scope is put in words, and one of an older release stands for itself', () => {
  expect(meaningOf('profile:me')).toBe('See who you are');
  expect(meaningOf('profile:you')).toBe('profile:you');
});
