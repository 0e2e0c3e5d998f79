const MIN_PASSWORD = 8;
const MAX_PASSWORD = 1000;

/** Why an account can't have this password, or undefined. */
export function problemOfNewPassword(password: string): string | undefined {
  if ([...password].length < MIN_PASSWORD)
    return `The password must have at least ${MIN_PASSWORD} characters.`;
  if (password.length > MAX_PASSWORD) return `The password must have at most ${MAX_PASSWORD} characters.`;
  return undefined;
}
