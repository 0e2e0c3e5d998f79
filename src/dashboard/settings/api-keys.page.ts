import type { ApiKey } from '../../auth/keys/api-key.entity';
import { SCOPES, type Scope } from '../../auth/access/scopes';
import {
  changeForm,
  choices,
  field,
  hasProblems,
  nameField,
  problemAt,
  type Problems,
  scopeBoxes,
  selectField,
} from '../layout/fields';
import { html, type Html } from '../layout/html';
import type { Page } from '../layout/layout';
import {
  actions,
  alert,
  type Columns,
  confirmation,
  copyable,
  formatCount,
  day,
  done,
  descriptionList,
  linkButton,
  muted,
  tableOr,
  tag,
} from '../layout/components';
import type { Visitor } from '../layout/visitor';
import { EXPIRY_DAYS, type KeyDraft } from './key-draft';
import { DAY_MS } from '../../platform/formats/durations';

export const API_KEYS_PATH = '/user/settings/api-keys';
const WARNING_DAYS = 7;
const SPARK_HEIGHT = 24;

export const keysPage = (
  keys: ApiKey[],
  requests: Map<number, number[]>,
  now: number,
  url: string,
): Page => ({
  section: API_KEYS_PATH,
  title: 'API keys',
  main: ({ message: text, made, path }) =>
    html`<div class="head">
        <h1>API keys</h1>
        <a class="button" href="${API_KEYS_PATH}/new">New key</a>
      </div>
      <p class="lead">
        A program with one of these keys can use the API on your behalf. Keep keys secret, like passwords.
      </p>
      ${done(text)} ${made && newKey(made, `curl -H "Authorization: Bearer ${made}" ${url}${path}`)}
      ${tableOr('You don’t have any keys yet.', 'Your keys', columns(requests, now), keys)}`,
});

export const newKeyPage = (visitor: Visitor, draft: KeyDraft, problems: Problems, problem?: string): Page => {
  const { label, reach, scopes, expires, expires_on } = draft;
  const choice = (value: KeyDraft['reach'], words: string) =>
    html`<label class="check"
      ><input type="radio" name="reach" value="${value}" ${reach === value && html` checked`} /><span
        >${words}</span
      ></label
    >`;
  const lives = [
    ['never', 'Never'],
    ...EXPIRY_DAYS.map((days) => [days, `In ${days} days`] as const),
    ['date', 'On a date'],
  ] as const;
  return {
    section: API_KEYS_PATH,
    title: 'Create an API key',
    status: problem || hasProblems(problems) ? 400 : 200,
    main: html`<h1>Create an API key</h1>
      <p class="lead">
        A program with this key can use the API on your behalf. Select only the permissions that it needs.
      </p>
      ${problem && alert(problem)}
      ${changeForm(
        visitor,
        { action: API_KEYS_PATH, button: 'Create key', back: API_KEYS_PATH },
        html`${labelField(label, problems.label, 'Build server')}
          ${choices(
            'scopes',
            'Permissions',
            problems.scopes,
            html`${choice('some', 'Only the selected permissions')}
              <div class="some">${scopeBoxes(SCOPES, scopes)}</div>
              ${choice('everything', 'Everything that you can do with the API')}`,
            'reach',
          )}
          <div class="row ends">
            ${selectField('expires', 'Expires', lives, expires, problems.expires)}
            ${field({ id: 'expires_on', label: 'Last day (UTC)', type: 'date', value: expires_on, style: expires_on ? 'date given' : 'date' })}
          </div>
          ${problemAt('expires', problems.expires)}`,
      )}`,
  };
};

export const keyPage = (
  visitor: Visitor,
  key: ApiKey,
  now: number,
  label: string,
  problem?: string,
): Page => ({
  section: API_KEYS_PATH,
  title: keyName(key),
  status: problem ? 400 : 200,
  main: html`<h1>${keyName(key)}</h1>
    <section class="card stack" aria-label="About this key">
      ${descriptionList({
        'Starts with': html`<code>${key.hint}…</code>`,
        Permissions: describeScopes(key),
        Created: day(key.created_at),
        'Last used': lastUse(key),
        Expires: describeExpiry(key, now),
      })}
    </section>
    ${changeForm(visitor, { action: `${API_KEYS_PATH}/${key.id}`, button: 'Save', back: API_KEYS_PATH }, labelField(label, problem))}`,
});

