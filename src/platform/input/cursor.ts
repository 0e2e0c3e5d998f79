import { isTimestamp } from '../formats/timestamps';

/** An entry of a list in descending order, by a time in PostgreSQL's format and an ID. The next page begins after it. */
export interface Cursor {
  at: string;
  id: number;
}

/** A place before the first entry. */
export const NEWEST: Cursor = { at: 'infinity', id: Number.MAX_SAFE_INTEGER };

const CURSOR = /^(\S{10}) (\S+)\+00,(\d{1,15})$/;

export const formatCursor = ({ at, id }: Cursor): string => `${at},${id}`;

/** Undefined if the text isn't a cursor. */
export function parseCursor(text: string | undefined): Cursor | undefined {
  const [, day, time, id] = CURSOR.exec(text ?? '') ?? [];
  return isTimestamp(`${day}T${time}Z`) ? { at: `${day} ${time}+00`, id: Number(id) } : undefined;
}
