import type { Direction, Place } from '../../purchases/sales/sales-list.service';
import { Form } from '../../platform/input/form';

// The timestamp is in PostgreSQL's own format.
const PLACE = /^(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?\+00),(\d{1,15})$/;

export const toCursor = ({ sold_at, purchase_id }: Place): string => `${sold_at},${purchase_id}`;

/** Where the page of a list begins, and in which direction; undefined: with the newest sale. */
export function placeIn(query: Form): { direction: Direction; from: Place } | undefined {
  const [after, before] = [read(query.text('after')), read(query.text('before'))];
  if (after) return { direction: 'older', from: after };
  return before && { direction: 'newer', from: before };
}

function read(text: string | undefined): Place | undefined {
  const [, sold_at, id] = PLACE.exec(text ?? '') ?? [];
  const isTime = sold_at !== undefined && !Number.isNaN(Date.parse(sold_at.replace('+00', 'Z')));
  return isTime ? { sold_at, purchase_id: Number(id) } : undefined;
}
