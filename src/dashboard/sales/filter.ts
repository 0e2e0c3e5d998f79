import { html, type Html } from '../layout/html';
import { field } from '../layout/fields';
import type { Period } from './period';

/** The first and the last day of a custom period. */
export function dateFields(
  query: { from?: string; to?: string },
  { range, from, to, problem }: Period,
): Html {
  const dates = range === 'custom' ? { from: query.from ?? '', to: query.to ?? '' } : { from, to };
  const one = (id: 'from' | 'to', label: string) =>
    field({ id, label, type: 'date', value: dates[id], style: 'date', problem, problemOf: 'dates' });
  return html`${one('from', 'First day')} ${one('to', 'Last day')}`;
}
