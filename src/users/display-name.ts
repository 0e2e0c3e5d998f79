/** Why an account can't have this display name, or undefined. */
export function problemOfDisplayName(name: string): string | undefined {
  const { length } = [...name];
  if (length === 0 || length > 200) return 'A display name must have 1 to 200 characters.';
  return /\p{Cc}/u.test(name) ? 'A display name must not contain control characters.' : undefined;
}
