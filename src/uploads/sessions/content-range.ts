import { badRequest } from '../../platform/errors/api-error';

/** The `Content-Range` of a part. */
export interface PartRange {
  /** The first byte of the part, and the one after its last. Absent: the client requests the state. */
  part?: { start: number; end: number };
  /** Absent: the client doesn't know it yet. */
  size?: number;
}

const PART = /^bytes (?:(\d{1,15})-(\d{1,15})|\*)\/(\d{1,15}|\*)$/;

export function readContentRange(header: string | undefined): PartRange {
  const [found, first, last, total] = PART.exec(header ?? '') ?? [];
  if (found === undefined)
    throw badRequest('Content-Range must be of the form bytes 0-99/100, bytes 0-99/* or bytes */*');
  const size = total === '*' ? undefined : Number(total);
  if (first === undefined) return { size };
  const part = { start: Number(first), end: Number(last) + 1 };
  if (part.start >= part.end || part.end > (size ?? Infinity))
    throw badRequest('Content-Range must be a range within the file');
  return { part, size };
}
