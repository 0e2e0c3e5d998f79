export const MAX_SLUG_CHARACTERS = 100;

/** The last part of the URL of a game. A slug of only dots would change the path of the URL. */
export const SLUG = /^\.*[A-Za-z0-9_-][A-Za-z0-9_.-]*$/;

/** `Röde Orm 2` becomes `rode-orm-2`; empty for a title without Latin letters and digits. */
export const slugify = (title: string): string =>
  title
    .normalize('NFKD')
    .replace(/\p{M}/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_SLUG_CHARACTERS)
    .replace(/^-+|-+$/g, '');
