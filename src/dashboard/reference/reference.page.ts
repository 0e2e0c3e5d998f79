import { html, type Html } from '../layout/html';

interface Reference {
  title: string;
  lead: Html;
  /** The form for the credential of the requests. */
  credential: Html;
  /** Path of the endpoints, which the script shows. */
  source: string;
  /** URL of the API in the code examples. */
  base: string;
  /** What readers without JavaScript can do. */
  withoutScript: Html;
}

/** The layout of the API reference. */
export const referencePage = ({ title, lead, credential, source, base, withoutScript }: Reference): Html =>
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
        ${credential}
        <noscript><p>${withoutScript}</p></noscript>
        <div class="content" id="endpoints"></div>
      </div>
    </div>`;

export const credentialField = (label: string, value = ''): Html =>
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
    <small id="credential-help">Only this page uses it, and forgets it when you leave.</small>`;
