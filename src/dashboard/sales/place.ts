import type { Direction, Place } from '../../purchases/sales/sales-list.service';
import { formatCursor, parseCursor } from '../../platform/input/cursor';
import { Form } from '../../platform/input/form';

export const toCursor = ({ sold_at, purchase_id }: Place): string =>
  formatCursor({ at: sold_at, id: purchase_id });

/** Where the page of a list begins, and in which direction; undefined: with the newest sale. */
export function placeIn(query: Form): { direction: Direction; from: Place } | undefined {
  const [after, before] = [read(query.text('after')), read(query.text('before'))];
  if (after) return { direction: 'older', from: after };
  return before && { direction: 'newer', from: before };
}

function read(text: string | undefined): Place | undefined {
  const cursor = parseCursor(text);
  return cursor && { sold_at: cursor.at, purchase_id: cursor.id };
}
