/** As the database's lower_ascii: email addresses and usernames are equal ignoring the case of ASCII letters alone. */
export const lowerAscii = (text: string): string =>
  text.replace(/[A-Z]+/g, (letters) => letters.toLowerCase());
