import { covers } from '../../src/auth/access/credential';
import { ROOT_SCOPES, SCOPES, SCOPES_OF_OTHERS } from '../../src/auth/access/scopes';

// The snapshot makes every change deliberate: users have agreed to the texts.
test('describes scopes to users who grant them, and to developers who register apps', () => {
  expect({ SCOPES, SCOPES_OF_OTHERS, ROOT_SCOPES }).toMatchSnapshot();
});

test('the text of a scope names everything that the scope covers', () => {
  for (const texts of [SCOPES, SCOPES_OF_OTHERS])
    for (const [scope, text] of Object.entries(texts))
      for (const [covered, words] of Object.entries(texts))
        if (covered.startsWith(`${scope}:`) && !words.includes(':'))
          expect([scope, text.toLowerCase()]).toEqual([scope, expect.stringContaining(words.toLowerCase())]);
});

test('the root scopes include all others', () => {
  const reached = (granted: readonly string[]) =>
    Object.keys(SCOPES).filter((scope) => covers(granted, scope));
  expect(reached(ROOT_SCOPES)).toEqual(Object.keys(SCOPES));
});

test.each([
  [['profile'], 'profile', true],
  [['profile'], 'profile:me', true],
  [['profile:me'], 'profile', false],
  [['prof'], 'profile:me', false],
  [['profile:'], 'profile:me', false],
  [['game:view:purchases'], 'game:view', false],
  [['game:view'], 'game:view:purchases', true],
  [['game'], 'game:view:purchases', true],
  [['collection', 'game'], 'profile:me', false],
  [['collection', 'profile'], 'profile:me', true],
  [[''], 'profile:me', false],
  [[':'], ':x', false],
  [[], 'profile:me', false],
  [['PROFILE'], 'profile:me', false],
])('%p includes %s: %p', (granted, needed, expected) => expect(covers(granted, needed)).toBe(expected));
