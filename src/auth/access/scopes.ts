import type { Settings } from '../../platform/config/settings';
import { covers } from './credential';

interface Texts {
  /** Shown to the user who grants it. */
  yours: string;
  /** Shown to the developer who registers an app, which requests scopes from others. */
  of_others: string;
  /** Whether the scope permits only what the scopes that it covers permit. Its text introduces theirs. */
  isSummary?: true;
}

/** What each scope permits. */
const SCOPE_TEXTS = {
  profile: {
    yours: 'See everything on your profile',
    of_others: 'See everything on a person’s profile',
    isSummary: true,
  },
  'profile:me': { yours: 'See who you are', of_others: 'See who a person is' },
  'profile:games': {
    yours: 'See the games you uploaded or can edit, with their earnings',
    of_others: 'See the games that a person uploaded or can edit, with their earnings',
  },
  'profile:owned': { yours: 'See the games you own', of_others: 'See the games that a person owns' },
  'profile:owned:claim': {
    yours: 'Claim games of bundles you own',
    of_others: 'Claim games of bundles that a person owns',
  },
  'profile:collections': {
    yours: 'See the list of your collections',
    of_others: 'See the list of a person’s collections',
  },
  game: {
    yours: 'Everything about your games',
    of_others: 'Everything about a person’s games',
    isSummary: true,
  },
  'game:view': {
    yours: 'See everything about games',
    of_others: 'See everything about games',
    isSummary: true,
  },
  'game:view:ownership': {
    yours: 'See whether you own a game',
    of_others: 'See whether a person owns a game',
  },
  'game:view:uploads': {
    yours: 'List and download the files of games you own',
    of_others: 'List and download the files of games that a person owns',
  },
  'game:view:purchases': {
    yours: 'See who bought your games, with their email addresses and download keys',
    of_others: 'See who bought a person’s games, with their email addresses and download keys',
  },
  'game:edit': {
    yours: 'Create, change and delete your games',
    of_others: 'Create, change and delete a person’s games',
  },
  'game:edit:builds': {
    yours: 'Upload builds of your games',
    of_others: 'Upload builds of a person’s games',
  },
  'game:edit:keys': {
    yours: 'Create and revoke download keys of your games',
    of_others: 'Create and revoke download keys of a person’s games',
  },
  collection: {
    yours: 'Everything about your collections',
    of_others: 'Everything about a person’s collections',
    isSummary: true,
  },
  'collection:view': {
    yours: 'See your collections and what is in them',
    of_others: 'See a person’s collections and what is in them',
  },
  'collection:edit': {
    yours: 'Change and delete your collections',
    of_others: 'Change and delete a person’s collections',
  },
} as const satisfies Record<string, Texts>;

export type Scope = keyof typeof SCOPE_TEXTS;

/** Games can't request this scope for a JWT, because it creates download keys. */
export const CLAIM_SCOPE = 'profile:owned:claim' satisfies Scope;

const SCOPE_NAMES = Object.keys(SCOPE_TEXTS) as Scope[];
const coveredBy = (scope: Scope) => SCOPE_NAMES.filter((one) => one !== scope && covers([scope], one));

const isSummary = (scope: Scope) => 'isSummary' in SCOPE_TEXTS[scope];

/** Users must see every permission that they grant, so the texts of covered scopes are part of it. */
const withCovered = (reader: 'yours' | 'of_others'): Record<Scope, string> =>
  Object.fromEntries(
    SCOPE_NAMES.map((scope) => {
      const covered = coveredBy(scope).filter((one) => !isSummary(one));
      const named = covered.map(
        (one) => SCOPE_TEXTS[one][reader][0]!.toLowerCase() + SCOPE_TEXTS[one][reader].slice(1),
      );
      const text = SCOPE_TEXTS[scope][reader];
      return [scope, isSummary(scope) ? `${text}: ${named.join('; ')}` : [text, ...named].join('; ')];
    }),
  ) as Record<Scope, string>;

/** All scopes, with the text that a consent page shows. */
export const SCOPES = withCovered('yours');

export const SCOPES_OF_OTHERS = withCovered('of_others');

/** Several times the length of a list of all scopes. */
export const MAX_SCOPES = 1000;

/** The scopes of an unscoped API key: those that no other covers. */
export const ROOT_SCOPES: readonly Scope[] = SCOPE_NAMES.filter(
  (scope) => !SCOPE_NAMES.some((one) => one !== scope && covers([one], scope)),
).toSorted();

export function problemsOfManifestScopes({ MANIFEST_SCOPES }: Settings): string[] {
  const unknown = MANIFEST_SCOPES.filter((scope) => !Object.hasOwn(SCOPE_TEXTS, scope));
  if (unknown.length === 0) return [];
  return [
    `MANIFEST_SCOPES has unknown scopes: ${unknown.join(', ')}. \`gamewharf scopes\` lists all scopes.`,
  ];
}
