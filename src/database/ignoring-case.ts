import { Raw } from 'typeorm';

/** As a condition: the same text in any case, as the database folds letters. */
export const ignoringCase = (text: string) =>
  Raw((column) => `lower(${column}) = lower(:text_in_any_case)`, { text_in_any_case: text });
