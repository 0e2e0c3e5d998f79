import { covers } from './credential';

/** What each scope permits, or for a scope that covers others the words in front of theirs. */
const YOURS = {
  profile: 'See everything on your profile',
  'profile:me': 'See who you are',
  'profile:games': 'See the games you uploaded or can edit, with their earnings',
  'profile:owned': 'See the games you own',
  'profile:collections': 'See the list of your collections',
  game: 'Everything about your games',
  'game:view': 'See everything about games',
  'game:view:ownership': 'See whether you own a game',
  'game:view:uploads': 'List and download the files of games you own',
  'game:view:purchases': 'See who bought your games, with their email addresses and download keys',
  'game:edit:keys': 'Create and revoke download keys of your games',
  collection: 'Everything about your collections',
  'collection:view': 'See your collections and what is in them',
  'collection:edit': 'Change and delete your collections',
} as const;

export type Scope = keyof typeof YOURS;

/** The same, worded for the developer who registers an app, which requests scopes from others. */
const OF_OTHERS: Record<Scope, string> = {
  profile: 'See everything on a person’s profile',
  'profile:me': 'See who a person is',
  'profile:games': 'See the games that a person uploaded or can edit, with their earnings',
  'profile:owned': 'See the games that a person owns',
  'profile:collections': 'See the list of a person’s collections',
  game: 'Everything about a person’s games',
  'game:view': 'See everything about games',
  'game:view:ownership': 'See whether a person owns a game',
  'game:view:uploads': 'List and download the files of games that a person owns',
  'game:view:purchases': 'See who bought a person’s games, with their email addresses and download keys',
  'game:edit:keys': 'Create and revoke download keys of a person’s games',
  collection: 'Everything about a person’s collections',
  'collection:view': 'See a person’s collections and what is in them',
  'collection:edit': 'Change and delete a person’s collections',
};

const NAMES = Object.keys(YOURS) as Scope[];
const coveredBy = (scope: Scope) => NAMES.filter((one) => one !== scope && covers([scope], one));

/** Nobody can agree to a permission that the text doesn't name, so the texts of covered scopes are part of it. */
const withCovered = (texts: Record<Scope, string>): Record<Scope, string> =>
  Object.fromEntries(
    NAMES.map((scope) => {
      const covered = coveredBy(scope).filter((one) => coveredBy(one).length === 0);
      const named = covered.map((one) => texts[one][0]!.toLowerCase() + texts[one].slice(1));
      return [scope, named.length === 0 ? texts[scope] : `${texts[scope]}: ${named.join('; ')}`];
    }),
  ) as Record<Scope, string>;

/** All scopes, with the text that a consent page shows. */
export const SCOPES = withCovered(YOURS);

export const SCOPES_OF_OTHERS = withCovered(OF_OTHERS);

/** Characters of a list of scopes in a request: several times as many as all scopes have. */
export const MAX_SCOPES = 1000;

/** The scopes of an unscoped API key. */
export const ROOT_SCOPES: readonly Scope[] = ['collection', 'game', 'profile'];
