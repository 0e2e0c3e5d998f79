import { failure } from '../../http/failure';
import { readInteger, Unreadable } from '../../http/readers';
import { meaningOf } from '../oauth-scopes';
import { html, type Html } from './html';

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** A day, from PostgreSQL's text. */
export function day(timestamp: string | null, never = 'never'): Html {
  if (timestamp === null) return html`<span class="muted">${never}</span>`;
  const [year, month, date] = timestamp.slice(0, 10).split('-');
  return html`<time datetime="${timestamp.slice(0, 10)}"
    >${Number(date)} ${MONTHS[Number(month) - 1]} ${year}</time
  >`;
}

export const alert = (problem: string): Html => html`<p class="alert" role="alert">${problem}</p>`;

export const done = (text: string): Html => html`<p class="done" role="status">${text}</p>`;

/** A text to be copied, selected at a click, with a button where there is JavaScript. */
export const copyable = (id: string, label: string, text: string): Html =>
  html`<div class="field">
    <label for="${id}">${label}</label>
    <div class="copyable">
      <input id="${id}" readonly value="${text}" spellcheck="false" autocomplete="off" />
      <button type="button" class="quiet" data-copy="${id}" hidden>Copy</button>
    </div>
  </div>`;

/** An id in the address of a page. */
export function idOf(text: string): number {
  const id = readInteger(text);
  if (id instanceof Unreadable) throw failure(404, 'The address is not right.');
  return id;
}

/** What scopes let an application do, in words. */
export const scopeList = (scopes: readonly string[], tag?: (scope: string) => string | undefined): Html =>
  html`<ul class="scopes">
    ${scopes.map((scope) => {
      const text = tag?.(scope);
      return html`<li>${meaningOf(scope)}${text && html` <span class="tag">${text}</span>`}</li>`;
    })}
  </ul>`;
