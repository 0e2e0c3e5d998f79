import type { ApiKey } from '../../auth/api-key.entity';
import { SCOPES, type Scope } from '../../auth/scopes';
import { html, type Html } from '../layout/html';
import { formToken, type Page } from '../layout/layout';
import {
  alert,
  copyable,
  day,
  described,
  isWrong,
  nameField,
  problemAt,
  type Problems,
  scopeBoxes,
} from '../layout/parts';
import type { Visitor } from '../layout/visitor';
import { DAYS, type KeyDraft } from './key-draft';

export const PATH = '/user/settings/api-keys';
const DAY = 24 * 60 * 60 * 1000;
const WARNING_DAYS = 7;
const SPARK_HEIGHT = 24;

export const keyForm = (visitor: Visitor, draft: KeyDraft, problems: Problems, problem?: string): Page => {
  const { label, reach, scopes, expires, expires_on } = draft;
  const choice = (value: KeyDraft['reach'], words: string) =>
    html`<label class="check"
      ><input type="radio" name="reach" value="${value}" ${reach === value && html` checked`} /><span
        >${words}</span
      ></label
    >`;
  const option = (value: string, words: string) =>
    html`<option value="${value}" ${expires === value && html` selected`}>${words}</option>`;
  const main = html`<h1>Create an API key</h1>
    <p class="lead">
      A program uses the API as you with this key. Select only the permissions that it needs.
    </p>
    ${problem && alert(problem)}
    <form method="post" action="${PATH}" class="card stack">
      ${formToken(visitor)} ${labelField(label, problems.label, 'such as: build server')}
      <fieldset class="reach" ${problems.scopes && html` aria-describedby="scopes-problem"`}>
        <legend>Permissions</legend>
        ${problemAt('scopes', problems.scopes)} ${choice('some', 'Only the selected permissions')}
        <div class="some">${scopeBoxes(SCOPES, scopes)}</div>
        ${choice('everything', 'Everything that you can do over the API')}
      </fieldset>
      <div class="row ends">
        <label class="field" for="expires"
          >Expires
          <select id="expires" name="expires" ${described('expires', problems.expires)}>
            ${option('never', 'Never')} ${DAYS.map((days) => option(days, `In ${days} days`))}
            ${option('date', 'On a date')}
          </select></label
        >
        <label class="field date${expires_on && ' given'}" for="expires_on"
          >Last day (UTC) <input id="expires_on" name="expires_on" type="date" value="${expires_on}"
        /></label>
      </div>
      ${problemAt('expires', problems.expires)}
      <div class="buttons">
        <button>Create key</button>
        <a class="button quiet" href="${PATH}">Cancel</a>
      </div>
    </form>`;
  const status = problem || isWrong(problems) ? 400 : 200;
  return { section: PATH, title: 'Create an API key', status, main };
};

export const labelField = (label: string, problem: string | undefined, placeholder?: string): Html =>
  nameField({ id: 'label', label: 'Name of the key', placeholder }, label, problem);

/** The key's text and a request that it permits, shown once. */
export const newKey = (key: string, request: string): Html =>
  html`<section class="card fresh stack" aria-labelledby="fresh">
    <h2 id="fresh">Your new key</h2>
    <p>Copy it now, because it isn’t shown again.</p>
    ${copyable('new-key', 'Key', key)} ${copyable('try', 'Try it', request)}
  </section>`;

export const nameOf = ({ label, hint }: ApiKey): string => label ?? `${hint}…`;

const reachOf = ({ scopes }: ApiKey): Html =>
  scopes
    ? html`<ul class="plain">
        ${scopes.map((scope) => html`<li>${SCOPES[scope as Scope] ?? scope}</li>`)}
      </ul>`
    : html`Everything`;

const lastUse = ({ last_used_at, last_used_from }: ApiKey): Html =>
  html`${day(last_used_at)}${last_used_from && html`<br /><small>from ${last_used_from}</small>`}`;

/** The last day of the key, and how many days are left of its last week. */
function expiryOf({ expires_at }: ApiKey, now: number): Html {
  if (expires_at === null) return day(null);
  const left = Math.ceil((Date.parse(expires_at) - now) / DAY);
  if (left <= 0) return html`${day(expires_at)} <strong class="tag warn">expired</strong>`;
  return html`${day(expires_at)}${left <= WARNING_DAYS && html` <strong class="tag warn">${left === 1 ? 'within a day' : `in ${left} days`}</strong>`}`;
}

/** The requests of the last days, the newest last. */
function sparkline(requests: number[]): Html {
  const most = Math.max(...requests);
  if (most === 0) return html`<span class="muted">none</span>`;
  const total = requests.reduce((sum, count) => sum + count, 0).toLocaleString('en-US');
  const bar = (count: number, i: number) => {
    const height = count === 0 ? 0 : Math.max(1, Math.round((count / most) * SPARK_HEIGHT));
    return html`<rect x="${i * 4}" y="${SPARK_HEIGHT - height}" width="3" height="${height}" />`;
  };
  return html`<svg
      class="spark"
      width="${requests.length * 4 - 1}"
      height="${SPARK_HEIGHT}"
      role="img"
      aria-label="Requests per day, at most ${most.toLocaleString('en-US')}"
    >
      ${requests.map(bar)}</svg
    ><br /><small>${total} in ${requests.length} days</small>`;
}

export const keyRow = (key: ApiKey, requests: number[], now: number): Html =>
  html`<tr>
    <th scope="row"><a href="${PATH}/${key.id}">${nameOf(key)}</a><br /><code>${key.hint}…</code></th>
    <td data-label="Permissions">${reachOf(key)}</td>
    <td data-label="Requests">${sparkline(requests)}</td>
    <td data-label="Last used">${lastUse(key)}</td>
    <td data-label="Expires">${expiryOf(key, now)}</td>
    <td class="actions">
      <a class="button quiet danger" href="${PATH}/${key.id}/revoke"
        >Revoke<span class="hidden"> ${nameOf(key)}</span></a
      >
    </td>
  </tr>`;

/** All about one key. */
export const keyFacts = (key: ApiKey, now: number): Html =>
  html`<dl class="facts">
    <dt>Starts with</dt>
    <dd><code>${key.hint}…</code></dd>
    <dt>Permissions</dt>
    <dd>${reachOf(key)}</dd>
    <dt>Created</dt>
    <dd>${day(key.created_at)}</dd>
    <dt>Last used</dt>
    <dd>${lastUse(key)}</dd>
    <dt>Expires</dt>
    <dd>${expiryOf(key, now)}</dd>
  </dl>`;
