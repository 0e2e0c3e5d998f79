const MIN_PASSWORD_CHARACTERS = 8;
const MAX_PASSWORD_CHARACTERS = 1000;

/** Why an account can't have this password, or undefined. */
export function problemOfNewPassword(password: string): string | undefined {
  if ([...password].length < MIN_PASSWORD_CHARACTERS)
    return `The password must have at least ${MIN_PASSWORD_CHARACTERS} characters.`;
  if (password.length > MAX_PASSWORD_CHARACTERS)
    return `The password must have at most ${MAX_PASSWORD_CHARACTERS} characters.`;
  return undefined;
}
