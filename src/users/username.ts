/** Why an account can't have this username, or undefined. */
export function problemOfNewUsername(username: string): string | undefined {
  if (!/^[A-Za-z0-9_-]{1,63}$/.test(username)) return 'A username must have 1 to 63 letters, digits, _ or -.';
  if (/^erased-\d+(-|$)/i.test(username)) return 'Names such as erased-7 are reserved for erased users.';
  return undefined;
}
