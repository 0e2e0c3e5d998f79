import type { Request } from 'express';

/** Browsers accept text/html by name; programs accept JSON or anything. */
export const wantsPage = ({ headers }: Request): boolean => /\btext\/html\b/i.test(headers.accept ?? '');
