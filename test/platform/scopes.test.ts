import { covers } from '../../src/auth/access/credential';
import { ROOT_SCOPES, SCOPES, SCOPES_OF_OTHERS } from '../../src/auth/access/scopes';

test('describes scopes to users who grant them', () => {
  expect(SCOPES).toEqual({
    profile:
      'See everything on your profile: see who you are; see the games you uploaded or can edit, with their earnings; see the games you own; see the list of your collections',
    'profile:me': 'See who you are',
    'profile:games': 'See the games you uploaded or can edit, with their earnings',
    'profile:owned': 'See the games you own',
    'profile:collections': 'See the list of your collections',
    game: 'Everything about your games: see whether you own a game; list and download the files of games you own; see who bought your games, with their email addresses and download keys; create and revoke download keys of your games',
    'game:view':
      'See everything about games: see whether you own a game; list and download the files of games you own; see who bought your games, with their email addresses and download keys',
    'game:view:ownership': 'See whether you own a game',
    'game:view:purchases': 'See who bought your games, with their email addresses and download keys',
    'game:view:uploads': 'List and download the files of games you own',
    'game:edit:keys': 'Create and revoke download keys of your games',
    collection:
      'Everything about your collections: see your collections and what is in them; change and delete your collections',
    'collection:view': 'See your collections and what is in them',
    'collection:edit': 'Change and delete your collections',
  });
});

test('describes scopes to developers who register apps', () => {
  expect(SCOPES_OF_OTHERS).toEqual({
    profile:
      'See everything on a person’s profile: see who a person is; see the games that a person uploaded or can edit, with their earnings; see the games that a person owns; see the list of a person’s collections',
    'profile:me': 'See who a person is',
    'profile:games': 'See the games that a person uploaded or can edit, with their earnings',
    'profile:owned': 'See the games that a person owns',
    'profile:collections': 'See the list of a person’s collections',
    game: 'Everything about a person’s games: see whether a person owns a game; list and download the files of games that a person owns; see who bought a person’s games, with their email addresses and download keys; create and revoke download keys of a person’s games',
    'game:view':
      'See everything about games: see whether a person owns a game; list and download the files of games that a person owns; see who bought a person’s games, with their email addresses and download keys',
    'game:view:ownership': 'See whether a person owns a game',
    'game:view:purchases': 'See who bought a person’s games, with their email addresses and download keys',
    'game:view:uploads': 'List and download the files of games that a person owns',
    'game:edit:keys': 'Create and revoke download keys of a person’s games',
    collection:
      'Everything about a person’s collections: see a person’s collections and what is in them; change and delete a person’s collections',
    'collection:view': 'See a person’s collections and what is in them',
    'collection:edit': 'Change and delete a person’s collections',
  });
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
  expect(ROOT_SCOPES).toEqual(['collection', 'game', 'profile']);
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
