import { html, type Html } from '../layout/html';
import { field } from '../layout/fields';
import type { Period } from './period';

/** A form whose values are in the URL. A script sends it after each change; without one, its button does. */
export const filterForm = (action: string, fields: Html): Html =>
  html`<form action="${action}" class="filter" data-filter>
    ${fields}
    <button>Show</button>
    <p class="hidden" data-filter-note hidden>The page is updated after each change.</p>
  </form>`;

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
