import { SCOPES, type Scope } from '../../auth/access/scopes';
import { html, type Html, type Part } from './html';
import { formToken } from './layout';
import type { Visitor } from './visitor';

export type Problems<Field extends string = string> = Partial<Record<Field, string>>;

export const hasProblems = (problems: Problems): boolean =>
  Object.values(problems).some((problem) => problem !== undefined);

/** The problem of a field, below or above it. */
export const problemAt = (field: string, problem: string | undefined): Html =>
  html`${problem !== undefined && html`<p class="problem" id="${field}-problem" role="alert">${problem}</p>`}`;

/** The attributes of a field with a problem or other descriptions. */
export const described = (field: string, problem: string | undefined, ...others: string[]): Html => {
  const texts = [...others, ...(problem === undefined ? [] : [`${field}-problem`])];
  return html`${texts.length > 0 && html` aria-describedby="${texts.join(' ')}"`}${problem !== undefined && html` aria-invalid="true"`}`;
};

interface Field {
  id: string;
  label: Part;
  problem?: string;
  /** The ID of the element with the problem, if it concerns several fields. */
  problemOf?: string;
  /** Classes of the element that contains the label and the input. */
  style?: string;
  /** Attributes of the input; true: without a value. */
  [attribute: string]: Part | boolean;
}

export const field = ({ id, label, problem, problemOf, style, ...attributes }: Field): Html => {
  const all = { name: id, autocomplete: 'off', ...attributes };
  return html`<div class="${style === undefined ? 'field' : `field ${style}`}">
    <label for="${id}">${label}</label>
    <input id="${id}" ${Object.entries(all).map(attribute)} ${described(problemOf ?? id, problem)} />
    ${problemOf === undefined && problemAt(id, problem)}
  </div>`;
};

const attribute = ([name, value]: [string, Part | boolean]): Html =>
  value === true
    ? html` ${name}`
    : html`${value !== undefined && value !== false && html` ${name}="${value}"`}`;

const MAX_NAME = 100;

/** The problem with a name; `missing` is the text for an empty one. */
export const problemOfName = (name: string, missing: string): string | undefined => {
  if (name === '') return missing;
  return [...name].length > MAX_NAME ? `The name can have at most ${MAX_NAME} characters.` : undefined;
};

export const nameField = (named: Field): Html => field({ ...named, required: true, maxlength: MAX_NAME });

/** Text without capitalization or spell checking, such as a username or a key. */
export const AS_TYPED = { required: true, autocapitalize: 'none', spellcheck: 'false' };

export const MAX_PASSWORD = 1000;

export const passwordField = (label: string, autofocus = false): Html =>
  html`${field({ id: 'password', label, type: 'password', autocomplete: 'current-password', required: true, maxlength: MAX_PASSWORD, autofocus })}
    <button type="button" class="quiet show-password" data-show="password" aria-pressed="false" hidden>
      Show password
    </button>`;

export const checkbox = (name: string, checked: boolean, meaning: Html, style = 'check'): Html =>
  html`<label class="${style}"
    ><input type="checkbox" name="${name}" value="yes" ${checked && html` checked`} /><span
      >${meaning}</span
    ></label
  > `;

export const selectField = (
  id: string,
  label: string,
  options: readonly (readonly [value: string, words: string])[],
  chosen: string,
  problem?: string,
): Html =>
  html`<label class="field" for="${id}"
    >${label}
    <select id="${id}" name="${id}" ${described(id, problem)}>
      ${options.map(
        ([value, words]) =>
          html`<option value="${value}" ${value === chosen && html` selected`}>${words}</option>`,
      )}
    </select></label
  >`;

export const choices = (
  id: string,
  legend: string,
  problem: string | undefined,
  boxes: Part,
  style?: string,
): Html =>
  html`<fieldset ${style && html` class="${style}"`} ${problem && html` aria-describedby="${id}-problem"`}>
    <legend>${legend}</legend>
    ${problemAt(id, problem)} ${boxes}
  </fieldset>`;

export const ALL_SCOPES = Object.keys(SCOPES) as Scope[];

/** A checkbox for each scope; `words` describe what it permits. */
export const scopeBoxes = (words: Record<Scope, string>, chosen: readonly string[]): Html =>
  html`${ALL_SCOPES.map((scope) => {
    const about = html`${words[scope]} <small><code>${scope}</code></small>`;
    const style = scope.includes(':') ? 'check under' : 'check';
    return checkbox(`scope ${scope}`, chosen.includes(scope), about, style);
  })}`;

/** A form that changes something; `back` is the URL of its other choice. */
export const changeForm = (
  visitor: Visitor,
  { action, button, back, danger }: { action: string; button: string; back?: string; danger?: boolean },
  fields: Part,
  style = 'card stack',
): Html =>
  html`<form method="post" action="${action}" class="${style}">
    ${formToken(visitor)} ${fields}
    <div class="buttons">
      <button ${danger && html` class="danger"`}>${button}</button>
      ${back !== undefined && html`<a class="button quiet" href="${back}">Cancel</a>`}
    </div>
  </form>`;

/**
 * A form whose values are in the URL. A script sends it after each change; without one, its button does. After Back,
 * browsers must not restore a choice that isn't the one of the page.
 */
export const filterForm = (action: string, fields: Html): Html =>
  html`<form action="${action}" class="filter" autocomplete="off" data-filter>
    ${fields}
    <button>Show</button>
    <p class="hidden" data-filter-note hidden>The page is updated after each change.</p>
  </form>`;
