import { isTimestamp } from '../formats/timestamps';

/**
 * The last entry of a page, in a list that is sorted by a time in PostgreSQL's format and an ID, descending.
 * The next page begins after it.
 */
export interface Cursor {
  at: string;
  id: number;
}

/** A place before the first entry. */
export const NEWEST_CURSOR: Cursor = { at: 'infinity', id: Number.MAX_SAFE_INTEGER };

const CURSOR = /^(\S{10}) (\S+)\+00,(\d{1,15})$/;

export const formatCursor = ({ at, id }: Cursor): string => `${at},${id}`;

/** Parses a cursor; undefined for another text. */
export function parseCursor(text: string | undefined): Cursor | undefined {
  const [, day, time, id] = CURSOR.exec(text ?? '') ?? [];
  return isTimestamp(`${day}T${time}Z`) ? { at: `${day} ${time}+00`, id: Number(id) } : undefined;
}
