import { covers } from '../../auth/credential';
import { SCOPES, type Scope } from '../../auth/scopes';
import { failure } from '../../http/failure';
import { readInteger, Unreadable } from '../../http/parameters';
import type { Consent } from '../oauth/grants.service';
import { meaningOf } from '../oauth/oauth-scopes';
import { html, type Html } from './html';
import { formToken, type Page } from './layout';
import type { Visitor } from './visitor';

const MONTHS = ['Jan', 'Feb', 'Mar', 'Apr', 'May', 'Jun', 'Jul', 'Aug', 'Sep', 'Oct', 'Nov', 'Dec'];

/** The day of a timestamp in PostgreSQL's format. */
export function day(timestamp: string | null, never = 'never'): Html {
  if (timestamp === null) return html`<span class="muted">${never}</span>`;
  const [year, month, date] = timestamp.slice(0, 10).split('-');
  return html`<time datetime="${timestamp.slice(0, 10)}"
    >${Number(date)} ${MONTHS[Number(month) - 1]} ${year}</time
  >`;
}

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
  /></label>`;

export const ALL_SCOPES = Object.keys(SCOPES) as Scope[];

/** A box for each scope; `words` say what it permits. */
export const scopeBoxes = (words: Record<Scope, string>, chosen: readonly string[]): Html =>
  html`${ALL_SCOPES.map(
    (scope) =>
      html`<label class="check${scope.includes(':') && ' under'}"
        ><input
          type="checkbox"
          name="scope ${scope}"
          value="yes"
          ${chosen.includes(scope) && html` checked`}
        /><span
          >${words[scope]} <small><code>${scope}</code></small></span
        ></label
      > `,
  )}`;

/** The result of a form. */
export const done = (text: string | undefined): Html =>
  html`${text !== undefined && html`<p class="done" role="status">${text}</p>`}`;

/** A table, shown as cards on a phone. The last column holds buttons; its name is for screen readers. */
export const table = (caption: string, columns: string[], rows: Html[]): Html =>
  html`<table class="cards">
    <caption class="hidden">
      ${caption}
    </caption>
    <thead>
      <tr>
        ${columns.map(
          (name, i) =>
            html`<th scope="col">
              ${i === columns.length - 1 ? html`<span class="hidden">${name}</span>` : name}
            </th> `,
        )}
      </tr>
    </thead>
    <tbody>
      ${rows}
    </tbody>
  </table>`;

/** A page that asks for confirmation; `back` is the address of its other choice. */
export const confirmation = (
  visitor: Visitor,
  {
    title,
    question,
    facts,
    action,
    button,
    back,
  }: { title: string; question: string; facts: Html; action: string; button: string; back: string },
): Page => ({
  title,
  single: true,
  main: html`<h1>${question}</h1>
    <div class="card stack">
      ${facts}
      <form method="post" action="${action}" class="buttons">
        ${formToken(visitor)}
        <button class="danger">${button}</button>
        <a class="button quiet" href="${back}">Keep it</a>
      </form>
    </div>`,
});

/** A text to copy, with a button where JavaScript is on. */
export const copyable = (id: string, label: string, text: string): Html =>
  html`<div class="field">
    <label for="${id}">${label}</label>
    <div class="copyable">
      <textarea id="${id}" readonly rows="1" spellcheck="false" autocomplete="off">${text}</textarea>
      <button type="button" class="quiet" data-copy="${id}" hidden>Copy</button>
    </div>
  </div>`;

/** The id in the address of a page. */
export function idOf(text: string): number {
  const id = readInteger(text);
  if (id instanceof Unreadable) throw failure(404, 'The address is not right.');
  return id;
}

const LAST_PAGE = 10_000;

/** The page of a list in the address of a page. */
export function pageOf(text: string | undefined): number {
  const page = text === undefined ? 1 : readInteger(text);
  return typeof page === 'number' && page >= 1 ? Math.min(page, LAST_PAGE) : 1;
}

/** What an application may do, in words. Permissions that `before` lacks are tagged as new. */
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

/** Buttons to allow or refuse; `fields` are sent with the answer. */
export const decision = (visitor: Visitor, action: string, fields: Record<string, string>): Html =>
  html`<form method="post" action="${action}" class="buttons equal">
    ${formToken(visitor)}
    ${Object.entries(fields).map(([name, value]) => html`<input type="hidden" name="${name}" value="${value}" />`)}
    <button name="decision" value="allow">Allow</button>
    <button name="decision" value="deny" class="quiet">Cancel</button>
  </form>`;
