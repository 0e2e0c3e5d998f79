import { covers } from '../../auth/credential';
import { SCOPES, type Scope } from '../../auth/scopes';
import { apiError } from '../../platform/http/api-error';
import { withQuery } from '../../platform/http/form';
import { modernTimestamp } from '../../platform/formats/timestamps';
import { InvalidValue } from '../../platform/http/given-values';
import { readInteger } from '../../platform/http/readers';
import type { Consent } from '../../auth/oauth/grants.service';
import { meaningOf } from '../../auth/oauth/oauth-scopes';
import { html, type Html } from './html';
import { formToken, type Page } from './layout';
import type { Visitor } from './visitor';

export const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The day of a timestamp in PostgreSQL's format. */
export function day(timestamp: string | null, never = 'never'): Html {
  if (timestamp === null) return html`<span class="muted">${never}</span>`;
  const [year, month, date] = timestamp.slice(0, 10).split('-');
  return html`<time datetime="${timestamp.slice(0, 10)}"
    >${Number(date)} ${MONTHS[Number(month) - 1]} ${year}</time
  >`;
}

/** To the second, in UTC. */
export const timeOf = (timestamp: string): Html =>
  html`${day(timestamp)}, ${modernTimestamp(timestamp).slice(11, 19)} UTC`;

export const alert = (problem: string): Html => html`<p class="alert" role="alert">${problem}</p>`;

/** What is wrong with the fields of a form, each told at its field. */
export type Problems<Field extends string = string> = Partial<Record<Field, string>>;

export const isWrong = (problems: Problems): boolean =>
  Object.values(problems).some((problem) => problem !== undefined);

/** The problem of a field, below or above it. */
export const problemAt = (field: string, problem: string | undefined): Html =>
  html`${problem !== undefined && html`<p class="problem" id="${field}-problem" role="alert">${problem}</p>`}`;

/** The attributes of a field that has a problem, or other texts about it. */
export const described = (field: string, problem: string | undefined, ...others: string[]): Html => {
  const texts = [...others, ...(problem === undefined ? [] : [`${field}-problem`])];
  return html`${texts.length > 0 && html` aria-describedby="${texts.join(' ')}"`}${problem !== undefined && html` aria-invalid="true"`}`;
};

const MAX_NAME = 100;

/** What is wrong with a name; `missing` is said where there is none. */
export const problemOfName = (name: string, missing: string): string | undefined => {
  if (name === '') return missing;
  return [...name].length > MAX_NAME ? `The name must be at most ${MAX_NAME} characters.` : undefined;
};

/** The field for the name of a key or an application. */
export const nameField = (
  { id, label, placeholder = '' }: { id: string; label: string; placeholder?: string },
  name: string,
  problem: string | undefined,
): Html =>
  html`<div class="field">
    <label for="${id}">${label}</label>
    <input
      id="${id}"
      name="${id}"
      value="${name}"
      required
      maxlength="${MAX_NAME}"
      placeholder="${placeholder}"
      autocomplete="off"
      ${described(id, problem)}
    />
    ${problemAt(id, problem)}
  </div>`;

export const MAX_PASSWORD = 1000;

export const passwordField = (label: string, autofocus = false): Html =>
  html`<label class="field" for="password"
      >${label}
      <input
        id="password"
        name="password"
        type="password"
        autocomplete="current-password"
        required
        maxlength="${MAX_PASSWORD}"
        ${autofocus && html` autofocus`}
    /></label>
    <button type="button" class="quiet show-password" data-show="password" aria-pressed="false" hidden>
      Show password
    </button>`;

export const ALL_SCOPES = Object.keys(SCOPES) as Scope[];

/** A box to tick, and what it means. */
export const checkbox = (name: string, checked: boolean, meaning: Html, style = 'check'): Html =>
  html`<label class="${style}"
    ><input type="checkbox" name="${name}" value="yes" ${checked && html` checked`} /><span
      >${meaning}</span
    ></label
  > `;

export const selectField = (
  id: string,
  label: string,
  options: (readonly [value: string, words: string])[],
  chosen: string,
): Html =>
  html`<label class="field" for="${id}"
    >${label}
    <select id="${id}" name="${id}">
      ${options.map(
        ([value, words]) =>
          html`<option value="${value}" ${value === chosen && html` selected`}>${words}</option>`,
      )}
    </select></label
  >`;

