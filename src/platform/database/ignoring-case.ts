import { Raw } from 'typeorm';

/** As a condition: equal, ignoring case by the database's rules. */
export const ignoringCase = (text: string) =>
  Raw((column) => `lower(${column}) = lower(:text_in_any_case)`, { text_in_any_case: text });
