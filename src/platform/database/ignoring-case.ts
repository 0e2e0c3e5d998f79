import { Raw } from 'typeorm';

/** SQL condition: equal, ignoring the case of ASCII letters. */
export const ignoringCase = (text: string) =>
  Raw((column) => `lower_ascii(${column}) = lower_ascii(:text_in_any_case)`, { text_in_any_case: text });
