/** All scopes, with the text that a consent page shows. */
export const SCOPES = {
  profile: 'See everything on your profile',
  'profile:me': 'See who you are',
  'profile:games': 'See the games you uploaded or can edit, with their earnings',
  'profile:owned': 'See the games you own',
  'profile:collections': 'See the list of your collections',
  game: 'Everything about your games',
  'game:view': 'See games and which of them you own, and download their files',
  'game:view:ownership': 'See whether you own a game',
  'game:view:uploads': 'List and download the files of games you own',
  'game:view:purchases': 'See who bought your games and who owns a key',
  'game:edit:keys': 'Create and revoke download keys of your games',
  collection: 'Everything about your collections',
  'collection:view': 'See your collections and what is in them',
  'collection:edit': 'Change and delete your collections',
} as const;

/** The same, worded for the developer who registers an app, which requests scopes from others. */
export const SCOPES_OF_OTHERS: Record<Scope, string> = {
  profile: 'See everything on a person’s profile',
  'profile:me': 'See who a person is',
  'profile:games': 'See the games that a person uploaded or can edit, with their earnings',
  'profile:owned': 'See the games that a person owns',
  'profile:collections': 'See the list of a person’s collections',
  game: 'Everything about a person’s games',
  'game:view': 'See games and which of them a person owns, and download their files',
  'game:view:ownership': 'See whether a person owns a game',
  'game:view:uploads': 'List and download the files of games that a person owns',
  'game:view:purchases': 'See who bought a person’s games and who owns a key',
  'game:edit:keys': 'Create and revoke download keys of a person’s games',
  collection: 'Everything about a person’s collections',
  'collection:view': 'See a person’s collections and what is in them',
  'collection:edit': 'Change and delete a person’s collections',
};

export type Scope = keyof typeof SCOPES;

/** Characters of a list of scopes in a request: several times as many as all scopes have. */
export const MAX_SCOPES = 1000;

/** The scopes of an unscoped API key. */
export const ROOT_SCOPES: readonly Scope[] = ['collection', 'game', 'profile'];
