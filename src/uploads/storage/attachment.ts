import { create } from 'content-disposition';

/** The Content-Disposition of a file to save (RFC 6266). Some clients parse only quoted names. */
export const attachment = (filename: string): string =>
  create(filename).replace(/^attachment; filename=([^";]+)/, 'attachment; filename="$1"');
