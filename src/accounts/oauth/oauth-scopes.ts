import { covers, SCOPES, type Scope } from '../../auth/scopes';

/** The scopes that a space-separated list asks for, or what is wrong with it. */
export function scopesOf(
  list: string | undefined,
  registered: readonly string[],
): string[] | { problem: string } {
  const asked = [...new Set((list ?? '').split(' ').filter(Boolean))];
  if (asked.length === 0) return { problem: 'No scope was asked for.' };
  if (asked.some((scope) => !Object.hasOwn(SCOPES, scope)))
    return { problem: 'A scope that was asked for does not exist.' };
  if (asked.some((scope) => !covers(registered, scope)))
    return { problem: 'A scope was asked for that the application has not registered.' };
  return asked.sort();
}

export const meaningOf = (scope: string): string => SCOPES[scope as Scope] ?? scope;
