import type { Notice } from '../../auth/sign-in/sessions.service';
import { html, type Html } from '../layout/html';
import { formToken } from '../layout/layout';
import { alert } from '../layout/components';
import type { Visitor } from '../layout/visitor';

export const REFERENCE_PATH = '/docs';

export interface Reference {
  title: string;
  lead: Html;
  credential: (notice: Notice) => Html;
  /** Path of the endpoints, which the script shows. */
  source: string;
  /** What readers without JavaScript can do. */
  withoutScript: Html;
}

export const referencePage = (
  { title, lead, credential, source, withoutScript }: Reference,
  base: string,
  notice: Notice,
): Html =>
  html`<h1>${title}</h1>
    <p class="lead">${lead}</p>
    <div class="reference" data-source="${source}" data-base="${base}">
      <div class="aside">
        <label class="field" for="find" hidden
          >Find an endpoint <input id="find" type="search" autocomplete="off"
        /></label>
        <p id="found" role="status" class="muted"></p>
        <details class="menu" hidden>
          <summary>Endpoints</summary>
        </details>
      </div>
      <div class="content">
        ${credential(notice)}
        <noscript><div class="content">${withoutScript}</div></noscript>
        <div class="content" id="endpoints"></div>
      </div>
    </div>`;

const credentialField = (label: string, value = ''): Html =>
  html`<label class="field" for="credential"
      >${label}
      <input
        id="credential"
        type="password"
        value="${value}"
        autocomplete="off"
        spellcheck="false"
        aria-describedby="credential-help"
    /></label>
    <small id="credential-help">It is used only on this page, and cleared when you leave it.</small>`;

/** `list` shows the endpoints that `source` describes. */
export const publicReference = (visitor: Visitor, source: string, list: Html): Reference => ({
  title: 'API reference',
  lead: html`All endpoints of the public API, also available as <a href="/openapi.json">OpenAPI</a> and
    <a href="/llms.txt">llms.txt</a>. Store operators have
    <a href="${REFERENCE_PATH}/operator">additional endpoints</a>.`,
  credential: ({ made, problem }) =>
    html`<section class="card stack" aria-labelledby="your-key" data-script hidden>
      <h2 id="your-key">Your key</h2>
      ${problem && alert(problem)} ${credentialField('API key or JWT for the requests below', made)}
      ${
        visitor.user
          ? html`<form method="post" action="${REFERENCE_PATH}/key">
              ${formToken(visitor)}
              <button class="quiet">Create a one-day key</button>
              <small>It can only read your profile (<code>profile:me</code>).</small>
            </form>`
          : html`<p>
              <a href="/login?return_to=${REFERENCE_PATH}">Sign in</a> to create a key for this page.
            </p>`
      }
    </section>`,
  source,
  withoutScript: html`<p>
      With JavaScript, this page also sends requests. Each endpoint links to its description. To create a key,
      open <a href="/user/settings/api-keys">API keys</a>.
    </p>
    ${list}`,
});

export const OPERATOR_REFERENCE: Reference = {
  title: 'API reference for operators',
  lead: html`The endpoints that a store’s own systems call with an operator token.`,
  credential: () =>
    html`<form id="with-token" class="card stack" data-script hidden>
      ${credentialField('Operator token')}
      <button>Show the endpoints</button>
      <small>To create a token, run <code>gamewharf operator-tokens create</code>.</small>
    </form>`,
  source: '/operator/docs',
  withoutScript: html`<p>
    This page needs JavaScript. Without it, download <code>/operator/openapi.json</code> with your token.
  </p>`,
};
