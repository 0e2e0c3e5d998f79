import type { DemoAccess } from './demo';
import { html, type Html } from './html';
import { DEVELOPERS_PATH, type Page } from './layout';
import { copyable } from './components';

/** Explains the first request. `demo`: a key that it can use. */
export const homePage = (
  store: string,
  url: string,
  isAnonymous: boolean,
  demo: DemoAccess | undefined,
): Page => ({
  title: 'First request',
  section: DEVELOPERS_PATH,
  main: html`<h1>${store} API</h1>
    ${isAnonymous ? forAnyone(url, demo) : withOwnKey(url)}`,
});

const steps = (...contents: Html[]): Html =>
  html`<ol class="steps">
    ${contents.map((content) => html`<li>${content}</li>`)}
    <li>
      <p>
        <strong><a href="/docs">Read the API reference</a></strong
        >. It is also available as <a href="/openapi.json">OpenAPI</a>, and for AI assistants as
        <a href="/llms.txt">llms.txt</a>.
      </p>
    </li>
  </ol>`;

const request = (command: string): Html => copyable('first-request', 'In a terminal', command);

const withKey = (key: string, url: string) => `curl -H "Authorization: Bearer ${key}" ${url}/profile`;

const withOwnKey = (url: string): Html =>
  html`<p class="lead">Your first request, in three steps:</p>
    ${steps(
      html`<p>
        <strong><a href="/user/settings/api-keys/new">Create an API key</a></strong
        >, and copy it.
      </p>`,
      html`<div>
        <p><strong>Request your profile</strong>. Replace <code>KEY</code> with your key:</p>
        ${request(withKey('KEY', url))}
      </div>`,
    )}`;

const forAnyone = (url: string, demo: DemoAccess | undefined): Html =>
  html`<p class="lead">
      This API tells games, launchers and developer tools who a player is, which games they own, and who
      bought a game. It also manages collections of games.
    </p>
    ${steps(
      html`<div>
        <p>
          <strong>Send a request.</strong> ${
            demo
              ? html`This one uses the key of ${demo.username}, a developer in the demo store:`
              : 'This one doesn’t need a key:'
          }
        </p>
        ${request(demo ? withKey(demo.api_key, url) : `curl ${url}/`)}
      </div>`,
      html`<p>
        <strong><a href="/user/settings/api-keys/new">Create your own API key</a></strong
        >, after you sign in.
      </p>`,
    )}`;
