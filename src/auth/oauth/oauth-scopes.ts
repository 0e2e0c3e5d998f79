import { covers } from '../access/credential';
import { SCOPES, type Scope } from '../access/scopes';

const isScope = (scope: string) => Object.hasOwn(SCOPES, scope);

/**
 * Scopes that launchers and upload tools request, and the scopes that replace them with LENIENT_CLIENTS. The
 * replacements never include `game:view`, which covers the email addresses of buyers and the texts of sold
 * keys.
 */
const SCOPE_ALIASES: Record<string, Scope[]> = {
  itch: ['profile', 'collection', 'game:view:ownership', 'game:view:uploads'],
  wharf: ['profile:games', 'game:view:uploads', 'game:edit:builds'],
};

const resolveAlias = (scope: string): string[] =>
  Object.hasOwn(SCOPE_ALIASES, scope) ? SCOPE_ALIASES[scope]! : [scope];

/**
 * Parses a space-separated list into sorted, distinct scopes; `lenient` replaces the scopes of SCOPE_ALIASES
 * and drops unknown ones.
 */
export function listOfScopes(list: string | undefined, { lenient = false } = {}): string[] {
  const names = (list ?? '').split(' ').filter(Boolean);
  const scopes = [...new Set(lenient ? names.flatMap(resolveAlias) : names)].sort();
  // A list of only unknown scopes stays unchanged and is an error.
  return lenient && scopes.some(isScope) ? scopes.filter(isScope) : scopes;
}

export function problemOfScopes(
  requested: readonly string[],
  registered: readonly string[],
): string | undefined {
  if (requested.length === 0) return 'scope is missing';
  if (!requested.every(isScope)) return 'a requested scope does not exist';
  if (!requested.every((scope) => covers(registered, scope)))
    return 'a requested scope is not registered for the app';
  return undefined;
}

/**
 * The granted scopes that the app still has registered. A granted scope that is broader than the registration
 * is replaced by the registered scopes that it covers.
 */
export function permittedScopes(granted: readonly string[], registered: readonly string[]): string[] {
  const permitted = granted.filter((scope) => covers(registered, scope));
  const narrowed = registered.filter((scope) => covers(granted, scope) && !covers(permitted, scope));
  return [...permitted, ...narrowed].sort();
}

export const describeScope = (scope: string): string => SCOPES[scope as Scope] ?? scope;