export const revokeKeyPage = (visitor: Visitor, key: ApiKey): Page =>
  confirmation(visitor, {
    section: API_KEYS_PATH,
    title: 'Revoke a key',
    question: 'Revoke this key?',
    details: html`<p><strong>${key.label ?? 'Unnamed key'}</strong><br /><code>${key.hint}…</code></p>
      <p>Programs that use it stop working immediately. This can’t be undone.</p>`,
    action: `${API_KEYS_PATH}/${key.id}/revoke`,
    button: 'Revoke key',
    back: API_KEYS_PATH,
  });

const labelField = (value: string, problem: string | undefined, placeholder?: string): Html =>
  nameField({ id: 'label', label: 'Name of the key', value, problem, placeholder });

/** The key's text and a request that it permits, shown once. */
const newKey = (key: string, request: string): Html =>
  html`<section class="card fresh stack" aria-labelledby="fresh">
    <h2 id="fresh">Your new key</h2>
    <p>Copy it now, because it isn’t shown again.</p>
    ${copyable('new-key', 'Key', key)} ${copyable('try', 'Try it', request)}
  </section>`;

export const keyName = ({ label, hint }: ApiKey): string => label ?? `${hint}…`;

const describeScopes = ({ scopes }: ApiKey): Html =>
  scopes
    ? html`<ul class="plain">
        ${scopes.map((scope) => html`<li>${SCOPES[scope as Scope] ?? scope}</li>`)}
      </ul>`
    : html`Everything`;

const lastUse = ({ last_used_at, last_used_from }: ApiKey): Html =>
  html`${day(last_used_at)}${last_used_from && html`<br /><small>from ${last_used_from}</small>`}`;

/** The last day of the key, and the number of remaining days in its last week. */
function describeExpiry({ expires_at }: ApiKey, now: number): Html {
  if (expires_at === null) return day(null);
  const left = Math.ceil((Date.parse(expires_at) - now) / DAY_MS);
  if (left <= 0) return html`${day(expires_at)} ${tag('Expired', 'warning')}`;
  return html`${day(expires_at)}${left <= WARNING_DAYS && html` ${tag(left === 1 ? 'Within a day' : `In ${left} days`, 'warning')}`}`;
}

/** The number of requests on each of the last days, ending with the newest. */
function sparkline(requests: number[]): Html {
  const most = Math.max(...requests);
  if (most === 0) return muted('None');
  const total = formatCount(requests.reduce((sum, count) => sum + count, 0));
  const bar = (count: number, i: number) => {
    const height = count === 0 ? 0 : Math.max(1, Math.round((count / most) * SPARK_HEIGHT));
    return html`<rect x="${i * 4}" y="${SPARK_HEIGHT - height}" width="3" height="${height}" />`;
  };
  return html`<svg
      class="spark"
      width="${requests.length * 4 - 1}"
      height="${SPARK_HEIGHT}"
      role="img"
      aria-label="Requests per day, at most ${formatCount(most)}"
    >
      ${requests.map(bar)}</svg
    ><br /><small>${total} in ${requests.length} days</small>`;
}

const columns = (requests: Map<number, number[]>, now: number): Columns<ApiKey> => ({
  Key: (key) => html`<a href="${API_KEYS_PATH}/${key.id}">${keyName(key)}</a><br /><code>${key.hint}…</code>`,
  Permissions: describeScopes,
  Requests: ({ id }) => sparkline(requests.get(id)!),
  'Last used': lastUse,
  Expires: (key) => describeExpiry(key, now),
  Revoke: actions((key) =>
    linkButton(`${API_KEYS_PATH}/${key.id}/revoke`, 'Revoke', keyName(key), 'quiet danger'),
  ),
});
