import { create } from 'content-disposition';

/** The Content-Disposition of a file to save (RFC 6266). Some clients read only names in quotes. */
export const attachment = (filename: string): string =>
  create(filename).replace(/filename=([^"*;]+)/, 'filename="$1"');
