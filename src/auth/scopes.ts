/** All scopes, with the text that a consent page shows. */
export const SCOPES = {
  profile: 'See everything on your profile',
  'profile:me': 'See who you are',
  'profile:games': 'See the games you uploaded or can edit, with their earnings',
  'profile:owned': 'See the games you own',
  'profile:collections': 'See the list of your collections',
  game: 'Everything about your games',
  'game:view': 'See games, and which of them you own',
  'game:view:ownership': 'See whether you own a game',
  'game:view:purchases': 'See who bought your games and who owns a key',
  collection: 'Everything about your collections',
  'collection:view': 'See your collections and what is in them',
  'collection:edit': 'Change and delete your collections',
} as const;

export type Scope = keyof typeof SCOPES;

/** The scopes of an unscoped API key. */
export const ROOT_SCOPES: readonly Scope[] = ['collection', 'game', 'profile'];

/** A granted scope covers itself and everything below it. */
export const covers = (granted: readonly string[], needed: string): boolean =>
  granted.some((scope) => needed === scope || needed.startsWith(`${scope}:`));
