import type { Request } from 'express';

/** Browsers ask for HTML by name; programs for JSON, or for anything. */
export const wantsPage = ({ headers }: Request): boolean => /\btext\/html\b/i.test(headers.accept ?? '');
