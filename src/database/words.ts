/**
 * Columns that travel as one text, `words` in the row, because reading a column costs more than taking it from a text that
 * was read: docs/decisions/rows-of-lists.md. For numbers, timestamps, names and lists of words, which hold no `|`. Only the
 * last may be NULL, and is left out then.
 */
export const words = (...columns: string[]) => `concat_ws('|', ${columns.join(', ')}) AS words`;

export const wordsOf = <Words extends (string | undefined)[]>(text: string) =>
  text.split('|') as (string | undefined)[] as Words;

/** An array as PostgreSQL writes it, of words that need no quotes. */
export const listOf = (text: string): string[] => (text === '{}' ? [] : text.slice(1, -1).split(','));
