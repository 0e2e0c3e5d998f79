/**
 * Like the database's lower_ascii: email addresses and usernames are equal if only the case of ASCII letters differs.
 */
export const lowerAscii = (text: string): string =>
  text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
