import type { ApiKey } from '../../auth/api-key.entity';
import { SCOPES, type Scope } from '../../auth/scopes';
import { html, type Html } from '../layout/html';
import { formToken } from '../layout/layout';
import { copyable, day, described, nameField, problemAt, type Problems, scopeBoxes } from '../layout/parts';
import type { Visitor } from '../layout/visitor';
import { DAYS, type KeyDraft } from './key-draft';

export const PATH = '/user/settings/api-keys';
const DAY = 24 * 60 * 60 * 1000;
const WARNING_DAYS = 7;

export const keyForm = (visitor: Visitor, draft: KeyDraft, problems: Problems): Html => {
  const { label, reach, scopes, expires, expires_on } = draft;
  const choice = (value: KeyDraft['reach'], words: string) =>
    html`<label class="check"
      ><input type="radio" name="reach" value="${value}" ${reach === value && html` checked`} /><span
        >${words}</span
      ></label
    >`;
  const option = (value: string, words: string) =>
    html`<option value="${value}" ${expires === value && html` selected`}>${words}</option>`;
  return html`<form method="post" action="${PATH}" class="card stack">
    ${formToken(visitor)}
    <h2>Make a key</h2>
    ${labelField(label, problems.label, 'such as: build server')}
    <fieldset class="reach" ${problems.scopes && html` aria-describedby="scopes-problem"`}>
      <legend>It may do</legend>
      ${problemAt('scopes', problems.scopes)}
      ${choice('everything', 'Everything that you may do over the API')} ${choice('some', 'Only what I tick')}
      <div class="some">${scopeBoxes(SCOPES, scopes)}</div>
    </fieldset>
    <div class="row ends">
      <label class="field" for="expires"
        >It expires
        <select id="expires" name="expires" ${described('expires', problems.expires)}>
          ${option('never', 'Never')} ${DAYS.map((days) => option(days, `In ${days} days`))}
          ${option('date', 'On a date')}
        </select></label
      >
      <label class="field date${expires_on && ' given'}" for="expires_on"
        >Its last day (UTC) <input id="expires_on" name="expires_on" type="date" value="${expires_on}"
      /></label>
    </div>
    ${problemAt('expires', problems.expires)}
    <div class="buttons"><button>Make a key</button></div>
  </form>`;
};

export const labelField = (label: string, problem: string | undefined, placeholder?: string): Html =>
  nameField({ id: 'label', label: 'Name of the key', placeholder }, label, problem);

/** The key's text and a request that it permits, shown once. */
export const newKey = (key: string, request: string): Html =>
  html`<section class="card fresh stack" aria-labelledby="fresh">
    <h2 id="fresh">Your new key</h2>
    <p>Copy it now: it is shown this once and stored nowhere.</p>
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

export const keyRow = (key: ApiKey, now: number): Html =>
  html`<tr>
    <th scope="row"><a href="${PATH}/${key.id}">${nameOf(key)}</a><br /><code>${key.hint}…</code></th>
    <td data-label="May do">${reachOf(key)}</td>
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
    <dt>Begins with</dt>
    <dd><code>${key.hint}…</code></dd>
    <dt>May do</dt>
    <dd>${reachOf(key)}</dd>
    <dt>Made</dt>
    <dd>${day(key.created_at)}</dd>
    <dt>Last used</dt>
    <dd>${lastUse(key)}</dd>
    <dt>Expires</dt>
    <dd>${expiryOf(key, now)}</dd>
  </dl>`;