/** A box for each scope; `words` say what it permits. */
export const scopeBoxes = (words: Record<Scope, string>, chosen: readonly string[]): Html =>
  html`${ALL_SCOPES.map((scope) => {
    const about = html`${words[scope]} <small><code>${scope}</code></small>`;
    const style = scope.includes(':') ? 'check under' : 'check';
    return checkbox(`scope ${scope}`, chosen.includes(scope), about, style);
  })}`;

/** The result of a form. */
export const done = (text: string | undefined): Html =>
  html`${text !== undefined && html`<p class="done" role="status">${text}</p>`}`;

/** The name of a column of texts, of numbers, or of buttons, whose name is for screen readers. */
type Column = string | { numbers: string } | { buttons: string };

function heading(column: Column): Html {
  if (typeof column === 'string') return html`<th scope="col">${column}</th> `;
  return 'numbers' in column
    ? html`<th scope="col" class="number">${column.numbers}</th> `
    : html`<th scope="col"><span class="hidden">${column.buttons}</span></th> `;
}

/** A table, which its style `cards` shows as cards on a phone. */
export const table = (caption: string, columns: Column[], rows: Html[], style = 'cards'): Html =>
  html`<table ${style && html` class="${style}"`}>
    <caption class="hidden">
      ${caption}
    </caption>
    <thead>
      <tr>
        ${columns.map(heading)}
      </tr>
    </thead>
    <tbody>
      ${rows}
    </tbody>
  </table>`;

/** Links to other pages of a list, by their words; one without an address is left out. */
export function pageLinks(links: Record<string, string | false>): Html {
  const given = Object.entries(links).filter(([, href]) => href !== false);
  const nav = html`<nav class="buttons" aria-label="Pages">
    ${given.map(([words, href]) => html`<a class="button quiet" href="${href}">${words}</a> `)}
  </nav>`;
  return given.length > 0 ? nav : html``;
}

/** Links between the numbered pages of a list. */
export const numberedPages = (path: string, page: number, isMore: boolean): Html =>
  pageLinks({
    Newer: page > 1 && withQuery(path, { page: String(page - 1) }),
    Older: isMore && withQuery(path, { page: String(page + 1) }),
  });

/** `1,000+` at the number at which counting stops. */
export const countOf = (value: number, most?: number): string =>
  `${value.toLocaleString('en-US')}${value === most ? '+' : ''}`;

/** A page that asks for confirmation; `back` is the address of its other choice. */
export const confirmation = (
  visitor: Visitor,
  {
    question,
    facts,
    action,
    button,
    back,
    fields,
    ...page
  }: {
    question: string;
    facts: Html;
    action: string;
    button: string;
    back: string;
    fields?: Html;
  } & Pick<Page, 'title' | 'section'>,
): Page => ({
  ...page,
  single: true,
  main: html`<h1>${question}</h1>
    <div class="card stack">
      ${facts}
      <form method="post" action="${action}" class="stack">
        ${formToken(visitor)} ${fields}
        <div class="buttons">
          <button class="danger">${button}</button>
          <a class="button quiet" href="${back}">Cancel</a>
        </div>
      </form>
    </div>`,
});

/** A text to copy, with a button if JavaScript is enabled. */
export const copyable = (id: string, label: string, text: string): Html =>
  html`<div class="field">
    <label for="${id}">${label}</label>
    <div class="copyable">
      <textarea id="${id}" readonly rows="1" spellcheck="false" autocomplete="off">${text}</textarea>
      <button type="button" class="quiet" data-copy="${id}" hidden>Copy</button>
    </div>
  </div>`;

/** The ID in the URL of a page. */
export function idOf(text: string): number {
  const id = readInteger(text);
  if (id instanceof InvalidValue) throw apiError(404, 'Check the URL for typing errors.');
  return id;
}

const LAST_PAGE = 10_000;

/** The page number of a list in the URL of a page. */
export function pageOf(text: string | undefined): number {
  const page = text === undefined ? 1 : readInteger(text);
  return typeof page === 'number' && page >= 1 ? Math.min(page, LAST_PAGE) : 1;
}

/** The permissions of an app, in words. Permissions that `before` lacks are tagged as new. */
export const permissionList = (
  { scopes, may_start_games }: Pick<Consent, 'scopes' | 'may_start_games'>,
  before?: Pick<Consent, 'scopes' | 'may_start_games'>,
): Html => {
  const line = (words: string, granted: boolean | undefined) =>
    html`<li>${words}${granted === false && html` <span class="tag">new</span>`}</li>`;
  return html`<ul class="scopes">
    ${scopes.map((scope) => line(meaningOf(scope), before && covers(before.scopes, scope)))}
    ${may_start_games && line('Start games as you', before?.may_start_games)}
  </ul>`;
};
